// An event stream that reconnects by itself.
//
// EventSource alone is not enough: it never reconnects after an answer that is not 200, and after a
// laptop's sleep it may wait for hours on a dead connection.

const maxSilence = 40_000; // ms; the server sends a ping every 15 s
const maxSilenceVisible = 20_000; // ms; while a user looks at the page one missed ping is enough
const firstDelay = 500, maxDelay = 15_000; // ms between attempts

export class Stream {
  #options;
  #source = null;
  #attempt = 0; // number of the newest attempt; older ones are ignored
  #failures = 0;
  #heardAt = 0;
  #timer = 0;

  // url: the address of the events, asked for at each attempt.
  // probe: an address that answers 401 once the login has ended; EventSource hides the status.
  // on: handlers of the data and id of each kind of event: {name: (data, id) => …}.
  // state: is called with "open", "lost" or "ended".
  constructor(options) {
    this.#options = options;
  }

  start() {
    this.#connect();
    setInterval(() => this.#check(maxSilence), 5_000);
    addEventListener("online", () => this.#retry());
    addEventListener("pagehide", () => this.#close()); // else the page can't be kept for "back"
    addEventListener("pageshow", (event) => { if (event.persisted) this.#retry(); });
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.#check(maxSilenceVisible); });
  }

  #check(limit) {
    const dead = this.#source && Date.now() - this.#heardAt > limit;
    const idle = !this.#source && limit === maxSilenceVisible;
    if (dead || idle) this.#retry();
  }

  #connect() {
    this.#close();
    const source = this.#source = new EventSource(this.#options.url());
    this.#heardAt = Date.now();
    source.onopen = () => {
      this.#failures = 0;
      this.#heardAt = Date.now();
      this.#options.state("open");
    };
    source.onerror = () => this.#lost();
    source.addEventListener("ping", () => { this.#heardAt = Date.now(); });
    for (const [name, handle] of Object.entries(this.#options.on)) {
      source.addEventListener(name, (event) => {
        this.#heardAt = Date.now();
        handle(JSON.parse(event.data), Number(event.lastEventId));
      });
    }
  }

  #close() {
    this.#attempt++;
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
  }

  #lost() {
    this.#close();
    this.#options.state("lost");
    this.#timer = setTimeout(() => this.#retry(), backoff(this.#failures++, firstDelay, maxDelay));
  }

  async #retry() {
    this.#close();
    const attempt = this.#attempt;
    const status = await statusOf(this.#options.probe);
    if (attempt !== this.#attempt) return;
    if (status === 401) this.#options.state("ended");
    else if (status === 200) this.#connect();
    else this.#lost();
  }
}

// backoff doubles from first to max, minus up to a half at random, so that many pages don't
// reconnect in the same moment.
export function backoff(failures, first, max) {
  return Math.min(max, first * 2 ** failures) * (1 - Math.random() / 2);
}

// statusOf returns 0 if there was no answer.
async function statusOf(url) {
  try {
    const answer = await fetch(url, { headers: { Accept: "application/json" }, signal: AbortSignal.timeout(10_000) });
    return answer.status;
  } catch {
    return 0;
  }
}
