// What an author finds: the hook's API over the bare engine. Evaluated once, before the author's modules; its value is a
// function of the natives in hookjs.c. What it uses of the language it takes aside first, so that a hook that changes a
// built-in changes its own code's view of it and not this file's.
(natives) => {
  "use strict";
  const { Object, Array, Reflect, Function, String, Number, BigInt, Math, JSON, Date: PlainDate, RegExp, Map, Set, Promise, Proxy } = globalThis;
  const { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError } = globalThis;
  const { ArrayBuffer, DataView, Uint8Array, WeakMap, WeakSet, WeakRef, isNaN, parseInt, parseFloat } = globalThis;
  const { log, copy, toUtf8, fromUtf8 } = natives;
  const { defineProperty, defineProperties, getOwnPropertyNames, getPrototypeOf, setPrototypeOf, keys, create, freeze } = Object;
  const { preventExtensions, hasOwn } = Object;
  const { apply, construct, ownKeys } = Reflect;
  const { isArray } = Array;
  const hide = (target, name, value) => defineProperty(target, name, { value, writable: true, configurable: true, enumerable: false });

  // --- the points -----------------------------------------------------------------------------------------------------

  // point → the method, the arguments it gets from the context, the fields whose changes count (SEMANTICS P2, C7).
  const POINTS = {
    pre_tool_call: { method: "preToolCall", changes: ["args", "messages", "metadata"] },
    post_tool_call: { method: "postToolCall", second: "result", changes: ["messages", "metadata"] },
    pre_generate: { method: "preGenerate", changes: ["messages", "request", "metadata"] },
    post_generate: { method: "postGenerate", second: "result", changes: ["messages", "metadata"] },
    before_prompt: { method: "beforePrompt", first: "prompt", changes: ["state"] },
    before_tool: { method: "beforeTool", first: "call", changes: ["state"] },
    after_tool: { method: "afterTool", first: "result", changes: ["state"] },
    after_response: { method: "afterResponse", first: "response", changes: ["state"] },
    on_error: { method: "onError", first: "error", changes: ["state"] },
  };
  const POINT_NAMES = keys(POINTS);
  const METHODS = POINT_NAMES.map((point) => POINTS[point].method);
  const SAID = ["name", "version", "description", "needs", "storage", "config"];
  const letters = (name) => name.replace(/[_-]/g, "").toLowerCase();

  let hook; // the author's object
  let methods; // point → function
  let call; // what is known of the call in hand

  const open = (exports) => {
    if (!hasOwn(exports, "default")) {
      throw new TypeError("the module has no default export: write `export default { name: \"…\", preToolCall(ctx) { … } }`");
    }
    hook = exports.default;
    if (typeof hook === "function") hook = instanceOf(hook);
    if (hook === null || typeof hook !== "object") {
      throw new TypeError(`the default export is ${kindOf(hook)}: export an object with the hook's methods, or a class`);
    }
    refuseMisspelt(hook);
    methods = create(null);
    for (const point of POINT_NAMES) {
      const method = hook[POINTS[point].method];
      if (method === undefined) continue;
      if (typeof method !== "function") throw new TypeError(`${POINTS[point].method} is ${kindOf(method)}, not a method`);
      methods[point] = method;
    }
    const points = keys(methods);
    if (points.length === 0) throw new TypeError(`the hook has no method at any point: define one of ${METHODS.join(", ")}`);
    const description = { points };
    for (const key of SAID) if (hook[key] !== undefined) description[key] = hook[key];
    return description;
  };

  const instanceOf = (made) => {
    const names = made.prototype ? getOwnPropertyNames(made.prototype) : [];
    if (!/^class\b/.test(apply(Function.prototype.toString, made, [])) && !names.some((name) => METHODS.includes(name))) {
      throw new TypeError("the default export is a function: export an object with the hook's methods, or a class");
    }
    return construct(made, []);
  };

  const refuseMisspelt = (target) => {
    const right = new Map(METHODS.map((name) => [letters(name), name]));
    for (let at = target; at !== null && at !== Object.prototype; at = getPrototypeOf(at)) {
      for (const name of getOwnPropertyNames(at)) {
        const meant = right.get(letters(name));
        if (meant !== undefined && meant !== name) throw new TypeError(`${name}: the method is spelled ${meant}`);
      }
    }
  };

  // --- a call ---------------------------------------------------------------------------------------------------------

  const begin = (point, fields) => {
    const { method, first, second, changes } = POINTS[point];
    if (methods[point] === undefined) throw new TypeError(`the hook has no method ${method}`);
    const stored = hasOwn(fields, "storage");
    const writable = changes.filter((name) => hasOwn(fields, name));
    call = { fields, writable, stored, agentClass: first !== undefined, events: [], meta: undefined, now: fields.now, seed: fields.seed };
    random = undefined;
    const value = first === undefined ? undefined : first === "error" ? errorOf(fields.error) : fields[first];
    call.ctx = call.agentClass ? agentContext(fields) : pipelineContext(fields);
    const given = first !== undefined ? [value, call.ctx] : second !== undefined ? [call.ctx, fields[second]] : [call.ctx];
    const returned = apply(methods[point], hook, given);
    // Any thenable is awaited, as `await` would.
    return returned !== null && typeof returned === "object" && typeof returned.then === "function" ? Promise.resolve(returned) : returned;
  };

  // [what goes into the outcome, the fields that may have changed]
  const finish = (returned) => {
    const { agentClass, writable, fields, stored, ctx, events, meta } = call;
    let outcome = {};
    if (agentClass) {
      if (returned !== undefined) outcome.replace = returned;
    } else if (returned !== undefined && returned !== null) {
      outcome = returned;
    }
    if (events.length > 0 || meta !== undefined) {
      outcome = typeof outcome === "object" && !isArray(outcome) ? { ...outcome } : outcome;
      if (events.length > 0) outcome.events = events;
      if (meta !== undefined) outcome.meta = meta;
    }
    if (agentClass) keepInState(ctx);
    const changed = {};
    for (const name of writable) {
      changed[name] = agentClass ? fields[name] : ctx[name];
      if (changed[name] === undefined) throw new TypeError(`ctx.${name} was removed: change it, or give it a new value`);
    }
    if (stored) changed.storage = ctx.storage ?? null;
    return [outcome, changed];
  };

  const STORAGE_MISSING = 'the hook has no storage: declare `storage: "run"`, `"session"` or `"hook"` in the object you export';

  // The fields themselves, those that may be changed writable, the rest not; no other key.
  const pipelineContext = (fields) => {
    for (const name of keys(fields)) {
      if (!call.writable.includes(name) && name !== "storage") defineProperty(fields, name, { writable: false, configurable: false });
    }
    common(fields, fields);
    if (fields.streaming === true) hide(fields, "emit", emit);
    return preventExtensions(fields);
  };

  const common = (ctx, fields) => {
    if (hasOwn(fields, "config") && fields.config !== null && typeof fields.config === "object") freeze(fields.config);
    if (call.stored) return;
    defineProperty(ctx, "storage", {
      get: () => undefined,
      set() {
        throw new TypeError(STORAGE_MISSING);
      },
    });
  };

  const emit = (event) => {
    call.events.push(copy(event, "event"));
  };

  class State {
    set(key, value) {
      this[key] = value;
    }
    append(key, value) {
      if (!hasOwn(this, key) || this[key] === undefined || this[key] === null) this[key] = [];
      if (!isArray(this[key])) throw new TypeError(`state.${key} is ${kindOf(this[key])}, not a list to append to`);
      this[key].push(value);
    }
  }

  // Reads fall through to the state; what is stored on the context and is no field of it goes there (C7).
  const agentContext = (fields) => {
    const { state } = fields;
    const known = state !== undefined && state !== null && typeof state === "object";
    if (known) {
      if (hasOwn(state, "history") && hasOwn(fields, "messages")) state.history = fields.messages;
      setPrototypeOf(state, State.prototype);
    }
    const ctx = create(known ? state : Object.prototype);
    for (const name of keys(fields)) {
      if (name === "storage") ctx.storage = fields.storage;
      else if (name === "messages" && known && hasOwn(state, "history")) defineProperty(ctx, name, { get: () => state.history, enumerable: true });
      else defineProperty(ctx, name, { value: fields[name], writable: false, enumerable: true });
    }
    common(ctx, fields);
    hide(ctx, "meta", addMeta);
    return ctx;
  };

  const addMeta = (notes) => {
    const copied = copy(notes, "meta");
    if (copied === null || typeof copied !== "object" || isArray(copied)) throw new TypeError(`meta is ${kindOf(notes)}, not an object`);
    call.meta = { ...call.meta, ...copied };
  };

  const keepInState = (ctx) => {
    const { fields } = call;
    for (const name of keys(ctx)) {
      if (hasOwn(fields, name) || name === "storage") continue;
      const { state } = fields;
      if (state === undefined || state === null) {
        throw new TypeError(`ctx.${name}: what is stored on ctx is kept in the state, which this hook does not receive: add "state" to needs`);
      }
      state[name] = ctx[name];
    }
  };

  const errorOf = (given) => {
    if (given === undefined || given === null) return given;
    const error = new Error(given.message);
    for (const key of keys(given)) if (key !== "message") hide(error, key, given[key]);
    hide(error, "stack", `${given.name}: ${given.message}`);
    return error;
  };

  // --- errors ---------------------------------------------------------------------------------------------------------

  const MESSAGE_CHARACTERS = 4096;
  const STACK_CHARACTERS = 8192;
  const OURS = "hookcell:prelude";

  const kindOf = (value) => {
    if (value === null) return "null";
    if (isArray(value)) return "a list";
    const kind = typeof value;
    return kind === "undefined" ? kind : kind === "object" ? "an object" : `a ${kind}`;
  };

  const bounded = (text, most) => {
    const whole = apply(String.prototype.toWellFormed, text, []);
    return whole.length <= most ? whole : `${whole.slice(0, most)}… [cut, of ${whole.length} characters]`.toWellFormed();
  };

  const readText = (value, key) => {
    try {
      const text = value[key];
      return typeof text === "string" ? text : undefined;
    } catch {
      return undefined;
    }
  };

  // [name, message, stack] of whatever was thrown; null when the memory is used up.
  const blame = (thrown) => {
    try {
      const error = thrown instanceof Error ? thrown : undefined;
      const name = (error && readText(error, "name")) || (error ? "Error" : "Thrown");
      const message = error ? readText(error, "message") ?? "" : typeof thrown === "string" ? thrown : show(thrown, 0, []);
      if (name === "InternalError" && message === "out of memory") return null;
      const stack = (error && readText(error, "stack")) || "";
      const frames = [];
      for (const line of stack.split("\n").map((each) => each.trim())) {
        if (!line.includes(OURS)) frames.push(line);
        else if (frames.at(-1)?.endsWith(" (native)")) frames.pop(); // how this file calls the author's method
      }
      return [bounded(name, 100), bounded(message, MESSAGE_CHARACTERS), bounded(frames.join("\n").trim(), STACK_CHARACTERS)];
    } catch {
      return ["Thrown", "a value that cannot be shown", ""];
    }
  };

  // --- console --------------------------------------------------------------------------------------------------------

  const SHOWN_DEPTH = 4;
  const SHOWN_ITEMS = 100;

  const quoted = (text) => (text.includes("'") ? JSON.stringify(text) : `'${JSON.stringify(text).slice(1, -1).replace(/\\"/g, '"')}'`);
  const isName = /^[A-Za-z_$][\w$]*$/;

  // A value as a line of the log, much as Node shows it. Runs no getter of the author's.
  const show = (value, depth, above) => {
    switch (typeof value) {
      case "string":
        return quoted(value);
      case "bigint":
        return `${value}n`;
      case "number":
        return Object.is(value, -0) ? "-0" : `${value}`;
      case "function":
        return `[${/^class\b/.test(apply(Function.prototype.toString, value, [])) ? "class" : "Function"} ${readText(value, "name") || "(anonymous)"}]`;
      case "object":
        return value === null ? "null" : showObject(value, depth, above);
      default:
        return String(value);
    }
  };

  const showObject = (value, depth, above) => {
    if (above.includes(value)) return "[Circular]";
    if (value instanceof Error) return showError(value);
    if (value instanceof PlainDate) return isNaN(value) ? "Invalid Date" : apply(PlainDate.prototype.toISOString, value, []);
    if (value instanceof RegExp) return apply(RegExp.prototype.toString, value, []);
    if (value instanceof Promise) return "Promise";
    const title = titleOf(value);
    if (depth > SHOWN_DEPTH) return isArray(value) ? "[Array]" : `[${title || "Object"}]`;
    const within = [...above, value];
    const inner = (item) => show(item, depth + 1, within);
    if (isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView))) {
      const head = isArray(value) ? "" : `${title}(${value.length}) `;
      const items = [];
      for (let i = 0; i < value.length && i < SHOWN_ITEMS; i++) items.push(inner(value[i]));
      return head + bracket("[", "]", items, value.length);
    }
    if (value instanceof Map) {
      return `Map(${value.size}) ` + bracket("{", "}", [...value].slice(0, SHOWN_ITEMS).map(([key, item]) => `${inner(key)} => ${inner(item)}`), value.size);
    }
    if (value instanceof Set) return `Set(${value.size}) ` + bracket("{", "}", [...value].slice(0, SHOWN_ITEMS).map(inner), value.size);
    const names = keys(value);
    const shown = names.slice(0, SHOWN_ITEMS).map((name) => {
      const { get, value: item } = Object.getOwnPropertyDescriptor(value, name) ?? {};
      return `${isName.test(name) ? name : quoted(name)}: ${get ? "[Getter]" : inner(item)}`;
    });
    return (title ? `${title} ` : "") + bracket("{", "}", shown, names.length);
  };

  const titleOf = (value) => {
    const prototype = getPrototypeOf(value);
    if (prototype === null) return "[Object: null prototype]";
    if (prototype === Object.prototype || prototype === State.prototype) return "";
    return readText(prototype.constructor ?? {}, "name") ?? "";
  };

  const showError = (error) => {
    const [name, message, stack] = blame(error) ?? ["InternalError", "out of memory", ""];
    return [message ? `${name}: ${message}` : name, ...(stack ? stack.split("\n") : [])].join("\n  ");
  };

  const bracket = (left, right, items, count) => {
    if (count > items.length) items.push(`... ${count - items.length} more`);
    return items.length === 0 ? left + right : `${left} ${items.join(", ")} ${right}`;
  };

  const format = (given) => {
    let rest = given;
    const parts = [];
    if (typeof given[0] === "string" && given.length > 1 && given[0].includes("%")) {
      let next = 1;
      parts.push(
        given[0].replace(/%([sdifjoOc%])/g, (all, kind) => {
          if (kind === "%") return "%";
          if (next >= given.length) return all;
          const value = given[next++];
          if (kind === "s") return typeof value === "string" ? value : show(value, 0, []);
          if (kind === "d") return typeof value === "bigint" ? `${value}n` : `${Number(value)}`;
          if (kind === "i") return `${parseInt(value, 10)}`;
          if (kind === "f") return `${parseFloat(value)}`;
          if (kind === "j") return `${JSON.stringify(value)}`;
          return kind === "c" ? "" : show(value, 0, []);
        }),
      );
      rest = given.slice(next);
    }
    for (const value of rest) parts.push(typeof value === "string" ? value : show(value, 0, []));
    return parts.join(" ");
  };

  const writer = (prefix) => (...given) => log(prefix + format(given));
  const console = create(Object.prototype);
  for (const [name, prefix] of [["log", ""], ["info", ""], ["debug", "debug: "], ["warn", "warn: "], ["error", "error: "]]) {
    hide(console, name, writer(prefix));
  }
  hide(console, "trace", (...given) => log(`trace: ${format(given)}\n${blame(new Error())[2]}`));
  hide(console, "assert", (holds, ...given) => {
    if (!holds) log(`error: Assertion failed${given.length ? `: ${format(given)}` : ""}`);
  });

  // --- time and chance ------------------------------------------------------------------------------------------------

  const asked = (name, what) => {
    if (call === undefined) throw new Error(`${what} while the module loads: a hook knows the ${name === "now" ? "time" : "seed"} only in a call`);
    if (typeof call[name] !== "number" && typeof call[name] !== "bigint") {
      throw new Error(`${what} without the field it needs: add "${name}" to the hook's needs, e.g. needs: ["*", "${name}"]`);
    }
    return call[name];
  };

  const now = (what) => Number(asked("now", what));

  function HookDate(...given) {
    if (new.target === undefined) return apply(PlainDate.prototype.toString, new PlainDate(now("Date()")), []);
    return construct(PlainDate, given.length === 0 ? [now("new Date()")] : given, new.target);
  }
  defineProperty(HookDate, "name", { value: "Date" });
  defineProperty(HookDate, "length", { value: 7 });
  defineProperty(HookDate, "prototype", { value: PlainDate.prototype, writable: false });
  hide(HookDate, "now", () => now("Date.now()"));
  hide(HookDate, "parse", PlainDate.parse);
  hide(HookDate, "UTC", PlainDate.UTC);
  hide(PlainDate.prototype, "constructor", HookDate);

  // sfc32, of the context's seed: the same numbers on every replay.
  let random;
  const seeded = (seed) => {
    const whole = BigInt.asUintN(64, BigInt(seed));
    let a = Number(whole & 0xffffffffn) | 0;
    let b = Number(whole >> 32n) | 0;
    let c = 0x9e3779b9 | 0;
    let counter = 1;
    const next = () => {
      const sum = (((a + b) | 0) + counter) | 0;
      counter = (counter + 1) | 0;
      a = b ^ (b >>> 9);
      b = (c + (c << 3)) | 0;
      c = (((c << 21) | (c >>> 11)) + sum) | 0;
      return sum >>> 0;
    };
    for (let i = 0; i < 12; i++) next();
    return () => ((next() >>> 5) * 67108864 + (next() >>> 6)) / 9007199254740992;
  };
  hide(Math, "random", () => (random ??= seeded(asked("seed", "Math.random()")))());

  // --- what a browser or Node has -------------------------------------------------------------------------------------

  class TextEncoder {
    get encoding() {
      return "utf-8";
    }
    encode(text = "") {
      return toUtf8(`${text}`.toWellFormed());
    }
  }

  class TextDecoder {
    #fatal;
    #ignoreBOM;
    constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
      if (!/^\s*(utf-?8|unicode-1-1-utf-8)\s*$/i.test(label)) throw new RangeError(`TextDecoder: ${label} is not supported, only utf-8`);
      this.#fatal = Boolean(fatal);
      this.#ignoreBOM = Boolean(ignoreBOM);
    }
    get encoding() {
      return "utf-8";
    }
    get fatal() {
      return this.#fatal;
    }
    get ignoreBOM() {
      return this.#ignoreBOM;
    }
    decode(bytes = new Uint8Array(), { stream = false } = {}) {
      if (stream) throw new TypeError("TextDecoder: stream is not supported, decode the bytes whole");
      const view = ArrayBuffer.isView(bytes) ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength) : new Uint8Array(bytes);
      const text = fromUtf8(view, this.#fatal);
      if (text === null) throw new TypeError("TextDecoder: the bytes are not UTF-8");
      return !this.#ignoreBOM && text.startsWith("\ufeff") ? text.slice(1) : text;
    }
  }

  const ERRORS = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };

  const uncloneable = (what) => {
    const error = new Error(`${what} cannot be cloned`);
    hide(error, "name", "DataCloneError");
    return error;
  };

  const cloned = (value, seen) => {
    if (typeof value === "function") throw uncloneable("a function");
    if (typeof value === "symbol") throw uncloneable("a symbol");
    if (value === null || typeof value !== "object") return value;
    if (seen.has(value)) return seen.get(value);
    const keep = (made) => (seen.set(value, made), made);
    if (value instanceof PlainDate) return keep(new PlainDate(apply(PlainDate.prototype.getTime, value, [])));
    if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
    if (value instanceof ArrayBuffer) return keep(value.slice(0));
    if (ArrayBuffer.isView(value)) {
      const buffer = cloned(value.buffer, seen);
      return keep(new value.constructor(buffer, value.byteOffset, value instanceof DataView ? value.byteLength : value.length));
    }
    if (value instanceof Map) {
      const made = keep(new Map());
      for (const [key, item] of [...value]) made.set(cloned(key, seen), cloned(item, seen));
      return made;
    }
    if (value instanceof Set) {
      const made = keep(new Set());
      for (const item of [...value]) made.add(cloned(item, seen));
      return made;
    }
    if (value instanceof Error) {
      const made = keep(new (hasOwn(ERRORS, value.name) ? ERRORS[value.name] : Error)(value.message));
      hide(made, "stack", value.stack);
      if (hasOwn(value, "cause")) hide(made, "cause", cloned(value.cause, seen));
      return made;
    }
    for (const [kind, of] of [["a Promise", Promise], ["a WeakMap", WeakMap], ["a WeakSet", WeakSet], ["a WeakRef", WeakRef]]) {
      if (value instanceof of) throw uncloneable(kind);
    }
    const made = keep(isArray(value) ? new Array(value.length) : {});
    for (const key of keys(value)) made[key] = cloned(value[key], seen);
    return made;
  };

  const structuredClone = (value, options) => {
    if (options?.transfer?.length) throw uncloneable("what is to be transferred");
    return cloned(value, new Map());
  };

  // --- what a hook has not --------------------------------------------------------------------------------------------

  const NO_NETWORK = "a hook has no network: what it may know is in its context and its config";
  const NO_TIMERS = "a hook has no timers: it runs once, on a context, and returns";
  const REFUSED = {
    fetch: NO_NETWORK,
    XMLHttpRequest: NO_NETWORK,
    WebSocket: NO_NETWORK,
    setTimeout: NO_TIMERS,
    setInterval: NO_TIMERS,
    setImmediate: NO_TIMERS,
    require: 'a hook has its own files alone: use `import` with a relative path ("./x")',
  };
  const NAMESPACES = {
    process: "a hook has no process, environment or arguments: what it may know is in its context and its config",
    WebAssembly: "a hook is WebAssembly already, and cannot make more of it",
    performance: 'a hook has no clock: add "now" to needs and use Date.now()',
    crypto: 'a hook has no source of randomness: add "seed" to needs and use Math.random()',
  };
  for (const name of keys(REFUSED)) {
    hide(globalThis, name, function () {
      throw new Error(`${name}: ${REFUSED[name]}`);
    });
  }
  for (const name of keys(NAMESPACES)) {
    const refuse = (_, key) => {
      throw new Error(`${name}.${String(key)}: ${NAMESPACES[name]}`);
    };
    hide(globalThis, name, new Proxy(freeze({}), { get: refuse, set: refuse, has: refuse, defineProperty: refuse, deleteProperty: refuse }));
  }

  hide(globalThis, "Date", HookDate);
  hide(globalThis, "console", console);
  hide(globalThis, "TextEncoder", TextEncoder);
  hide(globalThis, "TextDecoder", TextDecoder);
  hide(globalThis, "structuredClone", structuredClone);
  hide(globalThis, "queueMicrotask", (job) => void Promise.resolve().then(() => job()));

  return { open, begin, finish, blame, sdk: { defineHook: (given) => given } };
};
