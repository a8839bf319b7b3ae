// What is new in a chat, in the order of the rows: each is fetched once.

import { backoff } from "./stream.js";

const firstDelay = 500, maxDelay = 15_000; // ms between attempts

export class News {
  #last;
  #options;
  #wanted = false;
  #running = null; // a promise while it fetches
  #failures = 0;
  #timer = 0;

  // last: the id of the row up to which the page has all.
  // load: returns {messages, next, more} after an id.
  // show: is called with each row. It is a new one, or with "change" set one that has changed.
  // failed: is called with the error of a request, whose status is not set if there was no answer, or null after one that
  // succeeded.
  constructor(last, options) {
    this.#last = last;
    this.#options = options;
  }

  // reach fetches what is new, if there may be something up to an id.
  reach(id = Infinity) {
    if (id > this.#last) this.fetch();
  }

  fetch() {
    this.#wanted = true; // once more, if it is fetching
    return this.#running ??= this.#run();
  }

  // settled is resolved once nothing is being fetched.
  async settled() {
    await this.#running;
  }

  async #run() {
    clearTimeout(this.#timer);
    while (this.#wanted) {
      this.#wanted = false;
      const news = await this.#load();
      if (!news) break;
      news.messages.forEach((row) => this.#options.show(row));
      this.#last = news.next;
      this.#wanted ||= news.more;
    }
    this.#running = null;
  }

  async #load() {
    try {
      const news = await this.#options.load(this.#last);
      this.#failures = 0;
      this.#options.failed(null);
      return news;
    } catch (error) {
      this.#options.failed(error);
      if (error.status !== 401) this.#timer = setTimeout(() => this.fetch(), backoff(this.#failures++, firstDelay, maxDelay));
      return null;
    }
  }
}
