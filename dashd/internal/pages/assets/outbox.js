// The outbox holds the messages that are not known to be stored. It survives a reload.
//
// Each message has its own key in localStorage, so that several pages of one chat never
// overwrite each other's. Any of them may send it: the server takes a client_id only once.

import { backoff } from "./stream.js";

const firstDelay = 1_000, maxDelay = 30_000; // ms between attempts

export class Outbox {
  failing = false; // whether the last attempt failed and will be retried
  #prefix;
  #options;
  #inMemory = new Map(); // messages that localStorage has no room for
  #claimed = new Set(); // client_ids whose row is on the page already
  #turn = Promise.resolve();
  #failures = 0;
  #timer = 0;

  // folder: the chat's group.
  // send: sends an entry to the server, see Api.send.
  // changed: is called when the visible entries may have changed.
  // stored: is called with an entry and the id of its row.
  // ended: is called when the server wants a login.
  constructor(folder, options) {
    this.#prefix = `arizuko.outbox:${folder}:`;
    this.#options = options;
    addEventListener("storage", () => options.changed());
    addEventListener("online", () => this.flush());
  }

  // entries are the messages in the order they were written:
  // {client_id, topic, text, at, problem?}. One with a problem waits for the user.
  entries() {
    const kept = Object.keys(localStorage)
      .filter((key) => key.startsWith(this.#prefix))
      .map((key) => parse(localStorage.getItem(key)))
      .filter((entry) => entry?.client_id);
    return [...kept, ...this.#inMemory.values()].sort((a, b) => a.at - b.at);
  }

  // visible returns the entries without a row on the page.
  visible() {
    return this.entries().filter((entry) => entry.problem || !this.#claimed.has(entry.client_id));
  }

  add(topic, text) {
    const newest = this.entries().at(-1)?.at ?? 0;
    this.#keep({ client_id: newID(), topic, text, at: Math.max(Date.now(), newest + 1) });
    this.flush();
  }

  retry(entry) {
    this.#keep({ ...entry, problem: undefined });
    this.flush();
  }

  discard(entry) {
    this.#forget(entry);
    this.#options.changed();
  }

  // claim hides the entry that a new row seems to be: the event with the row can arrive before the
  // answer to the request that made it.
  claim(row) {
    const own = this.visible().find((entry) => !entry.problem && entry.topic === row.topic && entry.text === row.content);
    if (own) this.#claimed.add(own.client_id);
  }

  // flush sends the entries one after the other. Pages of one chat take turns where the browser has
  // locks (it has none on plain http from another machine), which saves requests.
  flush() {
    const drain = () => this.#drain();
    this.#turn = this.#turn
      .then(() => navigator.locks ? navigator.locks.request(this.#prefix, drain) : drain())
      .catch((error) => console.error(error)); // the next flush must run nevertheless
  }

  async #drain() {
    clearTimeout(this.#timer);
    for (let next; (next = this.entries().find((entry) => !entry.problem)); ) {
      this.#options.changed();
      if (!await this.#send(next)) {
        this.#timer = setTimeout(() => this.flush(), backoff(this.#failures++, firstDelay, maxDelay));
        break;
      }
      this.#failures = 0;
    }
    this.#options.changed();
  }

  // #send reports whether the entry was stored or refused, so that the next one can be sent.
  async #send(entry) {
    const { status, id, problem } = await this.#options.send(entry);
    this.failing = status !== 202 && temporary(status);
    if (status === 202) {
      this.#forget(entry);
      this.#options.stored(entry, id);
      return true;
    }
    if (status === 401) this.#options.ended();
    if (this.failing) return false;
    this.#keep({ ...entry, problem: problem ?? `The server answered ${status}.` });
    return true;
  }

  #keep(entry) {
    try {
      localStorage.setItem(this.#prefix + entry.client_id, JSON.stringify(entry));
      this.#inMemory.delete(entry.client_id);
    } catch {
      this.#inMemory.set(entry.client_id, entry);
    }
    this.#options.changed();
  }

  #forget({ client_id }) {
    localStorage.removeItem(this.#prefix + client_id);
    this.#inMemory.delete(client_id);
    this.#claimed.delete(client_id);
  }
}

// temporary reports whether a retry, perhaps after a login, can succeed.
function temporary(status) {
  return status === 0 || status >= 500 || [401, 408, 429].includes(status);
}

function parse(json) {
  try {
    return JSON.parse(json);
  } catch {
    return null;
  }
}

// newID is made by hand because crypto.randomUUID is missing on plain http.
function newID() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
