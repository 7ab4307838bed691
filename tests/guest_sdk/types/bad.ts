// What must not compile: each line with a code at its end has that error, and no other line has one.
import { defineHook } from "hookcell";
import type { Hook, PreToolCallContext, PreToolCallOutcome, Value } from "hookcell";

defineHook({ version: "1.0.0" }); // TS2345
defineHook({ name: "a", needs: ["toolname"] }); // TS2820
defineHook({ name: "a", storage: "forever" }); // TS2322
defineHook({ name: "a", pre_tool_call() {} }); // TS2322
defineHook({ name: "a", preToolCall: () => ({ deny: 1 }) }); // TS2322
defineHook({ name: "a", preToolCall: () => ({ deny: null }) }); // TS2322
defineHook({ name: "a", preToolCall: () => ({ deny: "x", result: 1 }) }); // TS2322
defineHook({ name: "a", preToolCall: () => ({ input: {}, result: null }) }); // TS2322
defineHook({ name: "a", preToolCall: () => ({ decision: "deny" }) }); // TS2322
defineHook({ name: "a", preToolCall: () => ({ input: [1] }) }); // TS2322
defineHook({ name: "a", preToolCall: () => "no" }); // TS2322
defineHook({ name: "a", preToolCall: () => false }); // TS2322
defineHook({ name: "a", preToolCall: () => ({ result: new Map() }) }); // TS2322
defineHook({ name: "a", preToolCall: () => ({ result: new Date(0) }) }); // TS2322
defineHook({ name: "a", preToolCall: () => ({ result: () => 1 }) }); // TS2322
defineHook({ name: "a", preToolCall: () => ({ result: [undefined] }) }); // TS2322
defineHook({ name: "a", postToolCall: () => ({ deny: "too late" }) }); // TS2322
defineHook({ name: "a", preGenerate: () => ({ deny: "no" }) }); // TS2322
defineHook({ name: "a", postGenerate: async () => "no" }); // TS2322
defineHook({ name: "a", beforePrompt: () => null }); // TS2322
defineHook({ name: "a", beforePrompt: () => ({ replace: "x" }) }); // TS2322
defineHook({ name: "a", beforeTool: (call) => ({ name: call.name, args: {} }) }); // TS2322
defineHook({ name: "a", afterTool: () => ({ isError: true }) }); // TS2322
defineHook({ name: "a", afterTool: () => 7 }); // TS2322
defineHook({ name: "a", onError: () => Symbol() }); // TS2322

function fields(ctx: PreToolCallContext) {
  ctx.tool_name; // TS2551
  ctx.toolName = "other"; // TS2540
  ctx.messages[0] = { role: "user", content: "" }; // TS2542
  ctx.messages.splice(0, 1); // TS2551
  ctx.messages.push({ role: "nobody", content: "" }); // TS2322
  ctx.request; // TS2339
  ctx.emit; // TS2339
}

defineHook({
  name: "a",
  preGenerate(ctx) {
    ctx.request.model = "other"; // TS2540
    ctx.request.temperature = "0"; // TS2322
    ctx.emit({ type: "compaction.start" }); // TS2722
    ctx.emit?.({ type: "tool.done" }); // TS2322
  },
  afterResponse(response, ctx) {
    response.length.nothing; // TS2339
    ctx.meta({ at: new Date(0) }); // TS2322
    ctx.meta("note"); // TS2345
    ctx.state.append("memory"); // TS2554
  },
});

class Wrong implements Hook {
  readonly name = "wrong";
  onError() { // TS2416
    return Symbol();
  }
}

interface Loose {
  a: number;
}
const loose: Loose = { a: 1 };
const value: Value = loose; // TS2322
const outcome: PreToolCallOutcome = { deny: "x", reason: "y" }; // TS2353
