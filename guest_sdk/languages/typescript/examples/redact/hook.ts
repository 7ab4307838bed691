// redact: masks e-mail addresses in what a tool gives, its error's text too, and cuts each text to 1,000 characters.
// The tool ran unchanged, and the model's own text and the arguments are not searched. Nor are the keys of a map, bytes,
// or an address in another form, such as "ada at example.com": it keeps accidents out, not a tool that means to tell.
import { defineHook, type Value } from "hookcell";

// The first 1,000 characters, less the word that the cut would go through: it may be half an address.
const HEAD = /^[^]{0,1000}(?<![\w.+@-])/u;

// It begins only where a word begins, so a long text without any address takes one pass, not one for each character.
const EMAIL = /(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g;

export default defineHook({
  name: "redact",
  version: "0.1.0",
  needs: ["result"],

  postToolCall(ctx, { result, error }) {
    if (error && error.kind !== "tool") return; // the engine's own words stand
    const given = error ? error.message : result;
    const cleaned = clean(given);
    if (cleaned !== given) return { result: cleaned };
  },
});

// The value itself where nothing in it changes.
function clean(value: any): Value {
  if (typeof value === "string") return mask(cut(value));
  if (Array.isArray(value)) {
    const items = value.map(clean);
    return items.some((item, at) => item !== value[at]) ? items : value;
  }
  if (value === null || typeof value !== "object" || value instanceof Uint8Array) return value;
  const entries = Object.entries(value).map(([key, item]) => [key, clean(item)] as const);
  return entries.some(([key, item]) => item !== value[key]) ? Object.fromEntries(entries) : value;
}

// Cut first, so that what is searched is short however long the text is.
function cut(text: string): string {
  if (text.length <= 1000) return text;
  const [head] = HEAD.exec(text)!;
  return head.length === text.length ? text : `${head}… [${text.length - head.length} more characters]`;
}

function mask(text: string): string {
  return text.includes("@") ? text.replace(EMAIL, "[email]") : text;
}
