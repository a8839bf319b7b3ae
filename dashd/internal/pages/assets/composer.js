// The message box. Drafts are kept per topic until the browser tab closes.

export class Composer {
  #form; #text; #key; #send;
  #topic = "";
  // On a phone Enter is the only way to a new line, the button sends.
  #touch = matchMedia("(pointer: coarse)");

  // send is called with the topic and a text that is not blank.
  constructor(form, folder, send) {
    this.#form = form;
    this.#text = form.querySelector("textarea");
    this.#key = `arizuko.draft:${folder}:`;
    this.#send = send;
    form.addEventListener("submit", (event) => this.#submit(event));
    this.#text.addEventListener("input", () => this.#edited());
    this.#text.addEventListener("keydown", (event) => this.#pressed(event));
  }

  // switchTo shows the draft of a topic.
  switchTo(topic) {
    this.#topic = topic;
    this.#text.value = sessionStorage.getItem(this.#key + topic) ?? "";
    this.#grow();
  }

  focus() {
    if (!this.#touch.matches) this.#text.focus(); // else a phone's keyboard would pop up
  }

  #pressed(event) {
    // While an input method composes, Enter picks a candidate. Safari shows that by keyCode alone.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    if (this.#touch.matches) return;
    event.preventDefault();
    this.#form.requestSubmit();
  }

  #submit(event) {
    event.preventDefault();
    const topic = this.#topic, text = this.#text.value.trim();
    if (!text) return;
    this.#text.value = "";
    this.#edited();
    this.#send(topic, text);
    this.#text.focus();
  }

  #edited() {
    try {
      if (this.#text.value) sessionStorage.setItem(this.#key + this.#topic, this.#text.value);
      else sessionStorage.removeItem(this.#key + this.#topic);
    } catch {
      // No room for a draft: it stays in the box.
    }
    this.#grow();
  }

  #grow() {
    this.#text.style.height = "auto";
    this.#text.style.height = `${this.#text.scrollHeight}px`; // the style sheet sets the limit
  }
}
