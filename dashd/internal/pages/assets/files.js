// The files that are chosen and not sent yet. IndexedDB keeps them, so that they survive a reload; where the browser has
// none, or no room, they are there until the page is closed.

import { newID } from "./outbox.js";

const maxAge = 7 * 24 * 60 * 60_000; // ms; what no message names then goes
const maxFetch = 60_000; // ms

export class Files {
  #db = open().catch(() => null);
  #here = new Map(); // id → File, unless it is kept
  #saving = new Map(); // id → promise of whether it is kept

  // add returns the {id, name, size} of a file.
  add(file) {
    const id = newID();
    this.#here.set(id, file);
    this.#saving.set(id, this.#save(id, file));
    return { id, name: file.name || "file", size: file.size };
  }

  // copy is add for a file of a message. It throws if the file cannot be fetched.
  async copy({ name, url }) {
    const answer = await fetch(url, { signal: AbortSignal.timeout(maxFetch) });
    if (!answer.ok) throw new Error(`the server answers with ${answer.status}`);
    const content = await answer.blob();
    return this.add(new File([content], name, { type: content.type }));
  }

  async #save(id, file) {
    try {
      // The content: a File of the disk may be another one later, or gone.
      const content = new Blob([await file.arrayBuffer()], { type: file.type });
      await this.#do("readwrite", (store) => store.put({ content, at: Date.now() }, id));
      this.#here.delete(id);
      return true;
    } catch {
      return false;
    }
  }

  // get returns a file's content, null if it is not there any more.
  async get(id) {
    await this.#saving.get(id);
    const file = this.#here.get(id) ?? (await this.#do("readonly", (store) => store.get(id)).catch(() => null))?.content;
    if (!file) return null;
    return file.slice(0, 1).arrayBuffer().then(() => file, () => null);
  }

  // kept reports whether all of the files survive a reload.
  async kept(ids) {
    const each = await Promise.all(ids.map(async (id) => await this.#saving.get(id) ?? !!await this.get(id)));
    return each.every(Boolean);
  }

  remove(ids) {
    for (const id of ids) {
      this.#here.delete(id);
      const saved = this.#saving.get(id) ?? Promise.resolve();
      saved.then(() => this.#do("readwrite", (store) => store.delete(id))).catch(() => {}); // clean tries again
      this.#saving.delete(id);
    }
  }

  // clean removes old files that no message names: pages were closed before they had sent them.
  async clean(named) {
    try {
      const ids = await this.#do("readonly", (store) => store.getAllKeys());
      for (const id of ids) {
        const { at } = await this.#do("readonly", (store) => store.get(id)) ?? {};
        if (at < Date.now() - maxAge && !named().includes(id)) await this.#do("readwrite", (store) => store.delete(id));
      }
    } catch {
      // There is no database.
    }
  }

  async #do(mode, act) {
    const db = await this.#db;
    if (!db) throw new Error("no database");
    const transaction = db.transaction("files", mode);
    const request = act(transaction.objectStore("files"));
    return new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = transaction.onerror = () => reject(transaction.error ?? new Error("not stored"));
    });
  }
}

function open() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open("arizuko", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("files");
    request.onsuccess = () => resolve(request.result);
    request.onerror = request.onblocked = () => reject(request.error);
  });
}

// sizeText words a size in bytes.
export function sizeText(bytes) {
  if (bytes < 1024) return bytes === 1 ? "1 byte" : `${bytes} bytes`;
  if (bytes < 1 << 20) return `${Math.round(bytes / 1024)} KiB`;
  return `${(bytes / (1 << 20)).toFixed(1).replace(/\.0$/, "")} MiB`;
}
