// __NAME__: keeps the agent from running a shell command that removes files.
import { defineHook } from "hookcell";

export default defineHook({
  name: "__NAME__",
  version: "0.1.0",
  needs: ["toolName", "args"],

  // Before a tool runs: let it pass, deny it, change its arguments or answer in its place.
  preToolCall(ctx) {
    if (ctx.toolName !== "shell") return;
    const command: unknown = ctx.args.command;
    if (typeof command !== "string" || !command.startsWith("rm ")) return;
    console.log("denied:", command);
    return { deny: "Files are removed by a person here. Say which ones, and why." };
  },
});
