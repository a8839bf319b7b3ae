// The outbox holds the messages that are not known to be stored. It survives a reload.
//
// Each message has its own key in localStorage, so that several pages of one chat never
// overwrite each other's. Any of them may send it: the server takes a client_id only once. A message whose
// files are not kept by the browser is in sessionStorage, of the one page that has them.

import { backoff } from "./stream.js";

const firstDelay = 1_000, maxDelay = 30_000; // ms between attempts

export class Outbox {
  failing = ""; // why the last attempt failed and will be retried
  sending = ""; // client_id of the message with files that this page is sending
  #prefix;
  #options;
  #abort = null; // of that one
  #kept = new Set(); // client_ids of messages whose files survive a reload
  #inMemory = new Map(); // messages that localStorage has no room for
  #claimed = new Set(); // client_ids whose row is on the page already
  #turn = Promise.resolve();
  #failures = 0;
  #timer = 0;

  // folder: the chat's group.
  // send: sends an entry to the server, see Api.send. Its second argument has the signal of an abort. It may answer
  // {missing}: the names of files that the browser has not kept.
  // kept: returns a promise of whether the files of a message survive a reload.
  // gone: is called with an entry that is not needed any more.
  // changed: is called when the visible entries may have changed.
  // stored: is called with an entry and the id of its row.
  // ended: is called when the server wants a login.
  constructor(folder, options) {
    this.#prefix = `arizuko.outbox:${folder}:`;
    this.#options = options;
    addEventListener("storage", () => {
      this.#checkSending();
      options.changed();
    });
    addEventListener("online", () => this.flush());
    for (const entry of this.entries()) if (entry.files) this.#keepFiles(entry);
  }

  // entries are the messages in the order they were written:
  // {client_id, topic, text, at, files?: [{id, name, size}], problem?, missing?}. One with a problem waits for the user;
  // missing are the names of files that have to be chosen again.
  entries() {
    const kept = [localStorage, sessionStorage].flatMap((storage) => Object.keys(storage)
      .filter((key) => key.startsWith(this.#prefix))
      .map((key) => parse(storage.getItem(key)))
      .filter((entry) => entry?.client_id));
    const all = new Map([...kept, ...this.#inMemory.values()].map((entry) => [entry.client_id, entry]));
    return [...all.values()].sort((a, b) => a.at - b.at);
  }

  // visible returns the entries without a row on the page.
  visible() {
    return this.entries().filter((entry) => entry.problem || !this.#claimed.has(entry.client_id));
  }

  add(topic, text, files = []) {
    const newest = this.entries().at(-1)?.at ?? 0;
    const entry = { client_id: newID(), topic, text, at: Math.max(Date.now(), newest + 1) };
    if (files.length) entry.files = files;
    this.#keep(entry);
    if (files.length) this.#keepFiles(entry);
    this.flush();
  }

  // #keepFiles lets other pages, and this one after it was closed, send an entry once its files are kept.
  async #keepFiles({ client_id, files }) {
    if (!await this.#options.kept(files)) return;
    this.#kept.add(client_id);
    const entry = this.entries().find((each) => each.client_id === client_id);
    if (entry) this.#keep(entry);
  }

  retry(entry) {
    this.#keep({ ...entry, problem: undefined });
    this.flush();
  }

  discard(entry) {
    this.#forget(entry);
    this.#options.changed();
  }

  // cancel stops sending a message. The user may try again.
  cancel(entry) {
    this.#keep({ ...entry, problem: "cancelled" });
    this.#checkSending();
  }

  // #checkSending ends the upload of a message that was cancelled, perhaps by another page.
  #checkSending() {
    if (!this.sending) return;
    const entry = this.entries().find(({ client_id }) => client_id === this.sending);
    if (!entry || entry.problem) this.#abort.abort();
  }

  // claim hides the entry that a new row seems to be: the event with the row can arrive before the
  // answer to the request that made it.
  claim(row) {
    const own = this.visible().find((entry) => !entry.problem && entry.topic === row.topic && entry.text === row.content && sizes(entry) === sizes(row));
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
    this.#abort = new AbortController();
    const { signal } = this.#abort;
    if (entry.files) this.sending = entry.client_id;
    this.#options.changed();
    const { status, id, problem, missing } = await this.#options.send(entry, signal);
    this.sending = "";
    if (status === 202) {
      this.failing = "";
      this.#forget(entry);
      this.#options.stored(entry, id);
      return true;
    }
    if (signal.aborted) return true; // and what was cancelled waits for the user
    if (status === 401) this.#options.ended();
    this.failing = missing || !temporary(status) ? "" : status === 503 && problem || "no answer";
    if (this.failing) return false;
    if (!this.entries().some(({ client_id }) => client_id === entry.client_id)) return true; // another page has sent it
    if (missing) this.#keep({ ...entry, missing, problem: `choose ${missing.join(", ")} again, this browser has not kept ${missing.length > 1 ? "them" : "it"}` });
    else this.#keep({ ...entry, problem: problem ?? `The server answered ${status}.` });
    return true;
  }

  #keep(entry) {
    const key = this.#prefix + entry.client_id;
    const shared = !entry.files || this.#kept.has(entry.client_id) || localStorage.getItem(key) !== null;
    const [storage, other] = shared ? [localStorage, sessionStorage] : [sessionStorage, localStorage];
    try {
      storage.setItem(key, JSON.stringify(entry));
      other.removeItem(key);
      this.#inMemory.delete(entry.client_id);
    } catch {
      this.#inMemory.set(entry.client_id, entry);
    }
    this.#options.changed();
  }

  #forget(entry) {
    const { client_id } = entry;
    localStorage.removeItem(this.#prefix + client_id);
    sessionStorage.removeItem(this.#prefix + client_id);
    this.#inMemory.delete(client_id);
    this.#claimed.delete(client_id);
    this.#kept.delete(client_id);
    this.#options.gone(entry);
  }
}

// sizes are those of a message's files, to compare two messages.
function sizes({ files = [] }) {
  return files.map(({ size }) => size).join();
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
export function newID() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
