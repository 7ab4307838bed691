// The conformance hook in TypeScript: what README.md says, the ordinary way.
import { defineHook } from "hookcell";

type Edit = { do: string; path: (string | number)[]; key: string; value: any };

const TOOL_POINTS = ["pre_tool_call", "post_tool_call"];

/** What stands at the path: own keys and indices alone. */
function look(start: any, path: (string | number)[]): any {
  let value = start;
  for (const token of path) {
    if (value === null || typeof value !== "object" || !Object.hasOwn(value, token)) return "absent";
    value = value[token];
  }
  return value;
}

/** As `target[key] = value`, also where the key is `__proto__`. */
function put(target: any, key: string | number, value: any): void {
  if (key === "__proto__") Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
  else target[key] = value;
}

function edit(ctx: any, { do: how, path, key, value }: Edit): void {
  if (how === "state.set") return ctx.state.set(key, value);
  if (how === "state.append") return ctx.state.append(key, value);
  if (how === "keep") return void (ctx[key] = value);
  if (how === "append") return void path.reduce((at: any, token) => at[token], ctx).push(value);
  const target = path.slice(0, -1).reduce((at: any, token) => at[token], ctx);
  const last = path.at(-1)!;
  if (how === "set") put(target, last, value);
  else if (how === "insert") target.splice(last, 0, value);
  else if (Array.isArray(target)) target.splice(last as number, 1);
  else delete target[last];
}

function act(ctx: any, subject: Record<string, any> = {}): any {
  const config = ctx.config;
  for (const line of config.log ?? []) console.log(line);
  for (const each of config.edits ?? []) edit(ctx, each);
  for (const event of config.emit ?? []) ctx.emit?.(event);
  if (Object.hasOwn(config, "meta")) ctx.meta(config.meta);
  if (Object.hasOwn(config, "storage")) ctx.storage = config.storage;
  switch (config.case) {
    case "nothing":
      return;
    case "return":
      return config.value;
    case "spread":
      return { input: { ...ctx.args, ...config.value } };
    case "count":
      ctx.storage = (ctx.storage ?? 0) + 1;
      return;
    case "echo": {
      const [name, ...rest] = config.path;
      const value = Object.hasOwn(subject, name) ? look(subject[name], rest) : look(ctx, config.path);
      if (TOOL_POINTS.includes(ctx.point)) return { result: value };
      if (ctx.state) ctx.state.echo = value;
      else ctx.metadata.echo = value;
      return;
    }
    case "throw": {
      const error = new Error(config.value.message);
      error.name = config.value.name;
      throw error;
    }
    case "trap": // JSON.parse recurses on the machine's stack, which has no check of its own
      return JSON.parse("[".repeat(100_000));
    case "spin":
      for (;;);
    case "hoard": {
      const kept = [];
      for (;;) kept.push(new Uint8Array(65536));
    }
  }
  const unknown = new Error(config.case);
  unknown.name = "UnknownCase";
  throw unknown;
}

export default defineHook({
  name: "conforms",
  preToolCall: (ctx) => act(ctx),
  postToolCall: (ctx, result) => act(ctx, { result }),
  preGenerate: (ctx) => act(ctx),
  postGenerate: (ctx, result) => act(ctx, { result }),
  beforePrompt: (prompt, ctx) => act(ctx, { prompt }),
  beforeTool: (call, ctx) => act(ctx, { call }),
  afterTool: (result, ctx) => act(ctx, { result }),
  afterResponse: (response, ctx) => act(ctx, { response }),
  onError: (error, ctx) => act(ctx, { error }),
});
