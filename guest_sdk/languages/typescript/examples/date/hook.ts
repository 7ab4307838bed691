// date: tells the model today's date in UTC, once a day of the conversation, and sets the temperature to 0.
// It does not know where the user is. The date is a user's message at the end, since a guest may add no system message
// unless the host grants it, and it stays in the history.
import { defineHook } from "hookcell";

export default defineHook({
  name: "date",
  version: "0.1.0",
  needs: ["now", "messages", "request"],

  preGenerate(ctx) {
    ctx.request.temperature = 0;
    const today = `Today is ${new Date().toISOString().slice(0, 10)}.`; // from ctx.now, so a replay says the same
    if (ctx.messages.some(({ role, content }) => role === "user" && content === today)) return;
    ctx.messages.push({ role: "user", content: today });
  },
});
