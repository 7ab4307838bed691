/* The conformance hook in C: what README.md says, as a guest without an SDK's comforts. Its mutations are patches. */
#define HOOK_LOG_BYTES 8192
#include "hookcell.h"

/* Writes the operation that makes an edit. The path is written by the callers, as an open text. */
static void operation(hook_writer *writer, const char *op, bool value) {
  hook_write_map(writer, value ? 3 : 2);
  hook_write_c(writer, "op");
  hook_write_c(writer, op);
  hook_write_c(writer, "path");
}

static void raw_c(hook_writer *writer, const char *text) { hook_write_raw(writer, hook_c(text)); }

/* A key as a token of a JSON Pointer. */
static void token(hook_writer *writer, hook_text key) {
  raw_c(writer, "/");
  for (uint32_t i = 0; i < key.bytes; i++) {
    if (key.at[i] == '~') raw_c(writer, "~0");
    else if (key.at[i] == '/') raw_c(writer, "~1");
    else hook_write_raw(writer, (hook_text){key.at + i, 1});
  }
}

static void index_token(hook_writer *writer, int64_t index) {
  uint8_t digits[20];
  uint32_t at = sizeof(digits);
  do digits[--at] = (uint8_t)('0' + index % 10);
  while (index /= 10);
  raw_c(writer, "/");
  hook_write_raw(writer, (hook_text){digits + at, sizeof(digits) - at});
}

/* A path of keys and indices as a JSON Pointer, `/-` behind it where an item is added at the end. */
static void pointer(hook_writer *writer, hook_value path, bool at_end) {
  uint32_t mark = hook_text_begin(writer);
  hook_items tokens = hook_items_of(path);
  while (hook_next(&tokens)) {
    int64_t index;
    if (hook_as_integer(tokens.value, &index)) index_token(writer, index);
    else token(writer, hook_as_text(tokens.value));
  }
  if (at_end) raw_c(writer, "/-");
  hook_text_end(writer, mark);
}

static void value_of(hook_writer *writer, hook_value value) {
  hook_write_c(writer, "value");
  hook_write_value(writer, value);
}

static bool ends_in_index(hook_value path) {
  hook_items tokens = hook_items_of(path);
  int64_t index;
  bool found = false;
  while (hook_next(&tokens)) found = hook_as_integer(tokens.value, &index);
  return found;
}

/* `state.append`: whether the list is there by then, in the context or by an earlier edit. */
static bool has_list(hook_value context, hook_value edits, uint32_t before, hook_text key) {
  if (hook_get_text(hook_get(context, "state"), key).at != NULL) return true;
  hook_items items = hook_items_of(edits);
  for (uint32_t i = 0; i < before && hook_next(&items); i++)
    if (hook_same(hook_as_text(hook_get(items.value, "key")), key)) return true;
  return false;
}

static void edit_state(hook_writer *writer, hook_value edit, bool append, bool there) {
  hook_text key = hook_as_text(hook_get(edit, "key"));
  operation(writer, "add", true);
  uint32_t mark = hook_text_begin(writer);
  raw_c(writer, "/state");
  token(writer, key);
  if (append && there) raw_c(writer, "/-");
  hook_text_end(writer, mark);
  hook_write_c(writer, "value");
  if (append && !there) hook_write_list(writer, 1);
  hook_write_value(writer, hook_get(edit, "value"));
}

static void write_edit(hook_writer *writer, hook_value context, hook_value edits, uint32_t number, hook_value edit) {
  hook_text what = hook_as_text(hook_get(edit, "do"));
  hook_value path = hook_get(edit, "path"), value = hook_get(edit, "value");
  if (hook_same(what, hook_c("state.set")) || hook_same(what, hook_c("keep"))) {
    edit_state(writer, edit, false, false);
  } else if (hook_same(what, hook_c("state.append"))) {
    edit_state(writer, edit, true, has_list(context, edits, number, hook_as_text(hook_get(edit, "key"))));
  } else if (hook_same(what, hook_c("remove"))) {
    operation(writer, "remove", false);
    pointer(writer, path, false);
  } else {
    bool at_end = hook_same(what, hook_c("append"));
    /* `add` at a key also replaces; at an index it would move the rest. A whole field is replaced. */
    bool replaces = hook_same(what, hook_c("set")) && (hook_count(path) == 1 || ends_in_index(path));
    operation(writer, replaces ? "replace" : "add", true);
    pointer(writer, path, at_end);
    value_of(writer, value);
  }
}

/* What stands at the path, or absent. */
static hook_value look(hook_value at, hook_value path) {
  hook_items tokens = hook_items_of(path);
  while (hook_next(&tokens)) {
    int64_t index;
    if (!hook_as_integer(tokens.value, &index)) {
      at = hook_get_text(at, hook_as_text(tokens.value));
      continue;
    }
    hook_items items = hook_items_of(at);
    bool there = index >= 0 && (uint64_t)index < hook_count(at);
    while (there && hook_next(&items) && index-- > 0) {
    }
    at = there ? items.value : (hook_value){NULL, NULL};
  }
  return at;
}

static void write_found(hook_writer *writer, hook_value value) {
  if (value.at == NULL) hook_write_c(writer, "absent");
  else hook_write_value(writer, value);
}

static bool is_tool_point(hook_text point) {
  return hook_same(point, hook_c("pre_tool_call")) || hook_same(point, hook_c("post_tool_call"));
}

static bool is_pipeline(hook_text point) {
  return is_tool_point(point) || hook_same(point, hook_c("pre_generate")) || hook_same(point, hook_c("post_generate"));
}

static void write_log(hook_value lines) {
  hook_items items = hook_items_of(lines);
  while (hook_next(&items)) {
    hook_log_text(hook_as_text(items.value));
    hook_log_line();
  }
}

static hook_outcome thrown(hook_value value) {
  hook_writer writer = {0};
  hook_write_map(&writer, 1);
  hook_write_c(&writer, "error");
  hook_write_value(&writer, value);
  return hook_return(&writer);
}

static void write_pairs(hook_writer *writer, hook_value map) {
  hook_items items = hook_items_of(map);
  while (hook_next(&items)) {
    hook_write_text(writer, items.key);
    hook_write_value(writer, items.value);
  }
}

/* `input`: the arguments, and those of `value` in their place or behind them. */
static void write_spread(hook_writer *writer, hook_value args, hook_value value) {
  uint32_t kept = 0;
  hook_items items = hook_items_of(args);
  while (hook_next(&items)) kept += hook_get_text(value, items.key).at == NULL;
  hook_write_c(writer, "input");
  hook_write_map(writer, kept + hook_count(value));
  items = hook_items_of(args);
  while (hook_next(&items)) {
    if (hook_get_text(value, items.key).at != NULL) continue;
    hook_write_text(writer, items.key);
    hook_write_value(writer, items.value);
  }
  write_pairs(writer, value);
}

static void write_patch(hook_writer *writer, hook_value context, hook_text point, hook_value config, bool echoes) {
  hook_value edits = hook_get(config, "edits");
  hook_write_c(writer, "patch");
  hook_write_list(writer, hook_count(edits) + echoes);
  hook_items items = hook_items_of(edits);
  for (uint32_t i = 0; hook_next(&items); i++) write_edit(writer, context, edits, i, items.value);
  if (!echoes) return;
  operation(writer, "add", true);
  hook_write_c(writer, is_pipeline(point) ? "/metadata/echo" : "/state/echo");
  hook_write_c(writer, "value");
  write_found(writer, look(context, hook_get(config, "path")));
}

static hook_outcome act(hook_value context, const char *name) {
  hook_text point = hook_c(name);
  hook_value config = hook_get(context, "config");
  hook_text which = hook_as_text(hook_get(config, "case"));
  hook_value value = hook_get(config, "value");
  write_log(hook_get(config, "log"));
  if (hook_same(which, hook_c("throw"))) return thrown(value);
  if (hook_same(which, hook_c("trap"))) __builtin_trap();
  while (hook_same(which, hook_c("spin"))) {
  }
  if (hook_same(which, hook_c("hoard"))) {
    while (hook_take(HOOK_PAGE_BYTES) != NULL) {
    }
    __builtin_trap();
  }
  bool returns = hook_same(which, hook_c("return")), spreads = hook_same(which, hook_c("spread"));
  bool counts = hook_same(which, hook_c("count")), echoes = hook_same(which, hook_c("echo"));
  if (!returns && !spreads && !counts && !echoes && !hook_same(which, hook_c("nothing")))
    return hook_throw("UnknownCase", "the conformance hook knows no such case");

  hook_value stored = hook_get(config, "storage");
  bool emits = hook_get(config, "emit").at != NULL && hook_as_bool(hook_get(context, "streaming"), false);
  bool notes = hook_get(config, "meta").at != NULL;
  bool stores = stored.at != NULL || counts;
  bool echoes_apart = echoes && !is_tool_point(point);
  bool patches = hook_count(hook_get(config, "edits")) > 0 || echoes_apart;
  uint32_t beside = emits + notes + stores + patches;
  bool bare = returns && is_pipeline(point); /* the value is the outcome itself, whatever it is */
  if (bare && beside == 0) {
    hook_writer writer = {0};
    hook_write_value(&writer, value);
    return hook_return(&writer);
  }
  uint32_t own = bare ? hook_count(value) : returns || spreads || (echoes && !echoes_apart);
  if (beside + own == 0) return hook_nothing();

  hook_writer writer = {0};
  hook_write_map(&writer, beside + own);
  if (patches) write_patch(&writer, context, point, config, echoes_apart);
  if (emits) hook_write_c(&writer, "events"), hook_write_value(&writer, hook_get(config, "emit"));
  if (notes) hook_write_c(&writer, "meta"), hook_write_value(&writer, hook_get(config, "meta"));
  if (counts) {
    int64_t count = 0;
    hook_as_integer(hook_get(context, "storage"), &count);
    hook_write_c(&writer, "storage");
    hook_write_integer(&writer, count + 1);
  } else if (stores) {
    hook_write_c(&writer, "storage");
    hook_write_value(&writer, stored);
  }
  if (bare) write_pairs(&writer, value);
  else if (returns) hook_write_c(&writer, "replace"), hook_write_value(&writer, value);
  else if (spreads) write_spread(&writer, hook_get(context, "args"), value);
  else if (own > 0) hook_write_c(&writer, "result"), write_found(&writer, look(context, hook_get(config, "path")));
  return hook_return(&writer);
}

#define CONFORMS(point) \
  HOOK_POINT(point, context) { return act(context, #point); }

CONFORMS(pre_tool_call)
CONFORMS(post_tool_call)
CONFORMS(pre_generate)
CONFORMS(post_generate)
CONFORMS(before_prompt)
CONFORMS(before_tool)
CONFORMS(after_tool)
CONFORMS(after_response)
CONFORMS(on_error)
