// The requests of the chat page. base is the chat's address, e.g. "/chat/acme/eng".

const timeout = 20_000; // ms

export class Api {
  constructor(base) {
    this.base = base;
  }

  // messages gets the newest ones of a topic, or those before a row.
  async messages(topic, before) {
    const query = new URLSearchParams({ topic, limit: 50, view: "page" });
    if (before) query.set("before", before);
    return this.#get(`messages?${query}`);
  }

  async topics() {
    return (await this.#get("topics")).topics;
  }

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

  // vote chooses options of the poll that a message is, and answers a problem, if there is one.
  async vote(id, options) {
    try {
      const answer = await fetch(`${this.base}/votes`, {
        method: "POST",
        headers: { "Accept": "application/json", "Content-Type": "application/json" },
        body: JSON.stringify({ id, options }),
        signal: AbortSignal.timeout(timeout),
      });
      if (answer.ok) return "";
      const body = await answer.json().catch(() => ({}));
      return body.error?.message ?? "the vote was not stored; vote again";
    } catch {
      return "the server cannot be reached; vote again";
    }
  }

  async #get(path) {
    const answer = await fetch(`${this.base}/${path}`, {
      headers: { Accept: "application/json" },
      signal: AbortSignal.timeout(timeout),
    });
    if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
    return answer.json();
  }
}
