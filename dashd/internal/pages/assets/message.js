// The parts of a message, as the log shows it.

import { fill, letScroll } from "./elements.js";
import { equip } from "./bubble.js";
import { sizeText } from "./files.js";
import { setTime } from "./time.js";

const maxWidth = 384, maxHeight = 288; // px of a picture

// message is a row.
export function message(row) {
  const element = fill("message");
  element.dataset.id = row.id;
  element.classList.add(row.direction, row.source || "unknown");
  element.querySelector(".sender").textContent = row.sender_name || row.sender;
  setTime(element.querySelector("time"), row.timestamp);
  const quote = element.querySelector(".quote");
  if (row.quote) quote.textContent = row.quote;
  else quote.remove();
  const body = element.querySelector(".body");
  if (row.direction === "out") {
    body.innerHTML = row.html ?? ""; // rendered and sanitised by the server
    letScroll(body);
  } else {
    body.textContent = row.content;
  }
  element.querySelector(".note").textContent = row.deleted ? "deleted" : row.undone ? "taken back" : row.failed || (row.edited ? "edited" : "");
  element.classList.toggle("undone", !!row.undone);
  if (row.deleted) body.remove();
  element.querySelector(".files").append(...(row.files ?? []).map(attachment));
  element.querySelector(".reactions").append(...(row.reactions ?? []).map(reaction));
  if (!row.deleted) equip(element, row);
  if (row.moved_to) leadTo(element, row.moved_to);
  return element;
}

// leadTo links to the topic to which a message like "#deploy ship it" went.
export function leadTo(element, topic) {
  if (element.querySelector(".moved")) return;
  const link = document.createElement("a");
  link.className = "moved";
  link.href = `#${encodeURIComponent(topic.slice(1))}`;
  link.textContent = `answered in ${topic}`;
  element.querySelector(".about").append(" ", link);
}

// attachment is a link to a file, or a picture; the reason for a file that is not there.
function attachment(file) {
  const item = document.createElement("li");
  if (!file.url) {
    item.append(bdi(file.name), file.error ? `: ${file.error}` : " is not stored");
    return item;
  }
  const link = document.createElement("a");
  link.href = file.url;
  if (file.image) {
    link.target = "_blank";
    link.rel = "noopener";
    const picture = document.createElement("img");
    picture.src = file.url;
    picture.alt = file.name;
    picture.loading = "lazy";
    const scale = Math.min(1, maxWidth / file.width, maxHeight / file.height);
    if (scale) Object.assign(picture, { width: Math.round(file.width * scale), height: Math.round(file.height * scale) }); // so that nothing jumps
    link.append(picture);
  } else {
    link.download = file.name;
    link.append(bdi(file.name));
  }
  item.append(link);
  if (!file.image && file.size) item.append(sizeOf(file.size));
  return item;
}

// fileLine is a file that is not sent yet.
export function fileLine(name, size) {
  const item = document.createElement("li");
  item.append(bdi(name), sizeOf(size));
  return item;
}

export function bdi(text) {
  const element = document.createElement("bdi");
  element.textContent = text;
  return element;
}

function sizeOf(bytes) {
  const element = document.createElement("span");
  element.className = "size";
  element.textContent = ` ${sizeText(bytes)}`;
  return element;
}

// ballot is a form to vote in a poll. A vote replaces the one before.
export function ballot(row, vote) {
  const form = document.createElement("form");
  form.className = "ballot";
  const options = row.poll.options.map((text, i) => {
    const label = document.createElement("label");
    const field = document.createElement("input");
    field.type = row.poll.multiple ? "checkbox" : "radio";
    field.name = "option";
    field.value = i + 1;
    field.checked = row.poll.chosen?.includes(i + 1) ?? false;
    label.append(field, ` ${text}`);
    return label;
  });
  const button = document.createElement("button");
  button.textContent = "Vote";
  const about = document.createElement("span");
  about.role = "status";
  form.append(...options, button, about);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const chosen = new FormData(form).getAll("option").map(Number);
    about.textContent = "";
    about.textContent = await vote(row.id, chosen) || (chosen.length ? "Voted" : "Vote withdrawn");
  });
  return form;
}

// choices are buttons for options, of a question for example: they go away with it, by a change of its message.
// choose takes the number of an option, and returns a problem, "" for none.
export function choices(label, options, choose) {
  const group = document.createElement("div");
  group.className = "choices";
  group.role = "group";
  group.ariaLabel = label;
  const about = document.createElement("span");
  about.role = "status";
  const buttons = options.map((text, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.addEventListener("click", async () => {
      about.textContent = "";
      group.focus(); // a button that is disabled loses it
      buttons.forEach((each) => { each.disabled = true; });
      const problem = await choose(i);
      about.textContent = problem || "Sent";
      if (!problem) return;
      buttons.forEach((each) => { each.disabled = false; });
      if (document.activeElement === group) button.focus();
    });
    return button;
  });
  group.tabIndex = -1;
  group.append(...buttons, about);
  return group;
}

// signs are the reactions that show what a message waits for, or that it gets no answer.
const signs = { "👀": "read", "🤷": "gets no answer", "😴": "not read yet" };

function reaction(emoji) {
  const item = document.createElement("li");
  item.textContent = emoji;
  item.title = signs[emoji] ?? "";
  return item;
}
