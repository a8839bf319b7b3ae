// The bar: its keys, and the menu.

import "./keys.js";

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
