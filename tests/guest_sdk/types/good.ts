// What hook authors write, in the words of the rules: all of it compiles.
import { defineHook } from "hookcell";
import type { AfterResponseContext, Hook, Message, PreToolCallOutcome } from "hookcell";

export const guard = defineHook({
  name: "guard",
  version: "1.0.0",
  description: "Keeps the shell shut.",
  needs: ["toolName", "args", "messages", "metadata", "now", "seed"],
  storage: "session",
  config: { type: "object", properties: { tools: { type: "array" } } },
  preToolCall(ctx) {
    if (ctx.toolName === "shell") return { deny: "Use the workspace tools instead" };
    if (ctx.toolName === "") return { deny: "" };
    if (ctx.toolName === "search") return { input: { ...ctx.args, limit: 10 } };
    if (ctx.args.dryRun) return { result: null };
    ctx.args.limit ??= 5;
    ctx.args = { query: "hooks" };
    ctx.messages.push({ role: "user", content: "mind the shell" });
    ctx.messages = [...ctx.messages, { role: "assistant", content: [{ type: "text", text: "yes" }] }];
    ctx.metadata.seen = new Date(ctx.now ?? 0).toISOString();
    ctx.storage = { calls: (ctx.storage?.calls ?? 0) + 1 };
    const reason: string | undefined = ctx.config.reason;
    return ctx.subagent ? { deny: reason } : undefined;
  },
  postToolCall(_ctx, result) {
    if (result.error?.kind === "denied") return;
    return typeof result.result === "string" ? { result: result.result.slice(0, 2000) } : undefined;
  },
  async preGenerate(ctx) {
    ctx.messages.push({ role: "system", content: "Be brief." });
    ctx.messages.splice(0, 1);
    ctx.request.temperature = 0;
    ctx.request.stop = ["END"];
    delete ctx.request.maxTokens;
    ctx.emit?.({ type: "compaction.done", removed: 3 });
  },
  postGenerate(ctx, result) {
    console.log(ctx.request.model, result.finishReason);
  },
});

export const reviewer = defineHook({
  name: "reviewer",
  helper: (text: string) => text.trim(),
  beforePrompt(prompt, ctx) {
    const last: Message | undefined = ctx.state.history.at(-1);
    if (!last) return;
    return `${prompt}\n${last.content}`;
  },
  beforeTool(call, ctx) {
    if (call.name === "deploy" && !ctx.data.canDeploy) throw new Error("this run may not deploy");
    return { ...call, args: { ...call.args, dryRun: true } };
  },
  afterTool(result) {
    if (result.isError) return { output: "it failed", isError: false };
    return `${String(result.output).slice(0, 4000)}\n… [truncated]`;
  },
  async afterResponse(response, ctx) {
    ctx.approved = this.helper(response).includes("APPROVED");
    ctx.state.set("history", ctx.state.history.slice(0, -1));
    ctx.state.append("memory", `Plan to follow:\n${response}`);
    ctx.state.rounds = (ctx.state.rounds ?? 0) + 1;
  },
  onError(error, ctx) {
    ctx.meta({ failed: error.name });
    return error.hook ? { degraded: true, by: [error.hook, 1n, new Uint8Array(2)] } : null;
  },
});

type Row = { id: number; note?: string };

export default class Recorder implements Hook {
  readonly name = "recorder";
  private rows: Row[] = [];

  preToolCall(): PreToolCallOutcome {
    return { result: this.rows };
  }

  onError(error: Error): string {
    return error.message;
  }

  afterResponse(response: string, ctx: AfterResponseContext): string {
    return `${ctx.agentName}: ${response}`;
  }
}
