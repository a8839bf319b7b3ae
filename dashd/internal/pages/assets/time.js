// Times in words, such as "5 min ago". The server words them the same way when it renders a page.

// skew is how far the browser's clock is ahead of the server's, in ms: the moments on a page are the server's.
let skew = 0;

const serverNow = () => Date.now() - skew;

// setServerTime is called with what the server's clock shows now, in unix ms.
export function setServerTime(at) {
  if (at > 0) skew = Date.now() - at;
}

const minute = 60_000, hour = 60 * minute, day = 24 * hour;

export function ago(at, now = serverNow()) {
  const passed = now - at;
  if (passed < minute) return "just now";
  if (passed < hour) return `${Math.floor(passed / minute)} min ago`;
  if (passed < day) return `${Math.floor(passed / hour)} h ago`;
  if (passed < 7 * day) return `${Math.floor(passed / day)} d ago`;
  return new Date(at).toISOString().slice(0, 10);
}

// ahead words how long it is until a moment to come.
export function ahead(at, now = serverNow()) {
  const left = at - now;
  if (left <= 0) return "now";
  if (left < minute) return "in less than a minute";
  if (left < 2 * hour) return `in ${Math.floor(left / minute)} min`;
  if (left < 2 * day) return `in ${Math.floor(left / hour)} h`;
  return `in ${Math.floor(left / day)} d`;
}

// setTime makes a <time> element show a moment, in unix ms.
export function setTime(element, at) {
  element.dateTime = new Date(at).toISOString();
  element.title = new Date(at).toLocaleString();
  element.textContent = dates ? element.title : element.hasAttribute("data-until") ? ahead(at) : ago(at);
}

// dates: times are shown as dates. A click on any of them changes that: phones have no tooltips.
let dates = false;

export function setTimes() {
  dates = !dates;
  refresh();
}

document.addEventListener("click", ({ target }) => {
  if (target.closest("time") && !target.closest("a, button, summary")) setTimes();
});

function refresh() {
  for (const element of document.querySelectorAll("time[datetime]")) {
    setTime(element, Date.parse(element.dateTime));
  }
}

setServerTime(Number(document.documentElement.dataset.now));
refresh();
setInterval(refresh, minute / 2);
