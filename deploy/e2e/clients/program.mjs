// What the bots of this folder share: they print one JSON line for each step and event, and end with their input.

export function report(on, fields = {}) {
  process.stdout.write(`${JSON.stringify({ on, ...fields })}\n`);
}

// perform reports what a step returns, or the fields of its error that describe chooses.
export async function perform(on, step, describe) {
  try {
    report(on, (await step()) ?? {});
  } catch (error) {
    report(on, { error: { name: error.name, message: error.message, ...describe(error) } });
  }
}

// untilInputEnds stops the bot when the test closes its input.
export function untilInputEnds(stop) {
  process.stdin.resume().on("end", async () => {
    await stop();
    process.exit(0);
  });
}
