// defaults: gives a search a limit where the model gave none, or null.
// It does not lower a limit that is there, and does not know the tool: the host checks the arguments against the tool's
// schema again, and the rules and the human see them as they now are.
import { defineHook } from "hookcell";

export default defineHook({
  name: "defaults",
  version: "0.1.0",
  needs: ["toolName", "args"],

  preToolCall(ctx) {
    if (ctx.toolName === "search") ctx.args.limit ??= 5; // changed in place: that is the outcome
  },
});
