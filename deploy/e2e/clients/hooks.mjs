// Signs and verifies deliveries of webhooks with the libraries of their senders. HOOKS has a list of hooks, each with
// url, kind, secret and body, and the headers of a delivery that another program has signed.
import { Webhooks } from "@octokit/webhooks";
import { Webhook } from "standardwebhooks";
import Stripe from "stripe";
import { perform, report, untilInputEnds } from "./program.mjs";

const now = Math.floor(Date.now() / 1000);
const stripe = new Stripe("sk_test_none");

// Each library: the headers of a delivery that is sent at a time, and an error for one that is not of the sender.
const libraries = {
  github: {
    sign: async (secret, body, id) => ({
      "X-GitHub-Event": "issues", "X-GitHub-Delivery": id, "X-Hub-Signature-256": await new Webhooks({ secret }).sign(body),
    }),
    verify: async (secret, body, headers) => {
      if (!(await new Webhooks({ secret }).verify(body, headers["x-hub-signature-256"]))) throw new Error("another signature");
    },
  },
  stripe: {
    sign: async (secret, payload, id, timestamp) => ({ "Stripe-Signature": stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp }) }),
    verify: async (secret, body, headers) => stripe.webhooks.constructEvent(body, headers["stripe-signature"], secret),
  },
  standard: {
    sign: async (secret, body, id, time) => ({
      "webhook-id": id, "webhook-timestamp": `${time}`, "webhook-signature": new Webhook(secret).sign(id, new Date(time * 1000), body),
    }),
    verify: async (secret, body, headers) => new Webhook(secret).verify(body, headers),
  },
};

async function post(url, headers, body) {
  const answer = await fetch(url, { method: "POST", headers: { "Content-Type": "application/json", ...headers }, body });
  return { status: answer.status, text: await answer.text() };
}

untilInputEnds(() => {});
for (const { url, kind, secret, body, headers } of JSON.parse(process.env.HOOKS)) {
  const { sign, verify } = libraries[kind];
  const other = secret.slice(0, -10) + [...secret.slice(-10, -4)].reverse().join("") + secret.slice(-4);
  for (const [name, delivered, signed] of [
    ["right", body, sign(secret, body, "id-1", now)], ["repeated", body, sign(secret, body, "id-1", now + 1)],
    ["with another secret", body, sign(other, body, "id-2", now)], ["changed", `${body} `, sign(secret, body, "id-3", now)],
    ["old", body, sign(secret, body, "id-4", now - 310)], ["of the future", body, sign(secret, body, "id-5", now + 310)],
  ]) await perform(`${kind} ${name}`, async () => post(url, await signed, delivered), () => ({}));
  await perform(`${kind} verified`, () => verify(secret, body, headers).then(() => ({})), () => ({}));
  await perform(`${kind} not verified`, () => verify(secret, `${body} `, headers).then(() => ({})), () => ({}));
}
report("end");
