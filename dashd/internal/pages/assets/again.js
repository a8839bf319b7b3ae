// The last message of one's own again: its turn is taken back, then it is sent once more, as it was or edited.

const every = 400, maxWait = 20_000; // ms

// takeBack takes back the turn of a message, and answers a problem, "" for none. gated may refuse it, with an answer in the
// chat.
export async function takeBack(api, topic, id) {
  try {
    const before = (await api.messages(topic, 0)).messages;
    const row = before.find((each) => each.id === id);
    if (!row) return "too many messages came after it";
    if (!row.turn_id || row.undone) return "";
    if (before.some((each) => each.id !== id && each.direction === "in" && each.turn_id === row.turn_id)) return "its answer is also that to another message; /undo takes back both";
    const problem = await api.undo(row.turn_id);
    return problem || await settled(api, topic, id, before.at(-1).id);
  } catch {
    return "the server cannot be reached";
  }
}

// settled waits until the turn is taken back, or refused by an answer after a row.
async function settled(api, topic, id, last) {
  for (let waited = 0; waited < maxWait; waited += every) {
    await new Promise((resolve) => { setTimeout(resolve, every); });
    const { messages } = await api.messages(topic, 0);
    if (messages.find((each) => each.id === id)?.undone) return "";
    if (messages.some((each) => each.id > last && each.direction === "out" && each.source !== "agent")) return "the answer below says why";
  }
  return "it takes too long; the answer follows";
}

// offer makes the buttons under the message. again sends it again, and answers a problem; edit puts it into the box.
export function offer({ again, edit }) {
  const group = document.createElement("div");
  group.className = "again";
  group.role = "group";
  group.ariaLabel = "Your last message";
  group.tabIndex = -1;
  const about = document.createElement("span");
  about.role = "status";
  const button = (words, act) => {
    const element = document.createElement("button");
    Object.assign(element, { type: "button", className: "quiet", textContent: words });
    element.addEventListener("click", act);
    return element;
  };
  const retry = button("Try again", async () => {
    group.focus(); // a button that is disabled loses it
    retry.disabled = true;
    about.textContent = "Taking the answer back…";
    const problem = await again();
    about.textContent = problem && `Not taken back: ${problem}. Edit sends it as a new message.`;
    retry.disabled = false;
  });
  group.append(retry, button("Edit", edit), about);
  return group;
}
