// The chat page: connects the tabs, their logs, the outbox, the composer and the stream.

import { Api } from "./api.js";
import { Composer } from "./composer.js";
import { Log, fill } from "./log.js";
import { Outbox } from "./outbox.js";
import { Stream } from "./stream.js";
import { Tabs, isTopic, name, topicInAddress } from "./tabs.js";

const page = document.getElementById("main");
const { folder, assistant } = page.dataset;
const title = document.title;
const api = new Api(`/chat/${folder}`);
const topics = new Map(); // topic → {log, unread, working}
let lastID = Number(page.dataset.lastId); // the newest row received from the stream

const outbox = new Outbox(folder, {
  send: (entry) => api.send(entry),
  changed: showUnsent,
  stored: (entry, id) => {
    // The row itself follows through the stream and replaces this one.
    const { log } = topicOf(entry.topic);
    if (!log.has(id)) log.show({ id, direction: "in", topic: entry.topic, sender: "", content: entry.text, timestamp: entry.at });
  },
  ended: () => showConnection("ended"),
});

const tabs = new Tabs(document.getElementById("tabs"), openTopic);
const composer = new Composer(document.getElementById("composer"), folder, send);

const stream = new Stream({
  url: () => `${api.base}/events?view=page&after=${lastID}`,
  probe: `${api.base}/topics`,
  on: { message: receive, change: (row, id) => { lastID = id; topics.get(row.topic)?.log.update(row); }, typing: ({ topics: working }) => showWorking(working) },
  state: (state) => {
    showConnection(state);
    if (state !== "open") return showWorking([]);
    outbox.flush();
    loadTopics();
    topics.get(tabs.active)?.log.begin();
  },
});

// topicOf returns the state of a topic, with a new tab if the page has none.
function topicOf(topic) {
  if (topics.has(topic)) return topics.get(topic);
  const panel = fill("panel");
  panel.id = `panel-${topics.size}`;
  panel.hidden = true;
  const log = new Log(panel, {
    load: async (before) => api.messages(topic, before),
    retry: (entry) => outbox.retry(entry),
    discard: (entry) => outbox.discard(entry),
    vote: (id, options) => api.vote(id, options),
  });
  const state = { log, unread: 0, working: false };
  topics.set(topic, state);
  document.getElementById("panels").append(panel);
  tabs.add(topic, panel);
  return state;
}

function openTopic(topic) {
  const { log } = topicOf(topic);
  for (const each of topics.values()) each.log.panel.hidden = each.log !== log;
  log.begin();
  composer.switchTo(topic);
  read(topic);
}

function receive(row) {
  const state = topicOf(row.topic);
  const isNew = !state.log.has(row.id);
  if (isNew && row.direction === "in") {
    outbox.claim(row);
    showUnsent();
  }
  state.log.show(row);
  lastID = row.id;
  if (!isNew || row.direction === "in" || row.topic === tabs.active && !document.hidden) return;
  state.unread++;
  updateTab(row.topic);
}

function read(topic) {
  topicOf(topic).unread = 0;
  updateTab(topic);
}

function showWorking(working) {
  working.forEach(topicOf);
  for (const [topic, state] of topics) {
    state.working = working.includes(topic);
    state.log.setTyping(state.working && assistant);
    updateTab(topic);
  }
}

function updateTab(topic) {
  const { unread, working } = topics.get(topic);
  tabs.note(topic, unread, working);
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
function send(topic, text) {
  if (text === "#") return tabs.open("");
  if (isTopic(text)) return tabs.open(text);
  outbox.add(topic, text);
  topicOf(topic).log.toEnd();
}

function showConnection(state) {
  const status = document.getElementById("connection");
  if (state !== "ended") {
    status.textContent = state === "lost" ? "Reconnecting…" : "";
    return;
  }
  const link = document.createElement("a");
  link.href = `/login?next=${encodeURIComponent(location.pathname)}`;
  link.textContent = "Log in again";
  status.replaceChildren("Your login has ended. ", link);
}

async function loadTopics() {
  try {
    for (const { topic } of await api.topics()) topicOf(topic);
  } catch {
    // Tried again when the stream is back.
  }
}

function setUpNewTopic() {
  const opener = document.getElementById("open-topic");
  const form = document.getElementById("new-topic");
  const field = form.querySelector("input");
  const unfold = (open) => {
    form.hidden = !open;
    opener.ariaExpanded = String(open);
    (open ? field : opener).focus();
  };
  opener.addEventListener("click", () => unfold(form.hidden));
  form.addEventListener("keydown", (event) => { if (event.key === "Escape") unfold(false); });
  field.addEventListener("input", () => field.setCustomValidity(""));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const topic = "#" + field.value.trim().replace(/^#/, "");
    if (!isTopic(topic)) {
      field.setCustomValidity("Letters, digits, _ and - only, as in #deploy.");
      field.reportValidity();
      return;
    }
    field.value = "";
    unfold(false);
    tabs.open(topic);
    composer.focus();
  });
}

// The address holds the topic, so a link to a place in the page must not change it.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("text").focus();
});
document.addEventListener("visibilitychange", () => { if (!document.hidden) read(tabs.active); });
setUpNewTopic();
topicOf("");
tabs.open(topicInAddress());
composer.focus();
showUnsent();
outbox.flush();
stream.start();
