// Parts of the page that several scripts make.

// fill makes an element from a template of the page.
export function fill(id) {
  return document.getElementById(id).content.firstElementChild.cloneNode(true);
}

// letScroll makes wide content scroll within the column, also by keyboard.
export function letScroll(body) {
  for (const table of body.querySelectorAll("table")) {
    const box = document.createElement("div");
    box.className = "scroll";
    table.replaceWith(box);
    box.append(table);
  }
  for (const wide of body.querySelectorAll("pre, .scroll")) wide.tabIndex = 0;
}
