// A bot with Bolt, over Socket Mode or over the Events API. Users tell it what to do with the first word of a message.
import bolt from "@slack/bolt";
import { perform, report, untilInputEnds } from "./program.mjs";

const { TOKEN: token, APP_TOKEN: appToken, SECRET: signingSecret, BASE: base } = process.env;
const clientOptions = { slackApiUrl: `${base}/api/` };
const { App, HTTPReceiver, LogLevel, SocketModeReceiver } = bolt;
const logLevel = LogLevel.ERROR;
const receiver = appToken
  ? new SocketModeReceiver({ appToken, logLevel, clientPingTimeout: 1000, installerOptions: { clientOptions } }) // by it a reconnect waits, too
  : new HTTPReceiver({ signingSecret, logLevel });
const app = new App({ token, receiver, clientOptions, logLevel });
const { client } = app;

const describe = (error) => ({ code: error.code, error: error.data?.error, status: error.statusCode, needed: error.data?.needed, retryAfter: error.retryAfter });
const sent = ({ channel, ts, message }) => ({ channel, ts, thread: message?.thread_ts, text: message?.text });
const button = (id) => ({ type: "button", action_id: id, value: `${id}!`, text: { type: "plain_text", text: id } });
const section = (text) => ({ type: "section", text: { type: "mrkdwn", text } });
const download = async (url, bearer) => (await fetch(url, { headers: { authorization: `Bearer ${bearer}` } })).text();

const steps = {
  say: async ({ channel }, text) => sent(await client.chat.postMessage({ channel, text })),
  answer: async ({ channel, ts }, text) => sent(await client.chat.postMessage({ channel, thread_ts: ts, text })),
  answerTo: async ({ channel }, ts) => sent(await client.chat.postMessage({ channel, thread_ts: ts, text: "to" })),
  broadcast: async ({ channel, ts }, text) => sent(await client.chat.postMessage({ channel, thread_ts: ts, reply_broadcast: true, text })),
  burst: async ({ channel }, count) => ({ ids: await Promise.all(Array.from({ length: Number(count) }, async (_, n) => (await client.chat.postMessage({ channel, text: `number ${n}` })).ts)) }),
  long: async ({ channel }, length) => {
    const answer = await client.chat.postMessage({ channel, text: "x".repeat(Number(length)) });
    return { ...sent(answer), text: "", warnings: answer.response_metadata?.warnings };
  },
  blocks: async ({ channel }, count) =>
    sent(await client.chat.postMessage({ channel, text: "blocks", blocks: Array(Number(count)).fill({ type: "divider" }) })),
  quiet: async ({ channel }, text) => sent(await client.chat.postMessage({ channel, text, unfurl_links: false, unfurl_media: false })),
  marked: async ({ channel }) =>
    sent(await client.chat.postMessage({ channel, text: "marked", metadata: { event_type: "note", event_payload: { row: 7 } } })),
  edit: async ({ channel }, text) => {
    const { ts } = await client.chat.postMessage({ channel, text: "draft" });
    return sent(await client.chat.update({ channel, ts, text }));
  },
  editTo: async ({ channel }, ts) => sent(await client.chat.update({ channel, ts, text: "edited" })),
  longEdit: async ({ channel }, ts) => sent(await client.chat.update({ channel, ts, text: "x".repeat(4001) })),
  delete: async ({ channel }) => {
    const { ts } = await client.chat.postMessage({ channel, text: "to be deleted" });
    return sent(await client.chat.delete({ channel, ts }));
  },
  deleteTo: async ({ channel }, ts) => sent(await client.chat.delete({ channel, ts })),
  secret: async ({ channel, user }, text) => ({ ts: (await client.chat.postEphemeral({ channel, user, text })).message_ts }),
  file: async ({ channel, ts }, text) => {
    const { files } = await client.files.uploadV2({ channel_id: channel, thread_ts: ts, filename: "note.txt", content: text, initial_comment: "a note" });
    const { file } = await client.files.info({ file: files[0].files[0].id });
    const [share] = Object.values(file.shares.public ?? file.shares.private).flat();
    return { name: file.name, type: file.mimetype, thread: share.thread_ts, text: await download(file.url_private, token) };
  },
  empty: async ({ channel }) => client.files.uploadV2({ channel_id: channel, filename: "empty.txt", content: "" }).then(() => ({})),
  read: async ({ files }) => ({
    text: await download(files[0].url_private_download, token), page: (await download(files[0].url_private, "wrong")).slice(0, 15),
  }),
  buttons: async ({ channel }) =>
    sent(await client.chat.postMessage({ channel, text: "choose", blocks: [section("choose"), { type: "actions", elements: [button("yes"), button("no")] }] })),
  react: async ({ channel, ts }, name) => ({ ok: (await client.reactions.add({ channel, timestamp: ts, name })).ok }),
  reactTwice: async ({ channel, ts }) => {
    await client.reactions.add({ channel, timestamp: ts, name: "eyes" });
    return client.reactions.add({ channel, timestamp: ts, name: "eyes" }).then(() => ({}));
  },
  unreact: async ({ channel, ts }) => client.reactions.remove({ channel, timestamp: ts, name: "eyes" }).then(() => ({})),
  reactions: async ({ channel }, timestamp) => ({ names: (await client.reactions.get({ channel, timestamp, full: true })).message.reactions.map((r) => r.name) }),
  history: async ({ channel }) => ({ texts: (await client.conversations.history({ channel, limit: 3 })).messages.map((m) => m.text) }),
  pages: async ({ channel }) => {
    let count = 0;
    for await (const page of client.paginate("conversations.history", { channel, limit: 2 })) count += page.messages.length;
    return { count };
  },
  replies: async ({ channel }, ts) => ({ texts: (await client.conversations.replies({ channel, ts })).messages.map((m) => m.text) }),
  channels: async () => ({ names: (await client.conversations.list({ types: "public_channel,private_channel" })).channels.map((c) => c.name).sort() }),
  members: async ({ channel, user }) => ({
    name: (await client.users.info({ user })).user.real_name, info: (await client.conversations.info({ channel, include_num_members: true })).channel.name,
  }),
  stranger: async (_, user) => client.users.info({ user }).then(() => ({})),
  to: async (_, channel) => sent(await client.chat.postMessage({ channel, text: "elsewhere" })),
  unknown: async () => client.apiCall("chat.shout").then(() => ({})),
  // Without the retries that client has.
  once: async ({ channel }, text) => {
    const { client: other } = new App({ token, signingSecret: "x", clientOptions: { ...clientOptions, rejectRateLimitedCalls: true, retryConfig: { retries: 0 } } });
    return sent(await other.chat.postMessage({ channel, text }));
  },
  token: async ({ channel }, other) => sent(await client.chat.postMessage({ channel, text: "never", token: other })),
};

app.message(async ({ message, event }) => {
  if (message.subtype && !["file_share", "thread_broadcast"].includes(message.subtype)) return report(message.subtype, { event, text: message.message?.text, deleted: message.deleted_ts });
  if (message.bot_id) return undefined;
  const [, name, rest] = /^(?:<@\w+> )?(\w*) ?(.*)$/s.exec(message.text);
  const step = steps[name];
  if (step) return perform(name, () => step(message, rest), describe);
  return report("message", { text: message.text, user: message.user, channel: message.channel, kind: message.channel_type, thread: message.thread_ts, ts: message.ts });
});
app.event("app_mention", async ({ event, say }) => perform("mention", async () => {
  if (!event.text.includes("hello")) return { text: event.text };
  return { text: event.text, ...sent(await say({ text: `hello <@${event.user}>`, thread_ts: event.ts })) };
}, describe));
app.event("reaction_added", async ({ event }) => report("reaction", { name: event.reaction, user: event.user, ts: event.item.ts }));
app.event("reaction_removed", async ({ event }) => report("reaction removed", { name: event.reaction }));
app.event("member_joined_channel", async ({ event }) => report("joined", { user: event.user, channel: event.channel }));
app.event("channel_rename", async ({ event }) => report("renamed", { name: event.channel.name }));
app.action("yes", async ({ ack, body, action }) => perform("press", async () => {
  await ack();
  await client.chat.update({ channel: body.channel.id, ts: body.message.ts, text: "chosen: yes", blocks: [] });
  return { value: action.value, user: body.user.id, ts: body.message.ts };
}, describe));
app.action("no", async ({ ack, action, say }) => perform("press", async () => {
  await ack();
  return { value: action.value, ...sent(await say("said no")) };
}, describe));
app.command("/ask", async ({ command, ack }) => perform("command", async () => {
  await ack({ text: `asked: ${command.text}`, response_type: "in_channel" });
  return { text: command.text, user: command.user_id };
}, describe));
app.command("/quick", async ({ command, ack }) => ack(`quick: ${command.text}`));
app.error(async (error) => report("uncaught", { message: error.message }));

untilInputEnds(() => app.stop());
await perform("connected", async () => {
  const server = await app.start(0);
  const { user, team, bot_id: id } = await client.auth.test();
  return { user, team, id, port: server?.address?.()?.port };
}, describe);
