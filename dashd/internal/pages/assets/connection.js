// The connection of a page: its state in words, and what the page does with its events.

import { connect, ownWorker } from "./live.js";

const patience = 2_000; // ms; what lasts no longer is not shown

export class Connection {
  #shown = document.getElementById("connection");
  #spoken = document.getElementById("connection-spoken");
  #handlers;
  #advice;
  #source;
  #state = { kind: "connecting", since: Date.now() };
  #offlineSince = 0;
  #timer = 0;
  #showsProblem = false;
  #outdated = null; // why the page is not up to date, while there is a connection
  #isOldVersion = false;

  // open: is called once the page receives events, and each time it does so again: what has changed meanwhile is unknown.
  // changed, typing, progress: are called with the data of these events.
  // lost: is called when it is shown that there is no connection.
  // advice: what to know while there is none.
  constructor({ advice = "", ...handlers }) {
    this.#handlers = handlers;
    this.#advice = advice;
    if (!navigator.onLine) this.#offlineSince = Date.now();
    addEventListener("offline", () => { this.#offlineSince = Date.now(); this.#update(); });
    addEventListener("online", () => { this.#offlineSince = 0; this.#update(); });
    this.#update();
  }

  start() {
    this.#source = connect({
      event: (name, data) => name === "hello" ? this.#hello(data) : this.#handlers[name]?.(data),
      changed: (state) => { this.#state = state; this.#update(); },
    });
  }

  // ended: a request was answered so that the login has ended. The stream asks again, as the answer may be older than a new
  // login, and says it to all pages.
  ended() {
    this.#source.verify();
  }

  // outdated shows while there is a connection that the page is not up to date, and why; null for a page that is.
  outdated(reason) {
    this.#outdated = reason;
    this.#update();
  }

  #hello({ worker, login }) {
    if (login !== this.#shown.dataset.login) {
      this.#source.close();
      this.#state = { kind: "other", since: Date.now() };
      return this.#update();
    }
    this.#isOldVersion = worker !== ownWorker;
    this.#update();
    this.#handlers.open();
  }

  #update() {
    clearTimeout(this.#timer);
    const words = this.#words();
    if (!words) {
      if (this.#showsProblem) this.#say("Connected again.");
      this.#showsProblem = false;
      return this.#show("live", this.#connected());
    }
    const isFinal = ["ended", "other"].includes(this.#state.kind);
    if (!isFinal && !this.#showsProblem) {
      const began = this.#offlineSince || this.#state.since;
      const left = began + patience - Date.now();
      if (left > 0) {
        this.#timer = setTimeout(() => this.#update(), left);
        return;
      }
    }
    this.#show(this.#state.kind, words);
    if (isFinal || !this.#showsProblem) this.#say(this.#shown.textContent); // once, whatever the reasons are then
    if (!this.#showsProblem) this.#handlers.lost?.();
    this.#showsProblem = true;
  }

  #connected() {
    if (this.#outdated) return [`This page is not up to date: ${this.#outdated}.`];
    if (this.#isOldVersion) return ["There is a new version. ", link(location.href, "Reload the page"), " to use it."];
    return ["Live"];
  }

  // #words are what is wrong, null if nothing is.
  #words() {
    const { kind, since, problem } = this.#state;
    if (kind === "ended") return ["Your login has ended. ", link(`/login?next=${encodeURIComponent(location.pathname + location.search)}`, "Log in again"), "."];
    if (kind === "other") return ["Another user has logged in with this browser. ", link(location.href, "Reload the page"), "."];
    const words = this.#offlineSince ? `You have been offline since ${time(this.#offlineSince)}.`
      : {
        open: "",
        connecting: "Connecting…",
        lost: `No connection since ${time(since)}. Reconnecting…`,
        stopping: `The server stopped at ${time(since)}. Reconnecting…`,
        refused: `No connection since ${time(since)}: ${problem}. Trying again…`,
      }[kind];
    return words ? [words, this.#advice && ` ${this.#advice}`] : null;
  }

  #show(kind, words) {
    this.#shown.dataset.state = kind;
    const before = this.#shown.textContent;
    const next = document.createElement("p");
    next.append(...words);
    if (next.textContent !== before) this.#shown.replaceChildren(...next.childNodes); // a link may have the focus
  }

  #say(words) {
    if (this.#spoken.textContent !== words) this.#spoken.textContent = words; // else it would be read again
  }
}

function time(at) {
  return new Date(at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}

function link(address, words) {
  const element = document.createElement("a");
  element.href = address;
  element.textContent = words;
  return element;
}
