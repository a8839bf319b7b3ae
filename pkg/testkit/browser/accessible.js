(() => {
  const visible = (e) => e.checkVisibility({ visibilityProperty: true }) && e.getClientRects().length > 0;
  const hidden = (e) => e.closest(".hidden, [aria-hidden=true]");
  const brief = (e) => `${e.localName}${e.id ? "#" + e.id : ""} ${JSON.stringify((e.getAttribute("aria-label") || e.innerText || e.name || "").trim().slice(0, 40))}`;
  const controls = () => [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]")]
    .filter((e) => visible(e) && !e.disabled);

  function markup() {
    const found = [];
    const all = (css) => [...document.querySelectorAll(css)].filter(visible);
    if (!document.documentElement.lang) found.push("the page has no language");
    if (!document.title.trim()) found.push("the page has no title");
    for (const nav of all("nav[aria-label=Main]")) {
      const current = nav.querySelectorAll("[aria-current=page]").length;
      if (current > 1) found.push(`${current} links of the navigation are current`);
    }
    for (const e of all("[aria-invalid=true]")) {
      const texts = (e.getAttribute("aria-describedby") ?? "").split(" ").map((id) => document.getElementById(id)?.innerText.trim());
      if (!texts.some(Boolean)) found.push(`${brief(e)} is invalid and does not say why`);
    }
    for (const e of document.querySelectorAll("[aria-labelledby], [aria-describedby], [aria-controls]")) {
      for (const name of ["aria-labelledby", "aria-describedby", "aria-controls"]) {
        for (const id of (e.getAttribute(name) ?? "").split(" ").filter(Boolean)) {
          if (!document.getElementById(id)) found.push(`${brief(e)}: ${name} names ${id}, which is not there`);
        }
      }
    }
    const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
    for (const id of new Set(ids.filter((id, i) => ids.indexOf(id) !== i))) found.push(`two elements have the id ${id}`);
    // What the page says after an action is read aloud: it is a live region, or describes the field with the focus.
    for (const e of all(".problem, .notice, form .wrong")) {
      const describes = e.id && document.querySelector(`[aria-invalid=true][aria-describedby~="${CSS.escape(e.id)}"]`);
      if (!e.closest("[role=alert], [role=status]") && !describes) found.push(`${brief(e)} is not read aloud`);
    }
    for (const e of all("input:not([type=hidden]), select, textarea")) {
      if (!e.labels.length) found.push(`${brief(e)} has no label`);
    }
    for (const e of document.querySelectorAll("[tabindex]")) {
      if (e.tabIndex > 0) found.push(`${brief(e)} changes the order of the focus`);
    }
    return found;
  }

  // inText: a link among the words of a sentence.
  function inText(e) {
    if (e.localName !== "a" || getComputedStyle(e).display !== "inline") return false;
    const block = e.closest("p, li, dd, .detail, td, th");
    if (!block) return false;
    const words = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
    for (let node; (node = words.nextNode()); ) {
      if (/[\p{L}\p{N}]/u.test(node.data) && visible(node.parentElement) && !node.parentElement.closest("a, button, time")) return true;
    }
    return false;
  }

  function targets() {
    return controls().filter((e) => !hidden(e) && !e.matches(".skip, pre, section, main, div") && !inText(e)).flatMap((e) => {
      const target = e.matches("input[type=checkbox], input[type=radio]") && e.labels[0] ? [e, ...e.labels] : [e];
      const boxes = target.map((each) => each.getBoundingClientRect());
      const width = Math.max(...boxes.map((b) => b.width)), height = Math.max(...boxes.map((b) => b.height));
      return width < 23.5 || height < 23.5 ? [`${brief(e)} is ${Math.round(width)} by ${Math.round(height)}`] : [];
    });
  }

  const clips = (style, axis) => ["hidden", "clip"].includes(style[axis]);
  const scrolls = (e) => { for (let up = e; up; up = up.parentElement) if (/auto|scroll/.test(getComputedStyle(up).overflowX)) return up; };

  function cut() {
    const found = [];
    const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    for (let node; (node = words.nextNode()); ) {
      const e = node.parentElement;
      if (!node.data.trim() || !visible(e) || e.closest(".hidden, .skip, noscript, template, script, option, datalist, thead")) continue;
      range.selectNodeContents(node);
      const box = range.getBoundingClientRect();
      if (!box.width || scrolls(e) || e.closest(".chats .last")) continue; // the beginning of a message's text is enough
      if (box.right > innerWidth + 1 || box.left < -1) found.push(`${JSON.stringify(node.data.trim().slice(0, 40))} is beside the page`);
      for (let up = e; up !== document.body; up = up.parentElement) {
        const style = getComputedStyle(up), frame = up.getBoundingClientRect();
        if (style.textOverflow === "ellipsis" || style.clipPath !== "none") break;
        if (clips(style, "overflowX") && box.right > frame.right + 1 || clips(style, "overflowY") && box.bottom > frame.bottom + 1) {
          found.push(`${JSON.stringify(node.data.trim().slice(0, 40))} is cut by ${brief(up)}`);
        }
      }
    }
    for (const e of document.querySelectorAll("button, .button, summary")) {
      if (visible(e) && !hidden(e) && e.scrollWidth > e.clientWidth + 2) found.push(`${brief(e)} is wider than itself`);
    }
    return found;
  }

  const ring = (e) => {
    const s = getComputedStyle(e);
    return [s.outlineStyle === "none" || parseFloat(s.outlineWidth) === 0 ? "" : s.outlineWidth + s.outlineColor, s.boxShadow].join();
  };

  function keyboard() {
    document.body.tabIndex = -1; // the first Tab leads to the first control
    document.body.focus();
    document.body.removeAttribute("tabindex");
    window.scrollTo(0, 0);
    // Of tabs and of radio buttons the chosen one is reached; arrow keys lead on.
    const stops = controls().filter((e) => e.tabIndex >= 0 && !(e.type === "radio" && !e.checked));
    const unfocused = new Map(stops.map((e) => [e, ring(e)]));
    const reached = [], found = [];
    let last = null, parts = 0;
    return {
      count: stops.length,
      // step looks at the focus after a press of Tab; true: the focus has left the page, or begins again.
      step() {
        const e = document.activeElement;
        if (!e || e === document.body || e === reached[0]) return true;
        if (e === last && /date|time/.test(e.type) && parts++ < 8) return false; // its parts: day, month, …
        if (e === last) { found.push(`${brief(e)} keeps the focus`); return true; }
        last = e, parts = 0;
        const before = reached.at(-1);
        reached.push(e);
        if (before && !(before.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING)) found.push(`${brief(e)} comes after ${brief(before)}, which stands behind it`);
        const box = e.getBoundingClientRect();
        if (box.bottom < 1 || box.top > innerHeight - 1 || box.width < 1 || box.height < 1) found.push(`${brief(e)} has the focus and is not in view`);
        if (ring(e) === unfocused.get(e)) found.push(`${brief(e)} does not show the focus`);
        const previous = before?.getBoundingClientRect();
        if (before?.closest("main") && e.closest("main") && previous.height && box.bottom <= previous.top && box.left <= previous.left) {
          found.push(`${brief(e)} has the focus after ${brief(before)}, which is seen behind it`);
        }
        return false;
      },
      problems: () => [...found, ...stops.filter((e) => !reached.includes(e) && visible(e)).map((e) => `${brief(e)} is not reached`)],
    };
  }

  // shape is what stays in sight when users replace all colours.
  const shape = (e) => {
    const s = getComputedStyle(e);
    return ["top", "right", "bottom", "left"].map((side) => s[`border-${side}-style`] === "none" ? "" : s[`border-${side}-width`] + s[`border-${side}-color`]).join() + s.backgroundColor;
  };

  function forced() {
    const found = [];
    for (const e of document.querySelectorAll("button, .button, input:not([type=hidden], [type=checkbox]), select, textarea")) {
      if (visible(e) && !hidden(e) && !e.matches("[role=tab]") && !parseFloat(getComputedStyle(e).borderTopWidth)) found.push(`${brief(e)} has no border`);
    }
    for (const e of document.querySelectorAll("[aria-current], [aria-selected=true]")) {
      const others = e.closest("nav, ul, [role=tablist]").querySelectorAll("a:not([aria-current]), [aria-selected=false]");
      const other = [...others].find(visible);
      if (visible(e) && other && shape(e) === shape(other)) found.push(`${brief(e)} looks like those that are not current`);
    }
    for (const [a, b] of [[".key.in", ".key.out"]]) {
      const [one, two] = [a, b].map((css) => document.querySelector(css)).map((e) => e && getComputedStyle(e, "::before").backgroundColor);
      if (one && one === two) found.push(`${a} looks like ${b}`);
    }
    return found;
  }

  return { markup, targets, cut, keyboard, forced };
})()
