// audit: logs each tool call before it runs and what it came to, also where a rule, a human or another hook stopped it.
// It changes nothing. It masks nothing: what the arguments and results hold, the log holds. It shows 100 items of a list
// or map, and a log has a limit, so this is for people who watch, and no evidence. Register it first: a hook before it
// that stops a call leaves it the second line alone.
import { defineHook } from "hookcell";

export default defineHook({
  name: "audit",
  version: "0.1.0",
  needs: ["toolName", "args", "result", "origin"],

  // Values stand inside an object, where texts are quoted: a result with a line break cannot forge a line of the log.
  preToolCall({ toolName, args }) {
    console.log("calling", { toolName, args });
  },

  postToolCall({ toolName, origin }, { result, error, requiresApproval }) {
    if (requiresApproval) console.log("waiting", { toolName });
    else if (error) console.log("failed", { toolName, origin, error: error.message });
    else console.log("finished", { toolName, origin, result });
  },
});
