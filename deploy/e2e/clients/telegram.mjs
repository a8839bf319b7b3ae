// A bot with grammY. Users tell it what to do with the first word of a message.
import { autoRetry } from "@grammyjs/auto-retry";
import { Api, Bot, InlineKeyboard, InputFile } from "grammy";
import { perform, report, untilInputEnds } from "./program.mjs";

const { TOKEN: token, BASE: base } = process.env;
const client = { apiRoot: base };
const bot = new Bot(token, { client });
bot.api.config.use(autoRetry());

const describe = (error) => ({ code: error.error_code, description: error.description, parameters: error.parameters });
const download = async (file) => (await fetch(`${base}/file/bot${token}/${file.file_path}`)).text();
const picture = () => new InputFile(Buffer.from(process.env.PICTURE, "base64"), "dot.png");
const sent = (message) => ({ id: message.message_id, thread: message.message_thread_id, message });

const steps = {
  say: async (ctx, text) => sent(await ctx.reply(text)),
  answer: async (ctx, text) => sent(await ctx.reply(text, { reply_parameters: { message_id: ctx.msg.message_id } })),
  answerTo: async (ctx, id) => sent(await ctx.reply("to", { reply_parameters: { message_id: Number(id) } })),
  answerOrSay: async (ctx, id) =>
    sent(await ctx.reply("anyway", { reply_parameters: { message_id: Number(id), allow_sending_without_reply: true } })),
  burst: async (ctx, count) => ({ ids: await Promise.all(Array.from({ length: Number(count) }, async (_, n) => (await ctx.reply(`number ${n}`)).message_id)) }),
  toTopic: async (ctx, id) => sent(await ctx.api.sendMessage(ctx.chat.id, "in the topic", { message_thread_id: Number(id) })),
  long: async (ctx, length) => sent(await ctx.reply("x".repeat(Number(length)))),
  bold: async (ctx, text) => sent(await ctx.reply(text, { entities: [{ type: "bold", offset: 0, length: text.length }] })),
  edit: async (ctx, text) => {
    const { message_id } = await ctx.reply("draft");
    return sent(await ctx.api.editMessageText(ctx.chat.id, message_id, text));
  },
  editTo: async (ctx, id) => sent(await ctx.api.editMessageText(ctx.chat.id, Number(id), "edited")),
  caption: async (ctx, id) => sent(await ctx.api.editMessageCaption(ctx.chat.id, Number(id), { caption: "another caption" })),
  delete: async (ctx) => {
    const { message_id } = await ctx.reply("to be deleted");
    return { id: message_id, deleted: await ctx.api.deleteMessage(ctx.chat.id, message_id) };
  },
  deleteId: async (ctx, id) => ({ deleted: await ctx.api.deleteMessage(ctx.chat.id, Number(id)) }),
  document: async (ctx, text) => {
    const message = await ctx.replyWithDocument(new InputFile(Buffer.from(text), "note.txt"), { caption: "a note" });
    return { ...sent(message), content: await download(await ctx.api.getFile(message.document.file_id)) };
  },
  again: async (ctx, id) => sent(await ctx.replyWithDocument(id)),
  photo: async (ctx) => sent(await ctx.replyWithPhoto(picture())),
  noPhoto: async (ctx) => sent(await ctx.replyWithPhoto(new InputFile(Buffer.from("no picture"), "a.png"))),
  read: async (ctx) => ({ content: await download(await ctx.getFile()) }),
  buttons: async (ctx) =>
    sent(await ctx.reply("choose", { reply_markup: new InlineKeyboard().text("Yes", "yes").text("No", "no").url("Docs", "https://example.com") })),
  longButton: async (ctx) => sent(await ctx.reply("choose", { reply_markup: new InlineKeyboard().text("Yes", "y".repeat(65)) })),
  react: async (ctx, emoji) => ({ done: await ctx.react(emoji) }),
  poll: async (ctx) => sent(await ctx.replyWithPoll("Tea?", ["Yes", "No"], { is_anonymous: false })),
  onePoll: async (ctx) => sent(await ctx.replyWithPoll("Tea?", [])),
  stopPoll: async (ctx, id) => ({ poll: await ctx.api.stopPoll(ctx.chat.id, Number(id)) }),
  menu: async (ctx) => {
    await ctx.api.setMyCommands([{ command: "help", description: "what I can do" }]);
    return { commands: await ctx.api.getMyCommands() };
  },
  badMenu: async (ctx) => ctx.api.setMyCommands([{ command: "Help!", description: "what I can do" }]),
  typing: async (ctx) => ({ done: await ctx.replyWithChatAction("typing") }),
  to: async (ctx, id) => sent(await ctx.api.sendMessage(id, "elsewhere")),
  // Without the retries that bot has.
  once: async (ctx, text) => sent(await new Api(token, client).sendMessage(ctx.chat.id, text)),
  stranger: async (_, other) => new Api(other, client).getMe(),
};

bot.command("help", (ctx) => report("help", { match: ctx.match }));
bot.on(["message:text", "message:caption"], (ctx) => {
  const [, name, rest] = /^(?:@\w+ )?(\w+) ?(.*)$/s.exec(ctx.msg.text ?? ctx.msg.caption);
  const step = steps[name];
  if (step) return perform(name, () => step(ctx, rest), describe);
  report("message", { text: ctx.msg.text, from: ctx.from, message: ctx.msg, chat: ctx.chat });
});
bot.on("edited_message", (ctx) => report("edited", { text: ctx.msg.text, message: ctx.msg }));
bot.on("callback_query:data", async (ctx) => {
  await perform("press", async () => {
    const answered = await ctx.answerCallbackQuery("thanks");
    const message = await ctx.editMessageText(`chosen: ${ctx.callbackQuery.data}`);
    return { data: ctx.callbackQuery.data, from: ctx.from.first_name, answered, message };
  }, describe);
  await perform("late answer", () => new Api(token, client).answerCallbackQuery("1"), describe);
});
bot.on("message_reaction", (ctx) => report("reaction", ctx.reactions()));
bot.on("poll_answer", (ctx) => report("vote", { options: ctx.pollAnswer.option_ids, from: ctx.pollAnswer.user.first_name }));
bot.on("poll", (ctx) => report("poll state", { closed: ctx.poll.is_closed, total: ctx.poll.total_voter_count }));
bot.on("my_chat_member", (ctx) => report("membership", { status: ctx.myChatMember.new_chat_member.status }));
bot.on("message:new_chat_members", (ctx) => report("joined", { names: ctx.msg.new_chat_members.map((user) => user.first_name) }));
bot.on("message:forum_topic_created", (ctx) => report("topic opened", { name: ctx.msg.forum_topic_created.name }));
bot.catch((failed) => report("uncaught", { message: String(failed.error) }));

untilInputEnds(() => bot.stop());
const updates = ["message", "edited_message", "callback_query", "message_reaction", "poll_answer", "poll", "my_chat_member"];
await perform("stopped", async () => {
  await bot.start({ allowed_updates: updates, onStart: (me) => report("connected", { me }) });
}, describe);
