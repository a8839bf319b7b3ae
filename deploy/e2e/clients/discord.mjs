// A bot with discord.js. Users tell it what to do with the first word of a message.
import {
  ActionRowBuilder, ActivityType, ButtonBuilder, ButtonStyle, Client, DiscordAPIError, Events,
  GatewayIntentBits, MessageFlags, Partials, SlashCommandBuilder,
} from "discord.js";
import { perform, report, untilInputEnds } from "./program.mjs";

const { TOKEN: token, BASE: base, INTENTS: without } = process.env;
const wanted = ["Guilds", "GuildMembers", "GuildMessages", "GuildMessageReactions", "GuildMessagePolls", "GuildMessageTyping",
  "DirectMessages", "DirectMessageReactions", "MessageContent"];
const intents = wanted.filter((name) => name !== without).map((name) => GatewayIntentBits[name]);
const client = new Client({ intents, partials: [Partials.Channel, Partials.Message, Partials.Reaction], rest: { api: `${base}/api` } });

const describe = (error) => ({
  code: error.code, status: error.status, form: error instanceof DiscordAPIError ? JSON.stringify(error.rawError.errors) : undefined,
});
const sent = (message) => ({ id: message.id, channel: message.channelId, content: message.content, flags: message.flags.bitfield });
const row = (...buttons) => new ActionRowBuilder().addComponents(buttons);
const button = (id) => new ButtonBuilder().setCustomId(id).setLabel(id).setStyle(ButtonStyle.Primary);
const docs = new ButtonBuilder().setURL("https://example.com").setLabel("Docs").setStyle(ButtonStyle.Link);
const fetched = (message, id) => message.channel.messages.fetch({ message: id, force: true });

const steps = {
  say: async (message, text) => sent(await message.channel.send(text)),
  answer: async (message, text) => sent(await message.reply(text)),
  answerTo: async (message, id) => sent(await message.channel.send({ content: "to", reply: { messageReference: id } })),
  answerOrSay: async (message, id) =>
    sent(await message.channel.send({ content: "anyway", reply: { messageReference: id, failIfNotExists: false } })),
  burst: async (message, count) => ({ ids: await Promise.all(Array.from({ length: Number(count) }, async (_, n) => (await message.channel.send(`number ${n}`)).id)) }),
  long: async (message, length) => sent(await message.channel.send("x".repeat(Number(length)))),
  quiet: async (message) => sent(await message.channel.send({ content: "@everyone https://example.com", allowedMentions: { parse: [] }, flags: MessageFlags.SuppressEmbeds })),
  edit: async (message, text) => sent(await (await message.channel.send("draft")).edit(text)),
  editTo: async (message, id) => sent(await message.channel.messages.edit(id, "edited")),
  delete: async (message) => {
    const made = await message.channel.send("to be deleted");
    await made.delete();
    return sent(made);
  },
  deleteId: async (message, id) => message.channel.messages.delete(id),
  history: async (message) => ({ contents: [...(await message.channel.messages.fetch({ limit: 3 })).values()].map((m) => m.content) }),
  get: async (message, id) => sent(await fetched(message, id)),
  thread: async (message, name) => {
    const thread = await message.startThread({ name, autoArchiveDuration: 60 });
    return { ...sent(await thread.send("in the thread")), thread: thread.id, parent: thread.parentId, joined: thread.joined };
  },
  to: async (_, id) => sent(await (await client.channels.fetch(id)).send("elsewhere")),
  file: async (message, text) => {
    const made = await message.channel.send({ content: "a note", files: [{ attachment: Buffer.from(text), name: "note.txt" }] });
    const [file] = made.attachments.values();
    return { ...sent(made), name: file.name, type: file.contentType, text: await (await fetch(file.url)).text() };
  },
  empty: async (message) => sent(await message.channel.send({ content: " " })),
  read: async (message) => ({ text: await (await fetch(message.attachments.first().url)).text(), voice: message.flags.has(MessageFlags.IsVoiceMessage) }),
  buttons: async (message) => {
    const made = await message.channel.send({ content: "choose", components: [row(button("yes"), button("no"), docs)] });
    return { ...sent(made), ids: made.components[0].components.map((c) => c.customId) };
  },
  sameButtons: async (message) => sent(await message.channel.send({ content: "choose", components: [row(button("yes"), button("yes"))] })),
  rows: async (message) => sent(await message.channel.send({ content: "choose", components: [0, 1, 2, 3, 4, 5].map((n) => row(button(`b${n}`))) })),
  react: async (message, emoji) => {
    const { emoji: made } = await message.react(emoji);
    return { emoji: made.name };
  },
  unreact: async (message, id) => {
    const reaction = (await fetched(message, id)).reactions.cache.first();
    await reaction.users.remove();
    return { emoji: reaction.emoji.name };
  },
  poll: async (message) => {
    const made = await message.channel.send({ poll: { question: { text: "Tea?" }, answers: [{ text: "Yes" }, { text: "No", emoji: "👎" }], duration: 1, allowMultiselect: false } });
    return { ...sent(made), question: made.poll.question.text, answers: made.poll.answers.map((answer) => answer.text) };
  },
  longPoll: async (message) => sent(await message.channel.send({ poll: { question: { text: "x".repeat(301) }, answers: [{ text: "Yes" }], duration: 1, allowMultiselect: false } })),
  endPoll: async (message, id) => {
    const ended = await (await fetched(message, id)).poll.end();
    return { finalized: ended.poll.resultsFinalized, voters: (await ended.poll.answers.get(1).voters.fetch()).map((user) => user.displayName) };
  },
  menu: async () => {
    const ask = new SlashCommandBuilder().setName("ask").setDescription("ask me").addStringOption((option) => option.setName("text").setDescription("what"));
    await client.application.commands.create(ask);
    return { names: (await client.application.commands.fetch()).map((command) => command.name) };
  },
  badMenu: async () => client.application.commands.create({ name: "Ask Me", description: "ask me" }),
  typing: async (message) => message.channel.sendTyping(),
  private: async (message, text) => sent(await message.author.send(text)),
  status: async () => client.user.setPresence({ activities: [{ name: "tests", type: ActivityType.Watching }] }) && {},
  login: async (_, other) => new Client({ intents: [], rest: { api: `${base}/api` } }).login(other),
};

client.on(Events.MessageCreate, (message) => {
  if (message.author.bot || message.system) return undefined;
  const [, name, rest] = /^(?:<@\d+> )?(\w*) ?(.*)$/s.exec(message.content);
  const step = steps[name];
  if (step) return perform(name, () => step(message, rest), describe);
  return report("message", {
    ...sent(message), author: message.author.displayName, mentioned: message.mentions.has(client.user), guild: message.guildId, type: message.type,
    answered: message.reference?.messageId, files: message.attachments.map((file) => file.name), stickers: message.stickers.map((sticker) => sticker.name),
  });
});
client.on(Events.MessageUpdate, (_, message) => message.author?.bot || !message.editedTimestamp || report("edited", sent(message)));
client.on(Events.MessageDelete, (message) => report("deleted", { id: message.id }));
client.on(Events.MessageReactionAdd, (reaction, user) => user.id !== client.user.id && report("reaction", { emoji: reaction.emoji.name, message: reaction.message.id }));
client.on(Events.MessageReactionRemove, (reaction) => report("reaction removed", { emoji: reaction.emoji.name }));
client.on(Events.MessagePollVoteAdd, (answer, user) => report("vote", { answer: answer.id, user }));
client.on(Events.ThreadCreate, (thread) => report("thread opened", { name: thread.name }));
client.on(Events.ThreadUpdate, (_, thread) => report("thread changed", { name: thread.name, archived: thread.archived, locked: thread.locked }));
client.on(Events.GuildMemberAdd, (member) => report("joined", { name: member.displayName }));
client.on(Events.GuildMemberRemove, (member) => report("left", { name: member.displayName }));
client.on(Events.InteractionCreate, (interaction) => perform("interaction", async () => {
  if (interaction.isButton()) {
    await interaction.deferUpdate();
    await interaction.message.edit({ content: `chosen: ${interaction.customId}`, components: [] });
    return { button: interaction.customId, user: interaction.user.displayName, message: interaction.message.id };
  }
  await interaction.reply({ content: `asked: ${interaction.options.getString("text")}` });
  const again = await interaction.reply("again").catch((error) => error.code);
  return { command: interaction.commandName, again };
}, describe));
client.on(Events.ShardReady, () => report("ready"));
client.on(Events.ShardResume, (_, replayed) => report("resumed", { replayed }));
client.on(Events.ShardReconnecting, () => report("reconnecting"));
client.on(Events.ShardDisconnect, ({ code }) => report("disconnected", { code }));
client.on(Events.ShardError, (error) => report("shard error", { message: error.message }));
client.on(Events.Error, (error) => report("uncaught", { message: String(error) }));
client.once(Events.ClientReady, () => report("connected", { user: client.user.username, guilds: client.guilds.cache.map((guild) => guild.name) }));

untilInputEnds(() => client.destroy());
await perform("login", () => client.login(token).then(() => ({})), describe);
