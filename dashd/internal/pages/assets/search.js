// The search within the chat: the newest messages that have all words. A hit leads to its message.

import { bdi } from "./message.js";
import { name } from "./tabs.js";
import { setTime } from "./time.js";

const maxExcerpt = 240, before = 60; // characters; before the first word

export class Search {
  #form = document.getElementById("find");
  #field = this.#form.querySelector("input");
  #status = this.#form.querySelector("[role=status]");
  #hits = this.#form.querySelector("ol");
  #opener = document.getElementById("open-search");
  #options;

  // find: returns {messages, more} for a text.
  // open: is called with a hit that was chosen.
  constructor(options) {
    this.#options = options;
    this.#opener.addEventListener("click", () => this.#unfold(this.#form.hidden));
    this.#form.addEventListener("keydown", (event) => { if (event.key === "Escape") this.#unfold(false); });
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#find(this.#field.value.trim());
    });
  }

  #unfold(open) {
    this.#form.hidden = !open;
    this.#opener.ariaExpanded = String(open);
    (open ? this.#field : this.#opener).focus();
  }

  async #find(text) {
    this.#status.textContent = "";
    try {
      const { messages, more } = await this.#options.find(text);
      this.#hits.replaceChildren(...messages.map((hit) => this.#item(hit, text)));
      this.#status.textContent = !messages.length ? "No messages found" : more ? `The newest ${messages.length} messages` : messages.length === 1 ? "1 message" : `${messages.length} messages`;
    } catch (error) {
      this.#hits.replaceChildren();
      this.#status.textContent = error.status ? error.message : "The server cannot be reached. Try again.";
    }
  }

  #item(hit, text) {
    const item = document.createElement("li"), link = document.createElement("a"), time = document.createElement("time"), about = document.createElement("span");
    link.href = `/messages/${hit.id}`;
    setTime(time, hit.timestamp);
    about.className = "about";
    about.append(bdi(hit.sender_name), ` in ${name(hit.topic)}, `, time);
    const excerpt = bdi("");
    excerpt.append(...marked(hit.content, text));
    link.append(about, " ", excerpt);
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      this.#options.open(hit);
    });
    item.append(link);
    return item;
  }
}

// marked is the part of a text around the first of the words that were searched for, in which they are marked.
function marked(text, searched) {
  const words = searched.match(/[\p{L}\p{N}]+/gu) ?? [], line = text.replace(/\s+/g, " ");
  const any = new RegExp(`(${words.join("|") || "$^"})`, "giu");
  const at = Math.max(0, line.search(any) - before);
  const cut = (at ? "…" : "") + line.slice(at, at + maxExcerpt) + (line.length > at + maxExcerpt ? "…" : "");
  return cut.split(any).map((part, i) => {
    if (i % 2 === 0) return part;
    const mark = document.createElement("mark");
    mark.textContent = part;
    return mark;
  });
}
