// Keys: / goes to the search box, g and a letter to a page, j and k through a list, ? shows them all.

import { setTimes } from "./time.js";

const pages = {
  o: "/", m: "/messages", t: "/turns", s: "/spend", f: "/figures", l: "/lost", w: "/chat/", c: "/chats", a: "/approvals",
  e: "/engagement", g: "/groups", r: "/routes", h: "/audit",
};
const rows = "#facts :is(.messages > li, .hits > li, tbody tr, .routes > li, .entries > li), .chats > li";
const maxGap = 1_500; // ms between g and its letter

const linkTo = (path) => document.querySelector(`.side a[href="${path}"]`);

let pressedG = -maxGap;

// move gives the focus to the main link of the next row, or of the one before.
function move(step) {
  const links = [...document.querySelectorAll(rows)].filter((row) => row.checkVisibility())
    .map((row) => row.querySelector("th a, .text a") ?? row.querySelector("a")).filter(Boolean);
  const at = links.findIndex((link) => link.closest(rows).contains(document.activeElement));
  const next = links[at < 0 ? 0 : Math.min(Math.max(at + step, 0), links.length - 1)];
  next?.focus();
}

function search() {
  const box = document.getElementById("search");
  if (box.checkVisibility()) box.select(), box.focus();
  else location.href = "/search";
}

// help shows the keys in a dialog, which Escape closes.
function help() {
  const dialog = document.createElement("dialog");
  dialog.className = "keys";
  dialog.setAttribute("aria-labelledby", "keys-title");
  const title = document.createElement("h2");
  title.id = "keys-title";
  title.textContent = "Keys";
  const list = document.createElement("dl");
  const add = (keys, words) => {
    const line = document.createElement("div");
    for (const [tag, text] of [["dt", keys], ["dd", words]]) line.appendChild(document.createElement(tag)).textContent = text;
    list.append(line);
  };
  const inChat = document.getElementById("composer");
  if (inChat) add("Enter", "send"), add("Shift Enter", "a new line"), add("↑", "edit your last message"), add("← →", "the topic before or after, on the tabs");
  add("/", "search");
  add("j k Enter", "next, previous, open");
  add("d", "times as dates");
  for (const [key, path] of Object.entries(pages)) {
    const link = linkTo(path);
    if (link) add(`g ${key}`, link.firstChild.textContent.trim());
  }
  const close = document.createElement("button");
  close.textContent = "Close";
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  dialog.append(title, list, close);
  document.body.append(dialog);
  dialog.showModal();
}

const actions = { "/": search, "?": help, j: () => move(1), k: () => move(-1), d: setTimes };

document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
  if (target.closest("input, textarea, select, dialog, [contenteditable], [role=tablist]")) return;
  const afterG = event.timeStamp - pressedG < maxGap;
  pressedG = key === "g" && !afterG ? event.timeStamp : -maxGap;
  const page = afterG && linkTo(pages[key]);
  const action = actions[key];
  if (!page && !(action && !afterG)) return;
  event.preventDefault();
  if (page) page.click();
  else action();
});
