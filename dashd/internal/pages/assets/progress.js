// The work of agents on answers that are not there yet: what they say of it is fetched when it has changed, and shown
// until the answer takes its place.

import { fill, letScroll } from "./elements.js";

const statusAfter = 10_000; // ms until a chat that shows a line of status shows it
const statusEvery = 2_000; // ms between two fetches for such a line
const retryAfter = 2_000; // ms
const sayEvery = 10_000; // ms between two announcements to screen readers
const maxTools = 5; // that are shown, the newest

const marks = { pending: "○", in_progress: "◐", running: "◐", completed: "●", done: "●", failed: "✕" };
const words = { pending: "to do", in_progress: "under way", running: "running", completed: "done", done: "done", failed: "failed" };

// Progress fetches what the agents of a chat say of their work.
export class Progress {
  #options;
  #running = {}; // turn → the time of its last change, as announced
  #shown = new Map(); // turn → what was fetched
  #shows = "live"; // how much the chat shows: live, status or off
  #busy = false;
  #again = false;
  #timer = 0;

  // load: returns {shows, turns}.
  // show: is called with each turn whose work has changed.
  // gone: is called with each turn that has ended, once what it has answered is fetched.
  // settled: returns a promise that is resolved once what is new is fetched.
  constructor(options) {
    this.#options = options;
  }

  // announced takes in which turns run, each with the time of the last change of its work.
  announced(running) {
    this.#running = running;
    for (const [id, turn] of this.#shown) if (!(id in running)) this.#end(id, turn);
    if (Object.entries(running).some(([id, at]) => this.#shown.get(Number(id))?.updated_at !== at)) this.#fetch();
  }

  // begin forgets what the chat showed of the work before: its settings may have changed.
  begin() {
    this.#shows = "live";
  }

  // lost ends all, as it is not known which turns run.
  lost() {
    this.announced({});
  }

  async #end(id, turn) {
    this.#shown.delete(id);
    await this.#options.settled();
    if (!this.#shown.has(id)) this.#options.gone(turn);
  }

  async #fetch() {
    this.#again = true;
    if (this.#busy || this.#shows === "off") return;
    clearTimeout(this.#timer);
    this.#busy = true;
    while (this.#again) {
      this.#again = false;
      try {
        const { shows, turns } = await this.#options.load();
        this.#shows = shows;
        turns.forEach((turn) => this.#take(turn));
      } catch {
        this.#timer = setTimeout(() => this.#fetch(), retryAfter); // the connection says what is wrong
        break;
      }
      if (this.#shows !== "live") break;
    }
    this.#busy = false;
    if (this.#again && this.#shows === "status") this.#timer = setTimeout(() => this.#fetch(), statusEvery);
  }

  // #take shows a turn, unless it has ended meanwhile.
  #take(turn) {
    if (!(turn.turn_id in this.#running) || this.#shown.get(turn.turn_id)?.updated_at === turn.updated_at) return;
    this.#shown.set(turn.turn_id, turn);
    this.#options.show({ ...turn, shows: this.#shows });
  }
}

// Preview is the work on one turn in the log of its topic.
export class Preview {
  #body; #plan; #tools; #line; #spoken;
  #html = "";
  #answeredAt = 0; // unix ms; the text before is a message
  #saidAt = 0;
  #now = ""; // what was read out last
  #said = 0; // how many sentences of the text were read out
  #timer = 0;

  // spoken: the element that screen readers read out.
  constructor(sender, spoken) {
    this.element = fill("progress");
    this.element.querySelector(".sender").textContent = sender;
    [this.#body, this.#plan, this.#tools, this.#line] = [".body", ".plan", ".tools", ".line"].map((part) => this.element.querySelector(part));
    this.#spoken = spoken;
  }

  show(turn) {
    clearTimeout(this.#timer);
    const now = doing(turn);
    if (turn.shows === "status") {
      const left = statusAfter - turn.running_ms;
      const write = () => { this.element.hidden = false; this.#line.textContent = now; this.#say(now); };
      this.element.hidden = left > 0;
      if (left > 0) this.#timer = setTimeout(write, left);
      else write();
      return;
    }
    const html = turn.updated_at > this.#answeredAt ? turn.html ?? "" : "";
    this.#write(html);
    this.#plan.replaceChildren(...turn.plan.map(({ content, status }) => item(content, status)));
    const tools = turn.tools.slice(-maxTools);
    this.#tools.replaceChildren(...tools.map(({ title, id, status }) => item(title || id, status)));
    this.element.hidden = !html && !turn.plan.length && !tools.length;
    const whole = sentences(this.#body.innerText).slice(0, -1); // the last one may grow
    if (whole.length > this.#said) this.#say(whole.slice(this.#said).join(" "), whole.length);
    else if (!this.#said) this.#say(now);
  }

  // answered takes the text away that is a message since at, and returns how many sentences of it were read out.
  answered(at) {
    const said = this.#said;
    this.#answeredAt = at;
    this.#said = 0;
    this.#write("");
    this.element.hidden = !this.#plan.childElementCount && !this.#tools.childElementCount;
    return said;
  }

  remove() {
    clearTimeout(this.#timer);
    this.element.remove();
    if (this.#spoken.textContent === this.#now) this.#spoken.textContent = "";
  }

  // #write replaces what has changed from the first part on: what is before keeps its selection.
  #write(html) {
    if (html === this.#html) return;
    this.#html = html;
    const next = document.createElement("div");
    next.innerHTML = html; // rendered and sanitised by the server
    letScroll(next);
    const before = [...this.#body.childNodes], after = [...next.childNodes];
    let same = 0;
    while (same < before.length && same < after.length && before[same].isEqualNode(after[same])) same++;
    before.slice(same).forEach((node) => node.remove());
    this.#body.append(...after.slice(same));
  }

  // #say lets a screen reader read something out, unless it has, or has just read something else, or reads nothing of a
  // topic that is not open. said is how many sentences are read out by then.
  #say(now, said = 0) {
    if (!now || document.hidden || this.#spoken.closest("[hidden]") || this.#spoken.textContent === now || Date.now() - this.#saidAt < sayEvery) return;
    this.#saidAt = Date.now();
    this.#said = said;
    this.#spoken.textContent = this.#now = now;
  }
}

// sentences are those of a text; the last one may be a part.
export function sentences(text) {
  return text.split(/(?<=[.!?:…]["”')]*)\s+|(?<=[。！？])|\n{2,}/).filter(Boolean);
}

// doing is what an agent does, in a line.
function doing({ state, tools, plan }) {
  if (state === "requires_action") return "Waits for you";
  const tool = tools.findLast(({ status }) => status === "running") ?? tools.findLast(({ status }) => status === "pending");
  const step = plan.find(({ status }) => status === "in_progress");
  return tool ? tool.title || tool.id : step ? step.content : state === "idle" ? "Waits" : "Works on the answer";
}

function item(text, status) {
  const element = document.createElement("li");
  element.className = status;
  const mark = document.createElement("span");
  mark.className = "mark-of";
  mark.ariaHidden = "true";
  mark.textContent = marks[status] ?? "";
  const label = document.createElement("bdi");
  label.textContent = text;
  const state = document.createElement("span");
  state.className = "hidden";
  state.textContent = `, ${words[status] ?? status}`;
  element.append(mark, " ", label, state);
  return element;
}
