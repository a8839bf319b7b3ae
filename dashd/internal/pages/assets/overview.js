// The overview page: the server renders it again whenever something has changed.

import "./time.js";
import { Stream } from "./stream.js";

const facts = document.getElementById("facts");
let shown = "";

function show({ html }) {
  if (html === shown) return; // a click that has begun must find its button
  shown = html;
  // The new links get the focus of the old ones.
  const links = () => [...facts.querySelectorAll("a, button, [tabindex]")];
  const focused = links().indexOf(document.activeElement);
  facts.innerHTML = html; // rendered by the server from templates that escape
  links()[focused]?.focus({ preventScroll: true });
}

function showConnection(state) {
  const words = { open: "", lost: "Reconnecting…", ended: "Your login has ended. Reload the page to log in." };
  document.getElementById("connection").textContent = words[state];
}

new Stream({
  url: () => "/overview/events",
  probe: "/status",
  on: { overview: show },
  state: showConnection,
}).start();
