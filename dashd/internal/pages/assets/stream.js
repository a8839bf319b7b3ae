// The event stream of a browser, which reconnects by itself. It runs in a page, or in the worker that all pages share.
//
// It reads the answer by itself: an EventSource hides why it was refused, never reconnects after an answer that is not
// 200, and after a laptop's sleep it may wait for hours on a dead connection.

const maxSilence = 11_000; // ms; the server sends a ping every 5 s
const firstDelay = 500, maxDelay = 15_000; // ms between attempts
const maxWait = 20_000; // ms for the head of an answer

export class Stream {
  #options;
  #attempt = null; // an AbortController; the events of older attempts are ignored
  #failures = 0;
  #heardAt = 0;
  #timer = 0;
  #running = false;

  // state is what the connection is: its kind, since when (unix ms), and for "refused" the problem in words.
  // Kinds: connecting, open, lost, stopping (the server stops), refused (by the server), ended (the login).
  state = { kind: "connecting", since: Date.now() };

  // url: the address of the events.
  // event: is called with the name and the data of each event.
  // changed: is called with each new state.
  constructor(options) {
    this.#options = options;
    setInterval(() => this.#check(), 1_000);
    addEventListener("online", () => { if (this.#running) this.#connect(); }); // in a new network an old connection is dead
  }

  start() {
    if (this.#running) return;
    this.#running = true;
    this.#connect();
  }

  stop() {
    this.#running = false;
    this.#close();
    this.state = { kind: "connecting", since: Date.now() };
  }

  // look checks the connection when a user looks at a page: what seemed open may be dead, what failed may work again.
  look() {
    if (this.state.kind === "open") this.#check();
    else this.retry();
  }

  // verify ends an open connection and makes the next one: the server may want a login.
  verify() {
    if (this.state.kind === "open") this.#lost({});
  }

  // retry makes the next attempt now, unless one is under way.
  retry() {
    if (this.#running && !this.#attempt) this.#connect();
  }

  // #check ends a silent connection, also one that has said nothing yet: a proxy may hold the stream back.
  #check() {
    if (!this.#attempt || Math.abs(Date.now() - this.#heardAt) <= maxSilence) return; // the clock may be set back
    this.#become("lost");
    this.#connect();
  }

  async #connect() {
    this.#close();
    if (this.state.kind === "open") this.#become("lost");
    this.#heardAt = Date.now();
    const attempt = this.#attempt = new AbortController();
    const current = () => attempt === this.#attempt;
    const tooLong = setTimeout(() => attempt.abort(), maxWait);
    let problem = {};
    try {
      const answer = await fetch(this.#options.url, { headers: { Accept: "text/event-stream" }, cache: "no-store", signal: attempt.signal });
      clearTimeout(tooLong);
      if (answer.ok) await this.#read(answer.body, current);
      else problem = await refusal(answer);
    } catch {
      // The connection was lost, or there was none.
    }
    clearTimeout(tooLong);
    if (current()) this.#lost(problem);
  }

  async #read(body, current) {
    for await (const { name, data } of events(body)) {
      if (!current()) return;
      this.#heardAt = Date.now();
      if (this.state.kind !== "open") {
        this.#failures = 0;
        this.#become("open");
      }
      if (name === "stopping") this.#become("stopping");
      else if (name !== "ping") this.#options.event(name, data);
      if (!current()) return;
    }
  }

  #lost({ kind = this.state.kind === "stopping" ? "stopping" : "lost", problem }) {
    this.#close();
    this.#become(kind, problem);
    if (kind === "ended") return; // until a user looks at a page
    this.#timer = setTimeout(() => this.retry(), backoff(this.#failures++, firstDelay, maxDelay));
  }

  // #become keeps since when there is no connection, whatever the reason is meanwhile.
  #become(kind, problem) {
    const before = this.state;
    if (before.kind === kind && before.problem === problem) return;
    const since = before.kind === "open" || kind === "open" ? Date.now() : before.since;
    this.state = { kind, since, problem };
    this.#options.changed(this.state);
  }

  #close() {
    clearTimeout(this.#timer);
    const attempt = this.#attempt;
    this.#attempt = null;
    attempt?.abort();
  }
}

// events reads an event stream as this server writes it: fields on single lines, the data as JSON.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (text + value).split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const name = /^event: (.*)$/m.exec(block)?.[1], data = /^data: (.*)$/m.exec(block)?.[1];
      if (name) yield { name, data: JSON.parse(data) };
    }
  }
}

// refusal is why there is no stream.
async function refusal(answer) {
  if (answer.status === 401) return { kind: "ended" };
  const body = await answer.json().catch(() => ({})); // a proxy answers in its own words
  return { kind: "refused", problem: body.error?.message ?? `the server answers with ${answer.status}` };
}

// backoff doubles from first to max, minus up to a half at random, so that many pages don't
// reconnect in the same moment.
export function backoff(failures, first, max) {
  return Math.min(max, first * 2 ** failures) * (1 - Math.random() / 2);
}
