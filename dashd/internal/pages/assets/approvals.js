// The requests of chats: the server renders them again when something has changed. What was typed stays.

import "./time.js";
import { Stream } from "./stream.js";

const facts = document.getElementById("facts");
let shown = "";

function show({ html }) {
  if (html === shown) return; // a click that has begun must find its button
  shown = html;
  const focused = document.activeElement?.id;
  const typed = new Map([...facts.querySelectorAll("input")].map((input) => [input.id, input]));
  const open = facts.querySelector("details")?.open;
  facts.innerHTML = html; // rendered by the server from templates that escape
  for (const input of facts.querySelectorAll("input")) {
    const before = typed.get(input.id);
    if (!before) continue;
    input.value = before.value;
    if (input.id !== focused) continue;
    input.focus({ preventScroll: true });
    input.setSelectionRange(before.selectionStart, before.selectionEnd);
  }
  const details = facts.querySelector("details");
  if (details && open) details.open = true;
}

function showConnection(state) {
  const words = { open: "", lost: "Reconnecting…", ended: "Your login has ended. Reload the page to log in." };
  document.getElementById("connection").textContent = words[state];
}

new Stream({
  url: () => "/approvals/events",
  probe: "/status",
  on: { approvals: show },
  state: showConnection,
}).start();
