// guard: denies tools by name, and calls in which a number is above its limit; the host's config says which.
// It does not look inside nested arguments, nor at what a tool does with them. An argument that is missing is the tool
// schema's business; one that is no number is denied. Without a config it is refused at registration.
import { defineHook } from "hookcell";

type Config = {
  deny?: { tool: string; reason?: string }[];
  limits?: { tool: string; argument: string; max: number }[];
};

const tool = { type: "string", minLength: 1, description: "A tool's name; name* is a prefix." };

export default defineHook({
  name: "guard",
  version: "0.1.0",
  needs: ["toolName", "args"],
  config: {
    type: "object",
    additionalProperties: false,
    minProperties: 1,
    properties: {
      deny: {
        type: "array",
        items: {
          type: "object",
          additionalProperties: false,
          required: ["tool"],
          properties: { tool, reason: { type: "string", description: "What the model is told." } },
        },
      },
      limits: {
        type: "array",
        items: {
          type: "object",
          additionalProperties: false,
          required: ["tool", "argument", "max"],
          properties: { tool, argument: { type: "string" }, max: { type: "number" } },
        },
      },
    },
  },

  preToolCall({ toolName, args, config }) {
    const { deny = [], limits = [] }: Config = config;
    const rule = deny.find((each) => fits(each.tool, toolName));
    if (rule) return { deny: rule.reason ?? `${toolName} is not allowed here.` };
    const passed = limits.find(
      (each) => fits(each.tool, toolName) && Object.hasOwn(args, each.argument) && !within(args[each.argument], each.max),
    );
    if (passed) return { deny: `${toolName}: ${passed.argument} must be a number up to ${passed.max}.` };
  },
});

function fits(pattern: string, name: string): boolean {
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

// No text is compared, for "9" <= 10 holds; and no NaN is within anything.
function within(value: unknown, max: number): boolean {
  return (typeof value === "number" || typeof value === "bigint") && value <= max;
}
