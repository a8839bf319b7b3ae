// The log: the messages of one topic in the order of their ids, the unsent ones, and the typing
// indicator. Each row is shown once, even if it arrives repeatedly or out of order.

import { setTime } from "./time.js";

const nearEnd = 60; // px from the end that count as "at the end"
const nearTop = 80; // px from the top at which earlier messages are fetched

export class Log {
  #rows = new Map(); // id → element
  #options;
  #log; #unsent; #typing; #earlier; #newer; #empty;
  #shownUnsent = "[[],false]";
  #state = "new"; // of the history: new, loading, failed, partial or whole
  #following = true; // whether the reader is at the end and stays there

  // panel: a filled template "panel".
  // load: returns {messages, more} before an id, or the newest for 0.
  // retry, discard: called by the buttons of a refused message.
  constructor(panel, options) {
    this.panel = panel;
    this.#options = options;
    [this.#log, this.#unsent, this.#typing, this.#earlier, this.#newer, this.#empty] =
      [".log", ".unsent", ".typing", ".earlier", ".newer", ".empty"].map((part) => panel.querySelector(part));
    this.#earlier.addEventListener("click", () => this.#load());
    this.#newer.addEventListener("click", () => this.toEnd());
    panel.addEventListener("scroll", () => this.#scrolled());
    // The panel shrinks when the composer grows or a phone's keyboard opens.
    new ResizeObserver(() => { if (this.#following) this.toEnd(); }).observe(panel);
  }

  has(id) {
    return this.#rows.has(id);
  }

  // begin fetches the newest messages unless they are loaded.
  begin() {
    if (this.#state === "new" || this.#state === "failed") this.#load();
  }

  // show puts a row, new or known, in its place.
  show(row) {
    this.#change(() => this.#put(row));
  }

  // update shows a row again that has changed, unless it is not shown.
  update(row) {
    if (this.has(row.id)) this.show(row);
  }

  // showUnsent replaces the unsent messages, unless they are the same: a button that has the focus
  // must not be replaced needlessly.
  showUnsent(entries, failing) {
    const shown = JSON.stringify([entries, failing]);
    if (shown === this.#shownUnsent) return;
    this.#shownUnsent = shown;
    this.#change(() => this.#unsent.replaceChildren(...entries.map((entry) => this.#unsentMessage(entry, failing))));
  }

  setTyping(name) {
    const text = name ? `${name} is working…` : "";
    if (this.#typing.textContent !== text) this.#change(() => { this.#typing.textContent = text; });
  }

  async #load() {
    if (this.#state === "loading") return;
    this.#state = "loading";
    this.#log.ariaBusy = "true"; // a screen reader does not read the history out
    try {
      const { messages, more } = await this.#options.load(Number(this.#log.firstElementChild?.dataset.id ?? 0));
      this.#keepPlace(() => messages.forEach((row) => this.#put(row)));
      this.#state = more ? "partial" : "whole";
    } catch {
      this.#state = "failed";
    }
    this.#earlier.textContent = this.#state === "failed" ? "Not loaded. Try again" : "Earlier messages";
    if (this.#state === "whole" && document.activeElement === this.#earlier) this.panel.focus();
    this.#change(() => { this.#earlier.hidden = this.#state === "whole"; });
    this.#log.ariaBusy = "false";
  }

  #put(row) {
    const element = message(row);
    if (row.poll) element.append(ballot(row, this.#options.vote));
    this.#rows.get(row.id)?.remove();
    this.#rows.set(row.id, element);
    let next = null;
    for (let each = this.#log.lastElementChild; each && each.dataset.id > row.id; each = each.previousElementSibling) {
      next = each;
    }
    this.#log.insertBefore(element, next);
  }

  #unsentMessage(entry, failing) {
    const element = fill("unsent");
    element.dataset.clientId = entry.client_id;
    element.classList.add(entry.problem ? "refused" : "pending");
    element.querySelector(".body").textContent = entry.text;
    element.querySelector(".about").textContent = entry.problem ? `Not sent: ${entry.problem}`
      : failing ? "Not sent yet, kept for the next attempt" : "Sending…";
    if (entry.problem) element.querySelector(".about").role = "alert";
    element.querySelector(".choices").hidden = !entry.problem;
    element.querySelector(".retry").addEventListener("click", () => this.#options.retry(entry));
    element.querySelector(".discard").addEventListener("click", () => this.#options.discard(entry));
    return element;
  }

  // #change alters the end: a reader there stays there, one who has scrolled up stays in place and
  // sees a button.
  #change(alter) {
    const height = this.#log.scrollHeight;
    alter();
    this.#empty.hidden = this.#state !== "whole" || this.#rows.size + this.#unsent.childElementCount > 0;
    if (this.#following) this.toEnd();
    else if (this.#log.scrollHeight > height) this.#newer.hidden = false;
  }

  // #keepPlace alters what is above; what is visible stays in place.
  #keepPlace(alter) {
    const below = this.panel.scrollHeight - this.panel.scrollTop;
    alter();
    if (this.#following) this.toEnd();
    else this.panel.scrollTop = this.panel.scrollHeight - below;
  }

  toEnd() {
    this.#following = true;
    this.#newer.hidden = true;
    this.panel.scrollTop = this.panel.scrollHeight;
  }

  #scrolled() {
    if (this.panel.hidden) return; // a hidden panel's sizes are all 0
    const { scrollHeight, scrollTop, clientHeight } = this.panel;
    this.#following = scrollHeight - scrollTop - clientHeight < nearEnd;
    if (this.#following) this.#newer.hidden = true;
    if (scrollTop < nearTop && this.#state === "partial") this.#load();
  }
}

// fill makes an element from a template of the page.
export function fill(id) {
  return document.getElementById(id).content.firstElementChild.cloneNode(true);
}

function message(row) {
  const element = fill("message");
  element.dataset.id = row.id;
  element.classList.add(row.direction, row.source || "unknown");
  element.querySelector(".sender").textContent = row.sender_name || row.sender;
  setTime(element.querySelector("time"), row.timestamp);
  const body = element.querySelector(".body");
  if (row.direction === "out") {
    body.innerHTML = row.html; // rendered and sanitised by the server
    letScroll(body);
  } else {
    body.textContent = row.content;
  }
  element.querySelector(".note").textContent = row.deleted ? "deleted" : row.edited ? "edited" : "";
  if (row.deleted) body.remove();
  element.querySelector(".files").append(...(row.files ?? []).map(attachment));
  element.querySelector(".reactions").append(...(row.reactions ?? []).map(reaction));
  return element;
}

// attachment is a link to a file, or a picture; the reason for a file that is not there.
function attachment(file) {
  const item = document.createElement("li");
  if (!file.url) {
    item.textContent = file.error ? `${file.name}: ${file.error}` : `${file.name} is not stored`;
    return item;
  }
  const link = document.createElement("a");
  link.href = file.url;
  if (file.image) {
    const picture = document.createElement("img");
    picture.src = file.url;
    picture.alt = file.name;
    picture.loading = "lazy";
    link.append(picture);
  } else {
    link.download = file.name;
    link.textContent = file.name;
  }
  item.append(link);
  return item;
}

// ballot is a form to vote in a poll. A vote replaces the one before.
function ballot(row, vote) {
  const form = document.createElement("form");
  form.className = "ballot";
  const options = row.poll.options.map((text, i) => {
    const label = document.createElement("label");
    const field = document.createElement("input");
    field.type = row.poll.multiple ? "checkbox" : "radio";
    field.name = "option";
    field.value = i + 1;
    label.append(field, ` ${text}`);
    return label;
  });
  const button = document.createElement("button");
  button.textContent = "Vote";
  const about = document.createElement("span");
  about.role = "status";
  form.append(...options, button, about);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const chosen = new FormData(form).getAll("option").map(Number);
    about.textContent = "";
    about.textContent = await vote(row.id, chosen) || (chosen.length ? "Voted" : "Vote withdrawn");
  });
  return form;
}

function reaction(emoji) {
  const item = document.createElement("li");
  item.textContent = emoji;
  return item;
}

// letScroll makes wide content scroll within the column, also by keyboard.
function letScroll(body) {
  for (const table of body.querySelectorAll("table")) {
    const box = document.createElement("div");
    box.className = "scroll";
    table.replaceWith(box);
    box.append(table);
  }
  for (const wide of body.querySelectorAll("pre, .scroll")) wide.tabIndex = 0;
}
