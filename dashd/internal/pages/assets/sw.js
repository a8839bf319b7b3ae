// The service worker. It keeps a page for when dashd can't be reached, with its style, and nothing else: no page with
// content, no message. It shows the notices that dashd pushes. The server puts shell in front of it: the version of the
// assets, the page and the files that it needs.

addEventListener("install", (event) => {
  skipWaiting(); // open pages need nothing of the old one
  event.waitUntil(caches.open(shell.version).then((cache) => cache.addAll([shell.page, ...shell.files])));
});

addEventListener("activate", (event) => {
  event.waitUntil(caches.keys().then((all) => Promise.all(all.filter((name) => name !== shell.version).map((name) => caches.delete(name)))));
  event.waitUntil(clients.claim());
});

addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.mode === "navigate" && request.method === "GET") {
    event.respondWith(fetch(request).catch(async () => await caches.match(shell.page) ?? Response.error()));
  } else if (shell.files.includes(new URL(request.url).pathname)) {
    event.respondWith(caches.match(request).then((kept) => kept ?? fetch(request)));
  }
});

addEventListener("push", (event) => {
  const { title, body, url, tag } = event.data.json();
  event.waitUntil(registration.showNotification(title, { body, tag, icon: shell.icon, data: url }));
});

addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(open(event.notification.data));
});

// open shows the tab that has a page open, or a new one.
async function open(path) {
  const tabs = await clients.matchAll({ type: "window", includeUncontrolled: true });
  const tab = tabs.find(({ url }) => new URL(url).pathname === path);
  return tab ? tab.focus() : clients.openWindow(path);
}
