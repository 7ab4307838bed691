/* defaults: gives arguments that the model left out the values that its config names, and logs which.
 *
 * An argument that is there stays, null too. Of several rules for one tool the first that names an argument counts. The
 * new arguments pass the tool's schema and every later gate (SEMANTICS P6, G7).
 */
#include "../hookcell.h"

HOOK_MANIFEST({
  "abi": 1,
  "name": "defaults",
  "version": "0.1.0",
  "description": "Adds arguments that the model left out.",
  "needs": ["toolName", "args"],
  "sdk": "c/0.1",
  "config": {
    "type": "object",
    "additionalProperties": false,
    "properties": {
      "rules": {
        "type": "array",
        "description": "For the tools that a name, or a beginning and a *, stands for: arguments and their values.",
        "items": {
          "type": "object",
          "additionalProperties": false,
          "required": ["tool", "args"],
          "properties": {"tool": {"type": "string"}, "args": {"type": "object"}}
        }
      }
    }
  }
})

/* Whether a rule before the `index`th matches the tool and names the argument. */
static bool named_before(hook_value list, uint32_t index, hook_text tool, hook_text argument) {
  hook_items rules = hook_items_of(list);
  while (index-- > 0 && hook_next(&rules))
    if (hook_matches(hook_as_text(hook_get(rules.value, "tool")), tool) &&
        hook_get_text(hook_get(rules.value, "args"), argument).at != NULL)
      return true;
  return false;
}

/* Visits each argument to add: counts them, and with a writer writes and logs them. */
static uint32_t add_missing(hook_value list, hook_text tool, hook_value args, hook_writer *writer) {
  uint32_t added = 0, index = 0;
  hook_items rules = hook_items_of(list);
  for (; hook_next(&rules); index++) {
    if (!hook_matches(hook_as_text(hook_get(rules.value, "tool")), tool)) continue;
    hook_items defaults = hook_items_of(hook_get(rules.value, "args"));
    while (hook_next(&defaults)) {
      if (hook_get_text(args, defaults.key).at != NULL || named_before(list, index, tool, defaults.key)) continue;
      added++;
      if (writer == NULL) continue;
      hook_write_text(writer, defaults.key);
      hook_write_value(writer, defaults.value);
      hook_log_c(" ");
      hook_log_text(defaults.key);
    }
  }
  return added;
}

/* Whether each rule is a map with a string `tool` and a map `args`. */
static bool well_formed(hook_value list) {
  hook_items rules = hook_items_of(list);
  while (hook_next(&rules))
    if (hook_as_text(hook_get(rules.value, "tool")).at == NULL ||
        hook_kind_of(hook_get(rules.value, "args")) != HOOK_MAP)
      return false;
  return true;
}

HOOK_POINT(pre_tool_call, context) {
  hook_text tool = hook_as_text(hook_get(context, "toolName"));
  hook_value args = hook_get(context, "args");
  if (tool.at == NULL) return hook_throw("ContextInvalid", "toolName is not a string");
  if (hook_kind_of(args) != HOOK_MAP) return hook_throw("ContextInvalid", "args is not a map");
  hook_value list = hook_get(hook_get(context, "config"), "rules");
  if (list.at == NULL) return hook_nothing();
  if (hook_kind_of(list) != HOOK_LIST || !well_formed(list))
    return hook_throw("ConfigInvalid", "rules is not a list of {tool, args}");

  uint32_t added = add_missing(list, tool, args, NULL);
  if (added == 0) return hook_nothing();
  hook_writer writer = {0};
  hook_write_map(&writer, 1);
  hook_write_c(&writer, "input");
  hook_write_map(&writer, hook_count(args) + added);
  hook_items items = hook_items_of(args);
  while (hook_next(&items)) {
    hook_write_text(&writer, items.key);
    hook_write_value(&writer, items.value);
  }
  hook_log_text(tool);
  hook_log_c(": added");
  add_missing(list, tool, args, &writer);
  hook_log_line();
  return hook_return(&writer);
}
