// The events for a page: by the worker that holds the stream of all pages of the browser, else by a stream of its own, as
// on phones without shared workers.

import { Stream } from "./stream.js";

const beatEvery = 10_000; // ms
const maxAnswer = 5_000; // ms until a worker that does not answer counts as dead
const maxStart = 10_000; // ms until a new worker answers
const minStay = 10_000; // ms between two moves from one worker to another
const maxHidden = 60_000; // ms until a hidden page closes a stream of its own

export const ownWorker = new URL("./worker.js", import.meta.url).pathname;

// connect calls event with the name and data of each event, and changed with the state of the stream, see Stream.
// It returns close, which closes the connection for good, and verify, which opens it again if it is open.
export function connect(handlers) {
  const useOwn = () => {
    source = new Own(handlers);
    source.open();
  };
  let source = globalThis.SharedWorker ? new Shared(handlers, useOwn) : new Own(handlers);
  const until = new AbortController();
  const listen = (target, event, handle) => target.addEventListener(event, handle, { signal: until.signal });
  listen(globalThis, "pagehide", () => source.close()); // else the page can't be kept for "back"
  listen(globalThis, "pageshow", ({ persisted }) => { if (persisted) source.open(); });
  listen(globalThis, "online", () => source.look());
  listen(document, "visibilitychange", () => document.hidden ? source.hide() : source.look());
  source.open();
  return {
    close() {
      until.abort();
      source.close();
    },
    verify: () => source.verify(),
  };
}

// Own is a stream of this page alone.
class Own {
  #stream;
  #hiding = 0;

  constructor(handlers) {
    this.#stream = new Stream({ url: "/events", ...handlers });
  }

  open() {
    this.#stream.start();
  }

  close() {
    clearTimeout(this.#hiding);
    this.#stream.stop();
  }

  look() {
    clearTimeout(this.#hiding);
    this.#stream.start();
    this.#stream.look();
  }

  verify() {
    this.#stream.verify();
  }

  hide() {
    this.#hiding = setTimeout(() => this.#stream.stop(), maxHidden);
  }
}

// Shared is the way to the worker; see worker.js for what they say to each other.
class Shared {
  #handlers;
  #useOwn;
  #url = ownWorker;
  #port = null;
  #hasAnswered = false;
  #movedAt = 0;
  #beat = 0;
  #deadline = 0;

  // useOwn is called if there is no worker to be had.
  constructor(handlers, useOwn) {
    this.#handlers = handlers;
    this.#useOwn = useOwn;
  }

  open() {
    if (this.#port) return;
    let worker;
    try {
      worker = new SharedWorker(this.#url, { type: "module", name: "arizuko" });
    } catch {
      return this.#useOwn(); // forbidden, or without modules
    }
    const port = this.#port = worker.port;
    this.#hasAnswered = false;
    worker.addEventListener("error", () => { if (port === this.#port) this.#silent(); });
    port.addEventListener("close", () => { if (port === this.#port) this.#silent(); }); // not every browser says so
    port.onmessage = ({ data }) => { if (port === this.#port) this.#heard(data); };
    this.#beat = setInterval(() => this.#say("here", maxAnswer), beatEvery);
    this.#say("here", maxStart);
  }

  close() {
    clearInterval(this.#beat);
    clearTimeout(this.#deadline);
    this.#deadline = 0;
    this.#port?.postMessage("gone");
    this.#port = null;
  }

  look() {
    if (this.#port) this.#say("look", maxAnswer);
  }

  verify() {
    if (this.#port) this.#say("verify", maxAnswer);
  }

  hide() {} // the other pages need the stream

  #say(word, limit) {
    this.#port.postMessage(word);
    this.#deadline ||= setTimeout(() => this.#silent(), limit);
  }

  #heard({ here, move, state, event, data }) {
    if (here) {
      this.#hasAnswered = true;
      clearTimeout(this.#deadline);
      this.#deadline = 0;
    } else if (move) this.#move(move);
    else if (state) this.#handlers.changed(state);
    else this.#handlers.event(event, data);
  }

  // #silent: the worker has died, as it does with the process of a page that crashed, or it cannot be started.
  #silent() {
    this.close();
    if (this.#hasAnswered) this.open();
    else this.#useOwn();
  }

  #move(worker) {
    this.close();
    if (Date.now() - this.#movedAt < minStay) return this.#useOwn(); // two servers that send pages to each other
    this.#movedAt = Date.now();
    this.#url = worker;
    this.open();
  }
}
