// The requests of the chat page. base is the chat's address, e.g. "/chat/acme/eng".

const timeout = 20_000; // ms
const maxStall = 60_000; // ms without progress of an upload; the server gives up after 30 s

export class Api {
  constructor(base) {
    this.base = base;
  }

  // messages gets the newest ones of a topic, or those before a row.
  async messages(topic, before, limit = 50) {
    const query = new URLSearchParams({ topic, limit, view: "page" });
    if (before) query.set("before", before);
    return this.#get(`messages?${query}`);
  }

  // news gets what is new after a row: rows, and those that have changed.
  async news(after) {
    const query = new URLSearchParams({ after, limit: 50, view: "page" });
    if (document.visibilityState === "visible") query.set("shown", "yes"); // so that no notice is sent
    return this.#get(`messages?${query}`);
  }

  // search gets the newest messages that have all words of a text.
  async search(text) {
    return this.#get(`search?${new URLSearchParams({ text })}`);
  }

  // progress gets what the agents say of their work.
  async progress() {
    return this.#get("progress?view=page");
  }

  async topics() {
    return (await this.#get("topics")).topics;
  }

  // editTopic names a topic, and archives it or not. It answers a problem, if there is one.
  editTopic(topic, title, archived) { return this.#choose("topics", { topic, title, archived }); }

  // send answers {status, id, problem}; status is 0 if the server can't be reached.
  async send({ topic, text, client_id }) {
    try {
      const answer = await fetch(`${this.base}/messages`, {
        method: "POST",
        headers: { "Accept": "application/json", "Content-Type": "application/json" },
        body: JSON.stringify({ topic, text, client_id }),
        signal: AbortSignal.timeout(timeout),
      });
      const body = await answer.json().catch(() => ({}));
      return { status: answer.status, id: body.id, problem: body.error?.message };
    } catch {
      return { status: 0 };
    }
  }

  // upload is send for a message with files, whose contents come in the same order. progress is called with the part
  // that is sent, from 0 to 1. It is no fetch because that does not tell the progress.
  upload({ topic, text, client_id, files }, contents, { signal, progress }) {
    const form = new FormData();
    for (const [name, value] of Object.entries({ client_id, topic, text })) form.append(name, value); // before the files
    // The header of a part has no control characters.
    contents.forEach((content, i) => form.append("file", content, files[i].name.replace(/[\u0000-\u001f\u007f]/g, "_")));
    return new Promise((resolve) => {
      const request = new XMLHttpRequest();
      let timer;
      const wait = () => {
        clearTimeout(timer);
        timer = setTimeout(() => request.abort(), maxStall);
      };
      request.open("POST", `${this.base}/messages`);
      request.responseType = "json";
      request.setRequestHeader("Accept", "application/json");
      request.upload.onprogress = ({ loaded, total }) => {
        wait();
        progress(total ? loaded / total : 0);
      };
      request.onload = () => resolve({ status: request.status, id: request.response?.id, problem: request.response?.error?.message });
      request.onerror = request.onabort = () => resolve({ status: 0 });
      request.onloadend = () => clearTimeout(timer);
      signal.addEventListener("abort", () => request.abort());
      wait();
      request.send(form);
    });
  }

  // vote chooses options of the poll that a message is, and answers a problem, if there is one.
  vote(id, options) { return this.#choose("votes", { id, options }); }

  // answer chooses an option of the question that a message is, and answers a problem, if there is one.
  answer(id, option) { return this.#choose("answers", { id, option }); }

  // undo takes a turn back, and answers a problem, if there is one.
  undo(turn) { return this.#choose("undo", { turn_id: turn }); }

  async #choose(path, choice) {
    try {
      const answer = await fetch(`${this.base}/${path}`, {
        method: "POST",
        headers: { "Accept": "application/json", "Content-Type": "application/json" },
        body: JSON.stringify(choice),
        signal: AbortSignal.timeout(timeout),
      });
      if (answer.ok) return "";
      const body = await answer.json().catch(() => ({}));
      return body.error?.message ?? "the choice was not stored; choose again";
    } catch {
      return "the server cannot be reached; choose again";
    }
  }

  async #get(path) {
    const answer = await fetch(`${this.base}/${path}`, {
      headers: { Accept: "application/json" },
      signal: AbortSignal.timeout(timeout),
    });
    if (!answer.ok) {
      const { error } = await answer.json().catch(() => ({}));
      throw Object.assign(new Error(error?.message ?? `the server answers with ${answer.status}`), { status: answer.status });
    }
    return answer.json();
  }
}
