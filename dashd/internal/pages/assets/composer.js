// The message box, with the files that are chosen. Drafts are kept per topic until the browser tab closes.

import { fill } from "./elements.js";
import { sizeText } from "./files.js";

const previewSize = 80; // px of a picture that is to be sent

export class Composer {
  #form; #text; #send; #edits; #chosen; #status; #spoken; #input; #key; #options;
  #topic = "";
  #files = []; // {id, name, size}, of the topic
  #dropTimer = 0;
  #editing = 0; // the id of the message that is being edited, 0 for none
  #copies = []; // the files of the message that is edited, as they were
  // On a phone Enter is the only way to a new line, the button sends.
  #touch = matchMedia("(pointer: coarse)");

  // folder: the chat's group.
  // files: the Files.
  // maxFile, maxFiles: limits of one file in bytes, and of the files of a message.
  // last: returns the newest message of one's own in a topic, see Log.last.
  // takeBack: takes back the turn of a message that was edited, and returns a problem, "" for none.
  // send: is called with the topic, a text and files, one of which is there.
  constructor(form, folder, options) {
    this.#form = form;
    [this.#text, this.#send, this.#edits, this.#chosen, this.#status, this.#spoken, this.#input] =
      ["textarea", ".send", ".edits", ".chosen", ".chosen-status", ".chosen-spoken", "input[type=file]"].map((part) => form.querySelector(part));
    this.#key = `arizuko.draft:${folder}:`;
    this.#options = options;
    form.addEventListener("submit", (event) => this.#submit(event));
    this.#text.addEventListener("input", () => this.#edited());
    this.#text.addEventListener("keydown", (event) => this.#pressed(event));
    this.#edits.querySelector("button").addEventListener("click", () => this.#cancelEdit());
    form.querySelector(".attach").addEventListener("click", () => this.#input.click());
    this.#input.addEventListener("change", () => {
      this.#choose([...this.#input.files]);
      this.#input.value = ""; // so that the same file can be chosen again
    });
    document.addEventListener("paste", (event) => this.#pasted(event));
    document.addEventListener("dragover", (event) => this.#dragged(event));
    document.addEventListener("drop", (event) => this.#dropped(event));
  }

  // switchTo shows the draft of a topic.
  switchTo(topic) {
    this.#topic = topic;
    this.#endEdit();
    this.#text.value = sessionStorage.getItem(this.#key + topic) ?? "";
    this.#grow();
    this.#say("");
    this.#files = parseList(sessionStorage.getItem(this.#filesKey()));
    this.#showFiles();
    this.#checkKept(topic);
  }

  focus() {
    if (!this.#touch.matches) this.#text.focus(); // else a phone's keyboard would pop up
  }

  // insert puts a word into the box, in place of a draft that is blank or such a word.
  insert(word) {
    const draft = this.#text.value;
    this.#text.value = !draft.trim() || /^(\/\w+|#)$/.test(draft.trim()) ? word : `${draft.trimEnd()} ${word}`;
    this.#edited();
    this.#text.focus();
    this.#text.setSelectionRange(this.#text.value.length, this.#text.value.length);
  }

  // edit puts a message into the box: sending it takes back the turn of the one before.
  async edit(last) {
    if (!last || this.#editing === last.id) return;
    this.#text.value = last.text;
    this.#edited();
    this.#editing = last.id;
    this.#edits.hidden = false;
    this.#say("");
    this.#text.focus();
    this.#text.setSelectionRange(last.text.length, last.text.length);
    if (last.files.length) await this.#copy(last);
  }

  // #copy adds the files of a message that is edited.
  async #copy({ id, files }) {
    this.#send.disabled = true;
    const copies = await Promise.all(files.map((file) => this.#options.files.copy(file))).catch(() => null);
    this.#send.disabled = false;
    if (this.#editing !== id) return this.#options.files.remove((copies ?? []).map((file) => file.id)); // cancelled meanwhile
    if (!copies) return this.#say("Its files cannot be fetched: choose them again.");
    this.#copies = copies;
    this.#files.push(...copies);
    this.#filesChanged();
  }

  #endEdit() {
    this.#editing = 0;
    this.#copies = [];
    this.#edits.hidden = true;
  }

  #cancelEdit() {
    for (const file of this.#copies) if (this.#files.includes(file)) this.#remove(file);
    this.#endEdit();
    this.#text.value = "";
    this.#edited();
    this.#text.focus();
  }

  // #takeBack reports whether what is in the box can be sent in place of the message that it was.
  async #takeBack() {
    const id = this.#editing;
    this.#send.disabled = true;
    this.#spoken.textContent = "Taking the answer back…";
    const problem = await this.#options.takeBack(this.#topic, id);
    this.#send.disabled = false;
    this.#spoken.textContent = "";
    if (this.#editing !== id) return false; // cancelled meanwhile
    this.#endEdit();
    this.#say(problem && `Not taken back: ${problem}. You can send it as a new message.`);
    return !problem;
  }

  #pressed(event) {
    if (event.key === "Escape" && this.#editing) return this.#cancelEdit();
    if (event.key === "ArrowUp" && !this.#text.value && !event.isComposing) {
      event.preventDefault();
      return this.edit(this.#options.last(this.#topic));
    }
    // While an input method composes, Enter picks a candidate. Safari shows that by keyCode alone.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    if (this.#touch.matches) return;
    event.preventDefault();
    this.#form.requestSubmit();
  }

  async #submit(event) {
    event.preventDefault();
    if (this.#send.disabled || this.#editing && !await this.#takeBack()) return;
    const topic = this.#topic, text = this.#text.value.trim(), files = this.#files;
    if (!text && !files.length) return;
    this.#text.value = "";
    this.#edited();
    this.#files = [];
    this.#filesChanged();
    this.#say("");
    this.#options.send(topic, text, files);
    this.#text.focus();
  }

  #edited() {
    keep(this.#key + this.#topic, this.#text.value);
    this.#grow();
  }

  #grow() {
    this.#text.style.height = "auto";
    this.#text.style.height = `${this.#text.scrollHeight}px`; // the style sheet sets the limit
  }

  // #choose adds files, and says which ones cannot be sent.
  #choose(files) {
    const { maxFile, maxFiles } = this.#options;
    const problems = [];
    for (const file of files) {
      const problem = this.#files.length >= maxFiles ? `A message has at most ${maxFiles} files.`
        : file.size > maxFile ? `${file.name} has ${sizeText(file.size)}, and a file may have ${sizeText(maxFile)}.` : "";
      if (!problem) this.#files.push(this.#options.files.add(file));
      else if (!problems.includes(problem)) problems.push(problem);
    }
    this.#filesChanged();
    this.#say(problems.join(" "));
    this.#spoken.textContent = this.#files.length ? `Files to send: ${this.#files.map(({ name }) => name).join(", ")}` : "";
    this.focus();
  }

  #remove(file) {
    const at = this.#files.indexOf(file);
    this.#files.splice(at, 1);
    this.#options.files.remove([file.id]);
    this.#filesChanged();
    this.#say("");
    const next = this.#chosen.children[Math.min(at, this.#files.length - 1)];
    (next?.querySelector("button") ?? this.#form.querySelector(".attach")).focus();
  }

  // #checkKept removes files of a draft that the browser has not kept over a reload.
  async #checkKept(topic) {
    const files = this.#files, gone = [];
    for (const file of files) if (!await this.#options.files.get(file.id)) gone.push(file);
    if (!gone.length || files !== this.#files || topic !== this.#topic) return;
    this.#files = files.filter((file) => !gone.includes(file));
    this.#filesChanged();
    this.#say(`Choose ${gone.map(({ name }) => name).join(", ")} again: this browser has not kept ${gone.length > 1 ? "them" : "it"}.`);
  }

  #filesChanged() {
    keep(this.#filesKey(), this.#files.length ? JSON.stringify(this.#files) : "");
    this.#showFiles();
  }

  #filesKey() {
    return `${this.#key}files:${this.#topic}`;
  }

  #showFiles() {
    this.#chosen.replaceChildren(...this.#files.map((file) => {
      const chip = fill("chip");
      chip.querySelector("bdi").textContent = file.name;
      this.#preview(chip, file.id);
      chip.querySelector(".size").textContent = sizeText(file.size);
      const button = chip.querySelector("button");
      button.ariaLabel = `Remove ${file.name}`;
      button.addEventListener("click", () => this.#remove(file));
      return chip;
    }));
    this.#chosen.hidden = !this.#files.length;
  }

  // #preview shows a picture that is to be sent.
  async #preview(chip, id) {
    const content = await this.#options.files.get(id);
    if (!/^image\/(png|jpeg|gif|webp)$/.test(content?.type)) return;
    const picture = await createImageBitmap(content).catch(() => null);
    if (!picture) return;
    const preview = document.createElement("canvas"), side = Math.min(picture.width, picture.height);
    preview.width = preview.height = previewSize;
    preview.ariaHidden = "true";
    preview.getContext("2d").drawImage(picture, (picture.width - side) / 2, (picture.height - side) / 2, side, side, 0, 0, previewSize, previewSize);
    picture.close();
    chip.prepend(preview);
  }

  #say(problem) {
    this.#status.textContent = problem;
  }

  // A table copied in an office program comes as text and as a picture of it: the text is meant.
  #pasted(event) {
    const data = event.clipboardData;
    if (!data?.files.length || data.types.includes("text/plain")) return;
    event.preventDefault();
    this.#choose([...data.files]);
  }

  #dragged(event) {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault(); // else the browser opens the file in place of the page
    document.body.classList.add("dropping");
    clearTimeout(this.#dropTimer);
    this.#dropTimer = setTimeout(() => document.body.classList.remove("dropping"), 400);
  }

  #dropped(event) {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    document.body.classList.remove("dropping");
    const folders = [...event.dataTransfer.items].filter((item) => item.webkitGetAsEntry?.()?.isDirectory).map((item) => item.getAsFile()?.name);
    this.#choose([...event.dataTransfer.files].filter(({ name }) => !folders.includes(name)));
    if (folders.length) this.#say("Folders cannot be sent: pack them first.");
  }
}

function keep(key, text) {
  try {
    if (text) sessionStorage.setItem(key, text);
    else sessionStorage.removeItem(key);
  } catch {
    // No room for a draft: it stays in the box.
  }
}

function parseList(json) {
  try {
    return JSON.parse(json) ?? [];
  } catch {
    return [];
  }
}
