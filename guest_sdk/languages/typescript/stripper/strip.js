// Strips the types from one TypeScript file, and says what it imports. Runs in the engine, as a hook, behind the same wall
// as any other: the file is a stranger's.
//
// beforePrompt(the file's text): replaced by JavaScript with every line, and as good as every column, where it was. `config.path` is
// the file's path, for errors. `meta.imports` lists what it imports: [{from, line, column}, …], from 1.
//
// sucrase keeps lines and closes the gaps where types were; here each token is put back in its column, so that a stack
// names the author's own place without a source map.
import { HelperManager } from "./sucrase/HelperManager";
import identifyShadowedGlobals from "./sucrase/identifyShadowedGlobals";
import NameManager from "./sucrase/NameManager";
import { parse } from "./sucrase/parser";
import { TokenType as tt } from "./sucrase/parser/tokenizer/types";
import TokenProcessor from "./sucrase/TokenProcessor";
import RootTransformer from "./sucrase/transformers/RootTransformer";
import getTSImportedNames from "./sucrase/util/getTSImportedNames";

const OPTIONS = { transforms: ["typescript"], disableESTransforms: true, production: true };

// Within a template's text a space would be part of it.
const GLUED = new Set([tt.template, tt.backQuote, tt.dollarBraceL]);

class Aligned extends TokenProcessor {
  copyToken() {
    const { start, type } = this.currentToken();
    if (!GLUED.has(type)) {
      const between = this.previousWhitespaceAndComments();
      const column = start - (this.code.lastIndexOf("\n", start - 1) + 1);
      const ahead = this.resultCode + between;
      const missing = column - (ahead.length - (ahead.lastIndexOf("\n") + 1));
      if (missing > 0) this.resultCode += " ".repeat(missing);
    }
    super.copyToken();
  }
}

const at = (code, position) => {
  const before = code.slice(0, position);
  return { line: before.split("\n").length, column: position - before.lastIndexOf("\n") };
};

const strip = (code) => {
  const { tokens, scopes } = parse(code, false, true, false);
  const names = new NameManager(code, tokens);
  const helpers = new HelperManager(names);
  const processor = new Aligned(code, tokens, false, true, helpers);
  identifyShadowedGlobals(processor, scopes, getTSImportedNames(processor));
  const context = { tokenProcessor: processor, scopes, nameManager: names, importProcessor: null, helperManager: helpers };
  return new RootTransformer(context, OPTIONS.transforms, false, OPTIONS).transform().code;
};

// Read from the result: an import of types alone is gone there.
const importsOf = (code) => {
  const { tokens } = parse(code, false, false, false);
  const found = [];
  const isString = (token) => token !== undefined && token.type === tt.string;
  const add = (token) => found.push({ from: code.slice(token.start + 1, token.end - 1), ...at(code, token.start) });
  for (let i = 0; i < tokens.length; i++) {
    const { type } = tokens[i];
    if (type !== tt._import && type !== tt._export) continue;
    const next = tokens[i + 1];
    if (type === tt._import && next?.type === tt.parenL) {
      if (isString(tokens[i + 2])) add(tokens[i + 2]);
      continue;
    }
    // `import … from "x"`, `import "x"`, `export … from "x"`: names and braces, then the string. `import.meta` and a
    // declaration that is exported have none there.
    if (type === tt._export && next?.type !== tt.star && next?.type !== tt.braceL) continue;
    let end = i + 1;
    if (next?.type === tt.dot) continue;
    while (end < tokens.length && !isString(tokens[end]) && tokens[end].type !== tt.semi && tokens[end].type !== tt.braceR) end++;
    if (tokens[end]?.type === tt.braceR) end += 2;
    if (isString(tokens[end])) add(tokens[end]);
  }
  return found;
};

export default {
  name: "hookcell-strip",
  needs: ["prompt"],

  beforePrompt(code, ctx) {
    const { path, typescript } = ctx.config;
    try {
      const stripped = typescript ? strip(code) : code;
      ctx.meta({ imports: importsOf(stripped) });
      return stripped;
    } catch (error) {
      if (!(error instanceof Error) || typeof error.pos !== "number") throw error;
      const { line, column } = at(code, error.pos);
      const refused = new SyntaxError(`${path}:${line}:${column}: ${error.message.replace(/^Error transforming [^:]*: /, "").replace(/ \(\d+:\d+\)$/, "")}`);
      throw refused;
    }
  },
};
