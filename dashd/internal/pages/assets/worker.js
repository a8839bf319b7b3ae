// The worker that holds the one event stream of a browser, for all its pages: a browser opens only six connections to a
// host, and an event stream takes one for as long as it is open.
//
// Pages of an older version use it too, see move: what they say and what they are sent must keep its meaning.
//
//   page → worker: "here" now and then, "look" when it is shown, "verify" when a request was refused for want of a
//   login, "gone" when it is left
//   worker → page: {here} as the answer, {state} of the stream, {event, data}, {move} with the address of another worker

import { Stream } from "./stream.js";

const maxQuiet = 150_000; // ms; a page says "here" every 10 s, a hidden one at least every minute

const pages = new Map(); // port → when it was heard last
const kept = new Map(); // events that are a state: a page that comes later gets the last ones

const stream = new Stream({
  url: "/events",
  event: (event, data) => {
    if (event === "hello" && data.worker !== location.pathname) return move(data.worker);
    if (["hello", "typing", "progress"].includes(event)) kept.set(event, data);
    tell({ event, data });
  },
  changed: (state) => {
    if (state.kind !== "open") kept.clear();
    tell({ state });
  },
});

function tell(message) {
  for (const port of pages.keys()) port.postMessage(message);
}

// move sends the pages to the worker of the version that the server has now, which gets a stream of its own.
function move(worker) {
  stream.stop();
  kept.clear();
  tell({ move: worker });
  for (const port of pages.keys()) leave(port);
}

function enter(port) {
  pages.set(port, Date.now());
  port.postMessage({ state: stream.state });
  for (const [event, data] of kept) port.postMessage({ event, data });
  stream.start();
  if (stream.state.kind !== "open") stream.look(); // it was loaded just now, so there is a server and a login
}

function leave(port) {
  pages.delete(port);
  port.close();
  if (!pages.size) stream.stop();
}

addEventListener("connect", ({ ports: [port] }) => {
  port.onmessage = ({ data }) => {
    if (data === "gone") return leave(port);
    if (pages.has(port)) pages.set(port, Date.now());
    else enter(port);
    port.postMessage({ here: true });
    if (data === "look") stream.look();
    if (data === "verify") stream.verify();
  };
});

// A page that crashed says nothing. One that only slept enters again with its next word.
setInterval(() => {
  for (const [port, heardAt] of pages) {
    if (Date.now() - heardAt <= maxQuiet) continue;
    pages.delete(port);
    if (!pages.size) stream.stop();
  }
}, 30_000);
