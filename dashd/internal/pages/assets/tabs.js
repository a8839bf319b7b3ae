// The tab strip: one tab per topic, "" being the main one. It follows the ARIA pattern for tabs:
// one stop for the Tab key, arrows move between them. The open one is in the address.

// A valid topic, a fork like "#deploy#fix" included.
const named = /^(#[A-Za-z0-9_][A-Za-z0-9_-]*)+$/;

export function isTopic(topic) {
  return topic === "" || named.test(topic);
}

export class Tabs {
  active = null;
  #strip;
  #tabs = new Map(); // by topic
  #opened;

  // opened is called with a topic when its tab is chosen.
  constructor(strip, opened) {
    this.#strip = strip;
    this.#opened = opened;
    strip.addEventListener("keydown", (event) => this.#move(event));
    addEventListener("hashchange", () => this.open(topicInAddress()));
  }

  // add makes sure that there is a tab; panel is the element it controls.
  add(topic, panel) {
    const tab = document.createElement("button");
    Object.assign(tab, { type: "button", id: `tab-${this.#tabs.size}`, tabIndex: -1 });
    tab.role = "tab";
    tab.ariaSelected = "false";
    tab.append(label(topic), mark());
    tab.addEventListener("click", () => this.open(topic));
    tab.setAttribute("aria-controls", panel.id);
    panel.setAttribute("aria-labelledby", tab.id);
    this.#tabs.set(topic, tab);
    this.#strip.append(tab);
  }

  open(topic) {
    if (topic === this.active) return;
    this.#opened(topic); // may add the tab
    this.active = topic;
    for (const [each, tab] of this.#tabs) {
      if (each === topic) tab.classList.remove("archived");
      tab.ariaSelected = String(each === topic);
      tab.tabIndex = each === topic ? 0 : -1;
    }
    this.#tabs.get(topic).scrollIntoView({ block: "nearest", inline: "nearest" });
    // Replaced, not pushed: "back" leads out of the chat, not through its tabs.
    history.replaceState(null, "", location.pathname + location.search + fragment(topic));
  }

  // note sets what a tab shows: its title, how many messages are unread, and whether an agent is working. One of an
  // archived topic is hidden, unless it is open or the archive is shown.
  note(topic, { unread, working, title, archived }) {
    const tab = this.#tabs.get(topic);
    tab.classList.toggle("archived", archived && topic !== this.active);
    tab.title = title && topic;
    const shown = title || name(topic);
    if (tab.firstChild.textContent !== shown) {
      tab.firstChild.textContent = shown;
      if (topic === this.active) tab.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    tab.classList.toggle("unread", unread > 0);
    tab.classList.toggle("working", working);
    const words = [unread && `${unread} unread`, working && "an agent is working"].filter(Boolean);
    tab.querySelector(".hidden").textContent = words.map((word) => `, ${word}`).join("");
  }

  #move(event) {
    const topics = [...this.#tabs.keys()].filter((topic) => this.#tabs.get(topic).offsetParent);
    const at = topics.indexOf(this.active), last = topics.length - 1;
    const to = {
      ArrowRight: at === last ? 0 : at + 1,
      ArrowLeft: at === 0 ? last : at - 1,
      Home: 0,
      End: last,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.open(topics[to]);
    this.#tabs.get(topics[to]).focus();
  }
}

export function name(topic) {
  return topic || "main";
}

export function topicInAddress() {
  try {
    const topic = decodeURIComponent(location.hash);
    return isTopic(topic) ? topic : "";
  } catch {
    return ""; // a stray % sign
  }
}

function fragment(topic) {
  return topic && "#" + encodeURIComponent(topic.slice(1));
}

// label is a name that may be of another script.
export function label(topic) {
  const label = document.createElement("bdi");
  label.textContent = name(topic);
  return label;
}

function mark() {
  const mark = document.createElement("span");
  mark.className = "hidden";
  return mark;
}
