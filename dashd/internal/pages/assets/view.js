// A page for operators: it is fetched again whenever something has changed. What was typed, what is open and what has the
// focus stay.

import { setServerTime } from "./time.js";
import { Connection } from "./connection.js";
import { backoff } from "./stream.js";

const minGap = 1_000; // ms between two requests
const maxDelay = 30_000; // ms between attempts
const timeout = 20_000; // ms

const facts = document.getElementById("facts");

const fields = "input:not([type=hidden]), textarea, select";

// key finds an element again after the fragment was replaced: by its id, else by its place among its likes.
function key(element, likes) {
  return element.id || `${likes}:${[...facts.querySelectorAll(likes)].indexOf(element)}`;
}

function find(key, likes) {
  return document.getElementById(key) ?? facts.querySelectorAll(likes)[Number(key.split(":").at(-1))];
}

function remember() {
  const focused = facts.contains(document.activeElement) ? document.activeElement : null;
  const likes = focused?.matches(fields) ? fields : "a, button, summary, [tabindex]";
  return {
    changed: [...facts.querySelectorAll(fields)].filter(isChanged).filter((field) => field.id),
    open: [...facts.querySelectorAll("details[id]")].map((details) => [details.id, details.open]),
    focused, likes, at: focused && key(focused, likes),
  };
}

function isChanged(field) {
  if (field === document.activeElement) return true;
  if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
  if (field.options) return [...field.options].some((option) => option.selected !== option.defaultSelected);
  return field.value !== field.defaultValue;
}

function restore({ changed, open, focused, likes, at }) {
  for (const before of changed) {
    const field = document.getElementById(before.id);
    if (!field) continue;
    field.value = before.value;
    if ("checked" in before) field.checked = before.checked;
  }
  for (const [id, isOpen] of open) {
    const details = document.getElementById(id);
    if (details) details.open = isOpen;
  }
  const now = at && find(at, likes);
  if (!now) return;
  now.focus({ preventScroll: true });
  if (focused.selectionStart != null && now.setSelectionRange) now.setSelectionRange(focused.selectionStart, focused.selectionEnd);
}

function show(html) {
  const state = remember();
  facts.innerHTML = html; // rendered by the server from templates that escape
  restore(state);
}

// Fragment keeps the page as the server renders it. Nothing is fetched while the page is hidden.
class Fragment {
  #tag = facts.dataset.tag;
  #connection = new Connection({ open: () => this.#want(), changed: () => this.#want() });
  #wanted = false;
  #busy = false;
  #failures = 0;
  #notBefore = 0;
  #timer = 0;

  start() {
    document.addEventListener("visibilitychange", () => this.#plan());
    this.#connection.start();
  }

  #want() {
    this.#wanted = true;
    this.#plan();
  }

  #plan() {
    if (!this.#wanted || this.#busy || document.hidden) return;
    clearTimeout(this.#timer);
    const left = this.#notBefore - Date.now();
    this.#timer = setTimeout(() => this.#fetch(), left > maxDelay ? minGap : left); // the clock may have been set back
  }

  async #fetch() {
    if (document.hidden) return; // planned again when it is shown
    this.#busy = true;
    this.#wanted = false;
    const failed = await this.#load();
    this.#failures = failed ? this.#failures + 1 : 0;
    this.#notBefore = Date.now() + (failed ? backoff(this.#failures, minGap, maxDelay) : minGap);
    this.#wanted ||= failed;
    this.#busy = false;
    this.#plan();
  }

  // #load reports whether to try again.
  async #load() {
    try {
      const answer = await fetch(location.pathname + location.search, {
        headers: { "Accept": "application/json", "If-None-Match": this.#tag },
        cache: "no-store", signal: AbortSignal.timeout(timeout),
      });
      setServerTime(Date.parse(answer.headers.get("Date")));
      if (answer.status === 401) this.#connection.ended();
      if (answer.status === 401) return false;
      if (answer.ok) {
        const { html } = await answer.json();
        this.#tag = answer.headers.get("ETag");
        show(html); // only if it has changed: a click that has begun must find its button
      } else if (answer.status !== 304) {
        const { error } = await answer.json().catch(() => ({}));
        this.#connection.outdated(error?.message ?? `the server answers with ${answer.status}`);
        return answer.status >= 500;
      }
      this.#connection.outdated(null);
      return false;
    } catch {
      return true;
    }
  }
}

if (facts.dataset.tag) new Fragment().start();
