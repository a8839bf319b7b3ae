// The log: the messages of one topic in the order of their ids, the unsent ones, the answers that are being written, and
// the typing indicator. Each row is shown once, even if it arrives repeatedly or out of order.

import { offer } from "./again.js";
import { textOf } from "./bubble.js";
import { fill } from "./elements.js";
import { ballot, choices, fileLine, leadTo, message } from "./message.js";
import { Preview, sentences } from "./progress.js";
import { backoff } from "./stream.js";

const firstDelay = 500, maxDelay = 15_000; // ms between attempts to load
const quietAfter = 60_000; // ms without a sign of the agent until users read that
const readAfter = 10_000; // ms after which a text that only screen readers get has been read out
const nearEnd = 60; // px from the end that count as "at the end"
const nearTop = 80; // px from the top at which earlier messages are fetched
const attempts = { retry: "The agent failed.", machine: "The agent can’t be started right now.", probe: "The agent fails for all messages." };
const toEnd = "To the newest";
const maxSteps = 25, step = 200; // pages, and messages of each, that are loaded to show one that was searched for

export class Log {
  #rows = new Map(); // id → element
  #late = new Map(); // id → row that has changed while the history was being loaded
  #options;
  #previews = new Map(); // turn → Preview
  #log; #unsent; #progress; #typing; #spoken; #stop; #earlier; #newer; #empty;
  #shownUnsent = '[[],""]';
  #again; // the buttons of the last message of one's own
  #loading = null; // a promise while the history is being loaded
  #failures = 0;
  #timer = 0;
  #working = ""; // the agent that works, "" for none
  #waits = ""; // for another attempt, in words
  #quiet = 0; // the timer of an agent that gives no sign
  #rereading = false;
  #state = "new"; // of the history: new, loading, failed, partial or whole
  #following = true; // whether the reader is at the end and stays there
  #top = 0; // where the panel was scrolled to

  // panel: a filled template "panel".
  // load: returns {messages, more} before an id, or the newest for 0.
  // own: the login whose messages are one's own; again sends the last of them again, and returns a problem; edit changes it.
  // stop: called by the button that stops the agent.
  // undo: takes a turn back, and returns a problem, "" for none.
  // retry, discard: called by the buttons of a refused message; cancel by that of one whose files are being sent.
  constructor(panel, options) {
    this.panel = panel;
    this.#options = options;
    [this.#log, this.#unsent, this.#progress, this.#typing, this.#spoken, this.#stop, this.#earlier, this.#newer, this.#empty] =
      [".log", ".unsent", ".in-progress", ".typing", ".progress-spoken", ".stop", ".earlier", ".newer", ".empty"].map((part) => panel.querySelector(part));
    this.#earlier.addEventListener("click", () => this.#load());
    this.#newer.addEventListener("click", () => { panel.focus({ preventScroll: true }); this.toEnd(); });
    this.#newer.addEventListener("blur", () => { if (this.#following) this.#newer.hidden = true; });
    this.#newer.textContent = toEnd;
    this.#stop.addEventListener("click", () => options.stop());
    this.#again = offer({ again: () => options.again(this.last()), edit: () => options.edit(this.last()) });
    panel.addEventListener("scroll", () => this.#scrolled());
    // The panel shrinks when the composer grows or a phone's keyboard opens, and the log grows when a picture has loaded.
    const sizes = new ResizeObserver(() => { if (this.#following) this.toEnd(); });
    [panel, this.#log].forEach((element) => sizes.observe(element));
  }

  has(id) {
    return this.#rows.has(id);
  }

  // begin fetches the newest messages unless they are loaded.
  begin() {
    if (this.#state === "new" || this.#state === "failed") this.#load();
  }

  // last is the newest message of one's own, as {id, text, files: [{name, url}]}, null for none that can be sent again.
  last() {
    const element = [...this.#log.children].findLast((each) => each.dataset.own);
    if (element?.dataset.own !== "again" || this.#working || this.#waits) return null;
    const files = [...element.querySelectorAll(".files a")].map((link) => ({ name: link.querySelector("img")?.alt ?? link.textContent, url: link.href }));
    return { id: Number(element.dataset.id), text: element.querySelector(".body").textContent, files };
  }

  // reveal scrolls to a message, and reports whether it is there.
  async reveal(id) {
    for (let i = 0; i < maxSteps && !this.has(id) && this.#state !== "whole"; i++) {
      await this.#load(step);
      if (this.#state === "failed") break;
    }
    const element = this.#rows.get(id);
    if (!element) return false;
    this.#following = false;
    this.#log.querySelector(".found")?.classList.remove("found");
    element.classList.add("found");
    element.tabIndex = -1;
    element.focus({ preventScroll: true });
    element.scrollIntoView({ block: "center" });
    return true;
  }

  // moved links a message that is shown to the topic that answers it.
  moved(id, topic) {
    const element = this.#rows.get(id);
    if (element) this.#change(() => leadTo(element, topic));
  }

  // #offerAgain keeps the buttons under the last message of one's own.
  #offerAgain() {
    const last = this.last();
    const at = last && this.#rows.get(last.id);
    if (at === this.#again.parentElement) return;
    if (this.#again.contains(document.activeElement)) this.panel.focus();
    if (at) at.append(this.#again);
    else this.#again.remove();
  }

  // show puts a row, new or known, in its place.
  show(row) {
    if (row.turn_id && (row.deleted || row.source === "replay" && !this.has(row.id))) this.#reread();
    this.#change(() => {
      const said = row.direction === "out" && !row.deleted && !this.has(row.id) && this.#previews.get(row.turn_id)?.answered(row.timestamp);
      this.#put(row, said);
    });
  }

  // showWork shows what an agent says of its work on a turn.
  showWork(turn, sender) {
    this.#change(() => {
      let preview = this.#previews.get(turn.turn_id);
      if (!preview) {
        this.#previews.set(turn.turn_id, preview = new Preview(sender, this.#spoken));
        this.#progress.append(preview.element);
      }
      preview.show(turn);
    });
    this.#heard({ asks: turn.state === "requires_action", uses: turn.tools.some(({ status }) => status === "running" || status === "pending") });
  }

  endWork(turn) {
    this.#change(() => this.#previews.get(turn)?.remove());
    this.#previews.delete(turn);
  }

  // update shows a row again that has changed, unless it is not shown.
  update(row) {
    if (this.has(row.id)) this.show(row);
    else if (this.#state === "loading") this.#late.set(row.id, row);
  }

  // #reread marks users' messages again, as a turn was taken back or done again: rows of users do not change by themselves.
  async #reread() {
    if (this.#rereading) return;
    this.#rereading = true;
    const { messages } = await this.#options.load(0).catch(() => ({ messages: [] })); // the next load shows it
    this.#rereading = false;
    messages.filter(({ id, undone }) => this.has(id) && this.#rows.get(id).classList.contains("undone") !== !!undone).forEach((row) => this.show(row));
  }

  // showUnsent replaces the unsent messages, but for those that are the same: a button that has the focus keeps it.
  showUnsent(entries, failing) {
    const shown = JSON.stringify([entries, failing]);
    if (shown === this.#shownUnsent) return;
    this.#shownUnsent = shown;
    const focused = document.activeElement, before = [...this.#unsent.children];
    const elements = entries.map((entry) => {
      const key = JSON.stringify([entry, failing]);
      return before.find((element) => element.dataset.shown === key) ?? this.#unsentMessage(entry, failing, key);
    });
    this.#change(() => this.#unsent.replaceChildren(...elements));
    if (this.#unsent.contains(focused)) focused.focus();
  }

  // showProgress shows how much of an unsent message's files is sent, from 0 to 1.
  showProgress(clientID, part) {
    const bar = this.#unsent.querySelector(`[data-client-id="${clientID}"] progress`);
    if (!bar) return;
    bar.hidden = false;
    bar.value = part;
    bar.textContent = `${Math.round(part * 100)} %`;
  }

  // setTyping says that an agent works, "" that none does, and then why the next attempt waits, and until when.
  setTyping(name, wait) {
    const waits = wait ? `${attempts[wait.for]} Next attempt at ${new Date(wait.until).toLocaleTimeString()}.` : "";
    if (name === this.#working && waits === this.#waits) return;
    [this.#working, this.#waits] = [name, waits];
    this.#heard();
  }

  // #heard notes a sign of the agent that works: that it asks users, or uses a tool. If there is no other for a while, unless
  // it is known what it waits for, users read that: its model may be overloaded, or gone.
  #heard({ asks = false, uses = false } = {}) {
    clearTimeout(this.#quiet);
    const name = this.#working;
    this.#showTyping(name ? asks ? `${name} waits for your answer.` : `${name} is working…` : this.#waits);
    if (name && !asks && !uses) this.#quiet = setTimeout(() => this.#showTyping(`${name} is working. No sign of it or its model for over a minute…`), quietAfter);
  }

  #showTyping(text) {
    if (this.#typing.textContent === text) return;
    this.#change(() => {
      this.#typing.textContent = text;
      if (!text && document.activeElement === this.#stop) this.panel.focus();
      this.#stop.hidden = !text;
      this.#offerAgain();
    });
  }

  #load(limit) {
    return this.#loading ??= this.#fetch(limit).finally(() => { this.#loading = null; });
  }

  async #fetch(limit) {
    clearTimeout(this.#timer);
    this.#state = "loading";
    this.#log.ariaBusy = "true"; // a screen reader does not read the history out
    try {
      const { messages, more } = await this.#options.load(Number(this.#log.firstElementChild?.dataset.id ?? 0), limit);
      // What is shown already is newer than this.
      const rows = messages.filter(({ id }) => !this.has(id)).map((row) => this.#late.get(row.id) ?? row);
      this.#keepPlace(() => rows.forEach((row) => this.#put(row)));
      this.#state = more ? "partial" : "whole";
      this.#failures = 0;
    } catch {
      this.#state = "failed";
      this.#timer = setTimeout(() => this.#load(), backoff(this.#failures++, firstDelay, maxDelay));
    }
    this.#late.clear();
    this.#earlier.textContent = this.#state === "failed" ? "Not loaded. Try again" : "Earlier messages";
    if (this.#state === "whole" && document.activeElement === this.#earlier) this.panel.focus();
    this.#change(() => { this.#earlier.hidden = this.#state === "whole"; });
    this.#log.ariaBusy = "false";
  }

  // #put puts a row in its place. A screen reader that has read out some sentences of its text reads out only the others.
  #put(row, said) {
    const element = message(row);
    if (said) element.querySelector(".body").setAttribute("aria-live", "off");
    if (row.direction === "in" && row.sender === this.#options.own && !row.content.startsWith("/stop")) element.dataset.own = isMessage(row) ? "again" : "other";
    if (row.poll) element.append(ballot(row, this.#options.vote));
    if (row.question) element.append(choices("Answer", row.question.options, (i) => this.#options.answer(row.id, i + 1)));
    if (row.undo_ms) element.append(this.#undoButton(row));
    const before = this.#rows.get(row.id);
    if (before?.contains(document.activeElement)) this.panel.focus(); // such as on a button that the row does not have any more
    before?.remove();
    this.#rows.set(row.id, element);
    let next = null;
    for (let each = this.#log.lastElementChild; each && each.dataset.id > row.id; each = each.previousElementSibling) {
      next = each;
    }
    this.#log.insertBefore(element, next);
    if (!said) return;
    const rest = sentences(textOf(element.querySelector(".body"))).slice(said).join(" ");
    this.#spoken.textContent = rest;
    setTimeout(() => { if (this.#spoken.textContent === rest) this.#spoken.textContent = ""; }, readAfter);
  }

  // #undoButton takes the turn of an answer back, for as long as it may be there.
  #undoButton(row) {
    const group = choices("Take back", ["Undo"], () => this.#options.undo(row.turn_id));
    group.className = "undo";
    group.firstChild.className = "quiet";
    setTimeout(() => {
      if (group.contains(document.activeElement)) this.panel.focus();
      this.#change(() => group.remove());
    }, row.undo_ms);
    return group;
  }

  #unsentMessage(entry, failing, key) {
    const element = fill("unsent");
    element.dataset.shown = key;
    element.dataset.clientId = entry.client_id;
    element.classList.add(entry.problem ? "refused" : "pending");
    element.querySelector(".body").textContent = entry.text;
    element.querySelector(".about").textContent = entry.problem ? `Not sent: ${entry.problem}`
      : failing ? `Not sent yet, kept for the next attempt${failing === "no answer" ? "" : `: ${failing}`}` : "Sending…";
    if (entry.problem) element.querySelector(".about").role = "alert";
    element.querySelector(".files").append(...(entry.files ?? []).map(({ name, size }) => fileLine(name, size)));
    const cancel = element.querySelector(".cancel");
    cancel.hidden = !entry.files || !!entry.problem;
    cancel.addEventListener("click", () => this.#options.cancel(entry));
    if (entry.missing) element.querySelector(".retry").textContent = "Choose again";
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
    this.#offerAgain();
    this.#empty.hidden = this.#state !== "whole" || this.#rows.size + this.#unsent.childElementCount + this.#previews.size > 0;
    if (this.#following) this.toEnd();
    else if (this.#log.scrollHeight > height) {
      this.#newer.textContent = "New messages";
      this.#newer.hidden = false;
    }
  }

  // #keepPlace alters what is above; what is visible stays in place.
  #keepPlace(alter) {
    const below = this.panel.scrollHeight - this.panel.scrollTop;
    alter();
    this.#offerAgain();
    if (this.#following) this.toEnd();
    else this.panel.scrollTop = this.panel.scrollHeight - below;
  }

  toEnd() {
    this.#following = true;
    this.#hideNewer();
    if (!this.#empty.hidden) return; // that is read from its beginning
    this.panel.scrollTop = this.panel.scrollHeight;
    this.#top = this.panel.scrollTop;
  }

  #hideNewer() {
    this.#newer.textContent = toEnd;
    if (this.#newer !== document.activeElement) this.#newer.hidden = true; // else the focus would be lost
  }

  #scrolled() {
    if (this.panel.hidden) return; // a hidden panel's sizes are all 0
    const { scrollHeight, scrollTop, clientHeight } = this.panel;
    // A reader leaves the end by scrolling up; a picture that loads just now moves the end away.
    this.#following = scrollHeight - scrollTop - clientHeight < nearEnd || this.#following && scrollTop >= this.#top;
    this.#top = scrollTop;
    if (this.#following) this.#hideNewer();
    else if (scrollHeight - scrollTop > 2 * clientHeight) this.#newer.hidden = false;
    if (scrollTop < nearTop && this.#state === "partial") this.#load();
  }
}

// isMessage reports whether a row can be sent again as it was: not a command, nor one for another topic, nor one whose
// files are gone.
function isMessage({ content, files = [], moved_to: moved }) {
  return !moved && !content.startsWith("/") && (content || files.length) && files.every(({ url }) => url);
}
