// A live connection to the server that comes back by itself.
//
// EventSource alone is not enough: it gives up for good at the first answer that is not 200, and
// after a laptop's sleep it may wait for hours on a connection that is long dead.

const silenceLimit = 40_000; // ms; the server says something every 15 s
const wakeLimit = 20_000; // ms; somebody looks at the page, so one missed ping is enough
const firstDelay = 500, longestDelay = 15_000; // ms between attempts

export class Stream {
  #options;
  #source = null;
  #attempt = 0; // tells the newest attempt from those it has replaced
  #failures = 0;
  #heardAt = 0;
  #timer = 0;

  // url: the address of the events, asked for at each attempt.
  // probe: an address that answers 401 once the login has ended; EventSource hides the status.
  // on: what to do with the data of each kind of event: {name: (data) => …}.
  // state: is told "open", "lost" or "ended".
  constructor(options) {
    this.#options = options;
  }

  start() {
    this.#connect();
    setInterval(() => this.#check(silenceLimit), 5_000);
    addEventListener("online", () => this.#retry());
    addEventListener("pagehide", () => this.#close()); // else the page can't be kept for "back"
    addEventListener("pageshow", (event) => { if (event.persisted) this.#retry(); });
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.#check(wakeLimit); });
  }

  #check(limit) {
    const dead = this.#source && Date.now() - this.#heardAt > limit;
    const idle = !this.#source && limit === wakeLimit;
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
        handle(JSON.parse(event.data));
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
    this.#timer = setTimeout(() => this.#retry(), backoff(this.#failures++, firstDelay, longestDelay));
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

// backoff doubles from first to longest, less up to a half at random, so that many pages don't
// all come back in the same moment.
export function backoff(failures, first, longest) {
  return Math.min(longest, first * 2 ** failures) * (1 - Math.random() / 2);
}

// statusOf is 0 if there was no answer.
async function statusOf(url) {
  try {
    const answer = await fetch(url, { headers: { Accept: "application/json" }, signal: AbortSignal.timeout(10_000) });
    return answer.status;
  } catch {
    return 0;
  }
}
