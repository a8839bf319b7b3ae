"use strict";

const end = () => scrollTo(0, document.body.scrollHeight);

// The server renders; this replaces the messages with those of a freshly loaded page.
let wanted = false, busy = false;
async function refresh() {
  wanted = true;
  if (busy) return;
  busy = true;
  try {
    while (wanted) {
      wanted = false;
      const response = await fetch(location.href);
      if (!response.ok) return;
      const fresh = new DOMParser().parseFromString(await response.text(), "text/html").getElementById("messages");
      const old = document.getElementById("messages");
      if (fresh.innerHTML === old.innerHTML) continue;
      const below = innerHeight + scrollY >= document.body.scrollHeight - 40;
      old.replaceWith(fresh);
      if (below) end();
    }
  } catch (e) {
    if (!(e instanceof TypeError)) throw e; // the server cannot be reached at the moment
  } finally {
    busy = false;
  }
}
new EventSource("/events").onmessage = refresh;

const form = document.getElementById("compose"), text = form.elements.text;
text.setSelectionRange(text.value.length, text.value.length);
text.addEventListener("keydown", e => {
  if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
  e.preventDefault();
  form.requestSubmit();
});
document.getElementById("mention").addEventListener("click", e => {
  text.setRangeText(e.target.dataset.name, text.selectionStart, text.selectionEnd, "end");
  text.focus();
});
end();
addEventListener("load", end); // images have their height now
