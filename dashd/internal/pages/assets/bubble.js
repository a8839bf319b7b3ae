// What stands at a message: buttons that copy it and its code, and the link to the page that says why it was answered.

import { colour } from "./code.js";

const showFor = 2_000; // ms

export function equip(element, { id }) {
  const about = element.querySelector(".about"), body = element.querySelector(".body");
  const why = document.createElement("a");
  why.className = "act";
  why.href = `/messages/${id}`;
  why.textContent = "Why";
  why.ariaLabel = `Why message ${id} went where it went`;
  if (body.textContent) about.append(" ", copyButton(`Copy message ${id}`, () => textOf(body)));
  about.append(" ", why);
  body.querySelectorAll("pre").forEach((pre, i) => {
    const box = document.createElement("div");
    box.className = "code-box";
    pre.replaceWith(box);
    box.append(pre, copyButton(`Copy code ${i + 1} of message ${id}`, () => pre.textContent));
  });
  colour(body);
}

function copyButton(label, text) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "quiet act";
  button.textContent = "Copy";
  button.ariaLabel = label;
  button.addEventListener("click", async () => {
    button.textContent = await copy(text()) ? "Copied" : "Not copied";
    button.ariaLabel = `${button.textContent}: ${label}`;
    setTimeout(() => Object.assign(button, { textContent: "Copy", ariaLabel: label }), showFor);
  });
  return button;
}

// textOf is the text as it is shown, without that of buttons.
export function textOf(body) {
  body.classList.add("copying");
  const text = body.innerText.trim();
  body.classList.remove("copying");
  return text;
}

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  // On plain http from another machine there is no clipboard.
  const field = document.createElement("textarea"), focused = document.activeElement;
  field.value = text;
  field.className = "hidden";
  document.body.append(field);
  field.select();
  const copied = document.execCommand("copy");
  field.remove();
  focused?.focus();
  return copied;
}
