// Up to which row this browser has shown each chat and topic: what came after is unread.

const key = "arizuko.seen";

export class Seen {
  #all = read();

  // reach notes that a chat or topic was shown up to a row.
  reach(name, id) {
    if (!(id > (this.#all[name] ?? -1))) return;
    this.#all = { ...read(), [name]: id }; // other pages write as well
    try {
      localStorage.setItem(key, JSON.stringify(this.#all));
    } catch {
      // No room: it is unread again after a reload.
    }
  }

  // isUnread: what is met for the first time counts as read.
  isUnread(name, id) {
    if (this.#all[name] === undefined) this.reach(name, id);
    return id > (this.#all[name] ?? id);
  }

  // changed is called once another page has shown something.
  onChange(changed) {
    addEventListener("storage", (event) => {
      if (event.key !== key) return;
      this.#all = read();
      changed();
    });
  }
}

function read() {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? {};
  } catch {
    return {};
  }
}
