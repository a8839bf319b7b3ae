// The bar: its keys, and the menu. The service worker has a page for when dashd cannot be reached.

import "./keys.js";

navigator.serviceWorker?.register("/sw.js").catch(() => {}); // without it there is only no such page

// The menu of narrow screens closes by Escape, which gives the focus back, and when the focus or a press goes elsewhere.

const menu = document.getElementById("menu");

document.addEventListener("keydown", ({ key }) => {
  if (key !== "Escape" || !menu.open) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

function leave({ relatedTarget, target }) {
  const to = relatedTarget ?? target;
  if (!menu.contains(to)) menu.open = false;
}
menu.addEventListener("focusout", leave);
document.addEventListener("pointerdown", leave);
