// The chat page: connects the tabs, their logs, the outbox, the composer and the news.

import { takeBack } from "./again.js";
import { Api } from "./api.js";
import { Composer } from "./composer.js";
import { Connection } from "./connection.js";
import { fill } from "./elements.js";
import { Files } from "./files.js";
import { Log } from "./log.js";
import { News } from "./news.js";
import { Outbox } from "./outbox.js";
import { Pane } from "./pane.js";
import { Progress } from "./progress.js";
import { Search } from "./search.js";
import { Seen } from "./seen.js";
import { Tabs, isTopic, name, topicInAddress } from "./tabs.js";

const page = document.getElementById("main");
const { folder, assistant, maxFile, maxFiles } = page.dataset;
const title = document.title;
const api = new Api(`/chat/${folder}`);
const topics = new Map(); // topic → {log, unread, working, last}
const own = document.getElementById("connection").dataset.login;
const seen = new Seen();

const files = new Files();
const outbox = new Outbox(folder, {
  send: post,
  kept: (chosen) => files.kept(idsOf(chosen)),
  gone: ({ files: sent = [] }) => files.remove(idsOf(sent)),
  changed: showUnsent,
  stored: (entry, id) => {
    // The row itself follows with the news and replaces this one.
    const { log } = topicOf(entry.topic);
    if (!log.has(id)) log.show({ id, direction: "in", topic: entry.topic, sender: "", content: entry.text, timestamp: entry.at, files: entry.files?.map(({ name }) => ({ name, error: "sent" })) });
  },
  ended: () => connection.ended(),
});

const tabs = new Tabs(document.getElementById("tabs"), openTopic);
const composer = new Composer(document.getElementById("composer"), folder, { files, maxFile: Number(maxFile), maxFiles: Number(maxFiles), send, last: (topic) => topicOf(topic).log.last(), takeBack: (topic, id) => takeBack(api, topic, id) });
const pane = new Pane(folder, seen, (topic) => tabs.open(topic));
new Search({
  find: (text) => api.search(text),
  open: async ({ id, topic }) => {
    tabs.open(topic);
    if (!await topicOf(topic).log.reveal(id)) location.assign(`/messages/${id}`); // too far up
  },
});

const news = new News(Number(page.dataset.lastId), {
  load: (after) => api.news(after),
  show: (row) => {
    if (row.change) topics.get(row.topic)?.log.update(row);
    else receive(row);
  },
  failed: (error) => {
    if (error?.status === 401) connection.ended();
    else if (error?.status === 409) location.reload(); // the database was restored
    else connection.outdated(error?.status ? error.message : null); // without an answer, the connection says why
  },
});

const progress = new Progress({
  load: () => api.progress(),
  show: (turn) => topicOf(turn.topic).log.showWork(turn, assistant),
  gone: ({ topic, turn_id }) => topicOf(topic).log.endWork(turn_id),
  settled: () => news.settled(),
});

const connection = new Connection({
  advice: "Messages you send now go out once you are connected again.",
  open: () => {
    news.reach();
    progress.begin();
    outbox.flush();
    loadTopics();
    topics.get(tabs.active)?.log.begin();
  },
  changed: ({ chats }) => {
    pane.changed(chats);
    news.reach(chats[folder] ?? 0);
  },
  typing: ({ chats, waits = {}, stopped }) => {
    showWorking(chats[folder] ?? [], waits[folder] ?? {});
    const paused = document.getElementById("paused");
    paused.textContent = stopped ? paused.dataset.words : "";
  },
  progress: ({ chats }) => progress.announced(chats[folder] ?? {}),
  lost: () => {
    showWorking([], {});
    progress.lost();
  },
});

// topicOf returns the state of a topic, with a new tab if the page has none.
function topicOf(topic) {
  if (topics.has(topic)) return topics.get(topic);
  const panel = fill("panel");
  panel.querySelector(topic ? ".welcome" : ".none").remove();
  panel.querySelectorAll("[data-word]").forEach((word) => word.addEventListener("click", () => composer.insert(word.dataset.word)));
  panel.id = `panel-${topics.size}`;
  panel.hidden = true;
  const log = new Log(panel, {
    own,
    load: async (before, limit) => api.messages(topic, before, limit),
    again: (last) => again(topic, last),
    edit: (last) => composer.edit(last),
    retry,
    discard: (entry) => outbox.discard(entry),
    cancel: (entry) => outbox.cancel(entry),
    stop: () => outbox.add(topic, "/stop", []),
    undo: (turn) => api.undo(turn),
    vote: (id, options) => api.vote(id, options),
    answer: (id, option) => api.answer(id, option),
  });
  const state = { log, unread: 0, working: false, last: 0, title: "", archived: false };
  topics.set(topic, state);
  document.getElementById("panels").append(panel);
  tabs.add(topic, panel);
  pane.topic(topic, state, tabs.active);
  return state;
}

function openTopic(topic) {
  foldOpen();
  const { log } = topicOf(topic);
  for (const each of topics.values()) each.log.panel.hidden = each.log !== log;
  log.begin();
  composer.switchTo(topic);
  read(topic);
  for (const [each, state] of topics) pane.topic(each, state, topic);
}

function receive(row) {
  const state = topicOf(row.topic);
  const isNew = !state.log.has(row.id);
  if (isNew && row.direction === "in") {
    outbox.claim(row);
    showUnsent();
  }
  state.log.show(row);
  state.last = Math.max(state.last, row.id);
  if (isNew) state.archived = false;
  if (row.moved_from) for (const { log } of topics.values()) log.moved(row.moved_from, row.topic);
  if (row.topic === tabs.active && !document.hidden) read(row.topic);
  else updateTab(row.topic);
  if (!isNew || row.direction === "in" || row.topic === tabs.active && !document.hidden) return;
  state.unread++;
  updateTab(row.topic);
}

function read(topic) {
  const state = topicOf(topic);
  state.unread = 0;
  seen.reach(placeOf(topic), state.last);
  updateTab(topic);
}

// placeOf is the name of a topic for Seen.
function placeOf(topic) {
  return folder + (topic || "#");
}

// showWorking says in which topics agents work, and which wait for another attempt, each as {for, until}.
function showWorking(working, waits) {
  [...working, ...Object.keys(waits)].forEach(topicOf);
  for (const [topic, state] of topics) {
    state.working = working.includes(topic);
    state.log.setTyping(state.working ? assistant : "", waits[topic]);
    updateTab(topic);
  }
}

function updateTab(topic) {
  const state = topics.get(topic);
  tabs.note(topic, state);
  pane.topic(topic, state, tabs.active);
  const all = [...topics.values()].reduce((sum, each) => sum + each.unread, 0);
  document.title = all ? `(${all}) ${title}` : title;
}

function showUnsent() {
  const entries = outbox.visible();
  entries.forEach((entry) => topicOf(entry.topic));
  for (const [topic, { log }] of topics) {
    log.showUnsent(entries.filter((entry) => entry.topic === topic), outbox.failing);
  }
}

// send opens the tab of a bare "#name", and the main tab for a bare "#".
function send(topic, text, chosen) {
  if (!chosen.length && text === "#") return tabs.open("");
  if (!chosen.length && isTopic(text)) return tabs.open(text);
  outbox.add(topic, text, chosen);
  topicOf(topic).log.toEnd();
}

// again sends the last message of one's own once more, and answers a problem.
async function again(topic, { id, text, files: old }) {
  const copies = await Promise.all(old.map((file) => files.copy(file))).catch(() => null);
  const problem = copies ? await takeBack(api, topic, id) : "its files cannot be fetched";
  if (problem) return problem;
  outbox.add(topic, text, copies);
  topicOf(topic).log.toEnd();
  return "";
}

// post sends an entry of the outbox, with its files if it has some.
async function post(entry, signal) {
  if (!entry.files) return api.send(entry);
  const contents = await Promise.all(entry.files.map(({ id }) => files.get(id)));
  const missing = entry.files.filter((_, i) => !contents[i]).map(({ name }) => name);
  if (missing.length) return { status: 0, missing };
  return api.upload(entry, contents, { signal, progress: (part) => topicOf(entry.topic).log.showProgress(entry.client_id, part) });
}

// retry sends a refused message again. One whose files are gone goes back into the box.
function retry(entry) {
  if (!entry.missing) return outbox.retry(entry);
  outbox.discard(entry);
  tabs.open(entry.topic);
  composer.insert(entry.text);
}

function idsOf(chosen) {
  return chosen.map(({ id }) => id);
}

async function loadTopics() {
  try {
    for (const { topic, last_id: last, title = "", archived = false } of await api.topics()) {
      const state = topicOf(topic);
      Object.assign(state, { title, archived: archived && last >= state.last }); // a newer message brings it back
      state.last = Math.max(state.last, last);
      if (topic === tabs.active && !document.hidden) read(topic);
      else if (seen.isUnread(placeOf(topic), last) && !state.unread) state.unread = 1;
      updateTab(topic);
    }
  } catch {
    // Tried again with the next connection.
  }
}

let foldOpen = () => {}; // closes the form that is open

// folded makes a form that a button opens, in place of another one. begin is called before it opens; what is returned
// opens or closes it.
function folded(opener, form, begin = () => {}) {
  const unfold = (open) => {
    foldOpen();
    foldOpen = open ? () => { form.hidden = true; opener.ariaExpanded = "false"; } : () => {};
    if (open) begin();
    form.hidden = !open;
    opener.ariaExpanded = String(open);
    (open ? form.querySelector("input") : opener).focus();
  };
  opener.addEventListener("click", () => unfold(form.hidden));
  form.addEventListener("keydown", (event) => { if (event.key === "Escape") unfold(false); });
  return unfold;
}

// setUpTopic is the form that renames or archives the open topic.
function setUpTopic() {
  const form = document.getElementById("topic-form");
  const [field, status] = [form.querySelector("input"), form.querySelector("[role=status]")];
  const [archive, unarchive] = form.querySelectorAll("[data-archived]");
  let topic; // whose form is open
  const unfold = folded(document.getElementById("edit-topic"), form, () => {
    topic = tabs.active;
    const { title, archived } = topicOf(topic);
    [field.value, field.placeholder, status.textContent] = [title, name(topic), ""];
    [archive.hidden, unarchive.hidden] = [archived || !topic, !archived];
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const edited = topic, state = topicOf(edited), title = field.value.trim(), pressed = event.submitter?.dataset.archived;
    const archived = pressed ? pressed === "true" : state.archived;
    status.textContent = await api.editTopic(edited, title, archived);
    if (status.textContent) return;
    Object.assign(state, { title, archived });
    if (tabs.active === edited) {
      unfold(false);
      if (pressed === "true") tabs.open("");
    }
    updateTab(edited);
  });
}

function setUpNewTopic() {
  const form = document.getElementById("new-topic");
  const field = form.querySelector("input");
  const unfold = folded(document.getElementById("open-topic"), form);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const title = field.value.trim(), topic = topicNamed(title);
    field.value = "";
    unfold(false);
    tabs.open(topic);
    composer.focus();
    if (topic === `#${title.replace(/^#/, "")}` || await api.editTopic(topic, title, false)) return;
    topicOf(topic).title = title;
    updateTab(topic);
  });
}

// topicNamed is the topic that a name like "On call" opens: #on-call.
function topicNamed(title) {
  const topic = `#${title.replace(/^#/, "")}`;
  if (isTopic(topic)) return topic;
  const word = title.normalize("NFKD").toLowerCase().replace(/\p{M}/gu, "").replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60);
  return `#${word || "topic"}${word && !topics.has(`#${word}`) ? "" : `-${topics.size}`}`;
}

// The address holds the topic, so a link to a place in the page must not change it.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("text").focus();
});
document.addEventListener("visibilitychange", () => { if (!document.hidden) read(tabs.active); });
setUpNewTopic();
setUpTopic();
topicOf("");
tabs.open(topicInAddress());
composer.focus();
showUnsent();
outbox.flush();
files.clean(() => outbox.entries().flatMap((entry) => idsOf(entry.files ?? [])));
connection.start();
