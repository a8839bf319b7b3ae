// The page Notifications: it subscribes this browser once its user asks for that.

const form = document.getElementById("subscribe");
const show = (name) => { document.getElementById(`push-${name}`).hidden = false; };

async function offer() {
  if (!isSecureContext) return show("insecure");
  if (!globalThis.PushManager) return show(isApple() ? "ios" : "none");
  if (Notification.permission === "denied") return show("denied");
  const { pushManager } = await navigator.serviceWorker.register("/sw.js");
  const endpoint = (await pushManager.getSubscription())?.endpoint;
  const row = [...document.querySelectorAll("[data-end]")].find((row) => endpoint?.endsWith(row.dataset.end));
  if (row) row.querySelector(".here").hidden = false;
  show(row ? "on" : "off");
}

// isApple: also for iPads, which say they are Macs.
function isApple() {
  return /iPhone|iPad/.test(navigator.userAgent) || /Mac/.test(navigator.userAgent) && navigator.maxTouchPoints > 1;
}

async function subscribe() {
  if (await Notification.requestPermission() !== "granted") return show("denied");
  const { pushManager } = await navigator.serviceWorker.ready;
  await (await pushManager.getSubscription())?.unsubscribe(); // it may be of another key
  const made = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: form.dataset.key });
  const { endpoint, keys } = made.toJSON();
  for (const [name, value] of Object.entries({ endpoint, ...keys })) form.elements[name].value = value;
  form.submit();
}

const failed = ({ message }) => {
  const problem = document.getElementById("push-problem");
  problem.textContent = `This browser could not subscribe: ${message}`;
  problem.hidden = false;
};

form?.addEventListener("submit", (event) => {
  event.preventDefault();
  subscribe().catch(failed);
});
if (form) offer().catch(failed);
