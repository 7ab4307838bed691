/* A guest that does what the test says: it echoes the context that it was given and returns what its config holds.
 *
 * `config` is a map from "<point>/<tool>" or "<point>" to what is returned there, as it stands; the key with the tool
 * counts before the one without. A key that is absent, or nil, returns nothing. Instead of an outcome there may be one of
 *
 *     {"!trap": true}    {"!spin": true}    {"!hoard": true}    {"!garbage": true}
 *     {"!throw": {"name", "message"}}       {"!raw": text or bytes}
 *
 * The log has one line: `saw ` and the whole payload as hex digits. The manifest is written by tests (`scripting.py`).
 */
#define HOOK_LOG_BYTES (1024 * 1024)
#include "hookcell.h"

static void echo(hook_value context) {
  hook_text payload = {context.at, (uint32_t)(context.end - context.at)};
  if (payload.bytes > (HOOK_LOG_BYTES - 64) / 2) {
    hook_log_c("too much to echo: ");
    hook_log_integer(payload.bytes);
    hook_log_line();
    return;
  }
  hook_log_c("saw ");
  for (uint32_t i = 0; i < payload.bytes; i++) {
    hook_log_byte((uint8_t)"0123456789abcdef"[payload.at[i] >> 4]);
    hook_log_byte((uint8_t)"0123456789abcdef"[payload.at[i] & 15]);
  }
  hook_log_line();
}

/* The tool that the context speaks of; absent where it speaks of none, or the hook does not get that field. */
static hook_text tool_of(hook_value context) {
  hook_value name = hook_get(context, "toolName");
  if (name.at == NULL) name = hook_get(hook_get(context, "call"), "name");
  if (name.at == NULL) name = hook_get(hook_get(context, "result"), "name");
  return hook_as_text(name);
}

/* Whether `key` is the point, a slash and the tool. */
static bool names_both(hook_text key, hook_text point, hook_text tool) {
  if (tool.at == NULL || key.bytes != point.bytes + 1 + tool.bytes || key.at[point.bytes] != '/') return false;
  return hook_same((hook_text){key.at, point.bytes}, point) &&
         hook_same((hook_text){key.at + point.bytes + 1, tool.bytes}, tool);
}

static hook_value script_for(hook_value context, hook_text point) {
  hook_text tool = tool_of(context);
  hook_value found = {NULL, NULL};
  hook_items items = hook_items_of(hook_get(context, "config"));
  while (hook_next(&items)) {
    if (names_both(items.key, point, tool)) return items.value;
    if (hook_same(items.key, point)) found = items.value;
  }
  return found;
}

static hook_outcome raw(hook_value value) {
  hook_item item;
  hook_read_value(&item, value);
  hook_text text = hook_item_text(&item);
  return (uint64_t)(uintptr_t)text.at << 32 | text.bytes;
}

static hook_outcome act(hook_value context, const char *point) {
  echo(context);
  hook_value script = script_for(context, hook_c(point));
  if (hook_kind_of(script) == HOOK_ABSENT || hook_kind_of(script) == HOOK_NIL) return hook_nothing();
  if (hook_get(script, "!trap").at != NULL) __builtin_trap();
  if (hook_get(script, "!spin").at != NULL)
    for (;;) {
    }
  if (hook_get(script, "!hoard").at != NULL) {
    while (hook_take(HOOK_PAGE_BYTES) != NULL) {
    }
    __builtin_trap();
  }
  if (hook_get(script, "!raw").at != NULL) return raw(hook_get(script, "!raw"));
  hook_writer writer = {0};
  if (hook_get(script, "!garbage").at != NULL) {
    hook_write_raw(&writer, hook_c("\xc1")); /* the one byte that msgpack never uses */
  } else if (hook_get(script, "!throw").at != NULL) {
    hook_write_map(&writer, 1);
    hook_write_c(&writer, "error");
    hook_write_value(&writer, hook_get(script, "!throw"));
  } else {
    hook_write_value(&writer, script);
  }
  return hook_return(&writer);
}

#define SCRIPTED(point) \
  HOOK_POINT(point, context) { return act(context, #point); }

SCRIPTED(pre_tool_call)
SCRIPTED(post_tool_call)
SCRIPTED(pre_generate)
SCRIPTED(post_generate)
SCRIPTED(before_prompt)
SCRIPTED(before_tool)
SCRIPTED(after_tool)
SCRIPTED(after_response)
SCRIPTED(on_error)
