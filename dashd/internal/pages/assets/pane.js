// The list beside the conversation: the chats, and the topics of this one, the newest first.

import { label, name } from "./tabs.js";

export class Pane {
  #chats = document.getElementById("pane-chats");
  #filter = document.getElementById("pane-filter");
  #items = new Map(); // folder → item
  #links = new Map(); // topic → item
  #topics = document.createElement("ul");
  #none = document.getElementById("pane-none");
  #archived = document.getElementById("archived-topics");
  #opener = document.getElementById("open-pane");
  #folder; #seen; #open;

  // open: is called with a topic that was chosen.
  constructor(folder, seen, open) {
    [this.#folder, this.#seen, this.#open] = [folder, seen, open];
    for (const item of this.#chats.children) this.#items.set(item.dataset.folder, item);
    this.#topics.ariaLabel = "Topics";
    this.#items.get(folder)?.append(this.#topics);
    this.#filter.addEventListener("input", () => this.#narrow());
    this.#archived.addEventListener("click", () => {
      this.#archived.ariaPressed = String(document.body.classList.toggle("archive-shown"));
    });
    seen.onChange(() => this.#mark());
    this.#mark();
    this.#opener.addEventListener("click", () => this.#cover(true));
    document.getElementById("close-pane").addEventListener("click", () => this.#cover(false));
    document.getElementById("pane").addEventListener("keydown", (event) => { if (event.key === "Escape") this.#cover(false); });
    matchMedia("(min-width: 56.25rem)").addEventListener("change", () => this.#cover(false));
  }

  // #cover shows the list in place of the conversation, where there is no room for both, or takes it away again.
  #cover(open) {
    if (open === document.body.classList.contains("pane-open")) return;
    document.body.classList.toggle("pane-open", open);
    document.getElementById("main").inert = open;
    this.#opener.ariaExpanded = String(open);
    (open ? document.getElementById("close-pane") : this.#opener).focus();
  }

  // changed takes in the newest rows of chats.
  changed(chats) {
    for (const [folder, id] of Object.entries(chats)) {
      const item = this.#items.get(folder);
      if (!item || id <= Number(item.dataset.last)) continue;
      item.dataset.last = id;
      place(item);
    }
    this.#mark();
  }

  // topic shows a topic, with whether it has something unread or an agent works in it; last is its newest row. One that
  // is archived is hidden, unless it is searched for.
  topic(topic, { last, unread, working, title, archived }, active) {
    let item = this.#links.get(topic);
    if (!item) {
      item = document.createElement("li");
      const link = document.createElement("a");
      link.href = `${location.pathname}${topic || "#"}`;
      link.append(label(topic));
      link.addEventListener("click", (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        this.#cover(false);
        this.#open(topic);
      });
      item.append(link);
      this.#links.set(topic, item);
      this.#topics.append(item);
    }
    const isNewer = last > Number(item.dataset.last ?? -1);
    item.dataset.last = last;
    if (isNewer) place(item);
    dot(item, [unread && "unread", working && "an agent is working"].filter(Boolean).join(", "));
    item.classList.toggle("working", working);
    item.classList.toggle("archived", archived && topic !== active);
    item.firstChild.firstChild.textContent = title || name(topic);
    item.firstChild.title = title && topic;
    item.firstChild.ariaCurrent = topic === active ? "true" : null;
    this.#narrow();
    this.#sum();
  }

  #mark() {
    for (const [folder, item] of this.#items) {
      const id = Number(item.dataset.last);
      if (folder === this.#folder) this.#seen.reach(folder, id);
      else dot(item, this.#seen.isUnread(folder, id) ? "unread" : "");
    }
    this.#sum();
  }

  // #sum shows on the button that something is unread.
  #sum() {
    const unread = !!this.#chats.querySelector(".unread");
    this.#opener.classList.toggle("unread", unread);
    this.#opener.ariaLabel = unread ? "Chats, unread" : "Chats";
  }

  #narrow() {
    const text = this.#filter.value.trim().toLowerCase();
    this.#chats.classList.toggle("searched", text !== "");
    this.#archived.hidden = !this.#topics.querySelector(".archived");
    const fits = (item) => item.hidden = ![item.textContent, item.dataset.folder, item.firstChild.title].some((part) => part?.toLowerCase().includes(text));
    [...this.#chats.children].forEach(fits);
    [...this.#topics.children].forEach(fits);
    this.#none.hidden = [...this.#chats.children].some((item) => !item.hidden);
  }
}

// dot shows an item as unread, with the words for a screen reader.
function dot(item, words) {
  item.classList.toggle("unread", words.startsWith("unread"));
  let spoken = item.querySelector(":scope > a > .hidden");
  if (!spoken) {
    spoken = document.createElement("span");
    spoken.className = "hidden";
    item.querySelector(":scope > a").append(spoken);
  }
  const text = words && `, ${words}`;
  if (spoken.textContent !== text) spoken.textContent = text;
}

// place moves an item before the older ones; one with the focus keeps its place.
function place(item) {
  if (item.contains(document.activeElement)) return;
  const older = [...item.parentElement.children].find((each) => each !== item && Number(each.dataset.last) < Number(item.dataset.last));
  item.parentElement.insertBefore(item, older ?? null);
}
