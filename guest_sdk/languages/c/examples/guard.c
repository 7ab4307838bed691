/* guard: refuses tool calls by the tool's name and by the size of a number among its arguments.
 *
 * A rule's `tool` is a name, or the beginning of one and a `*`. With an `allow` list everything else is refused; then
 * the `deny` rules, then the `limits`. An argument that a limit speaks of and that is not a number is refused, since
 * nothing can be said about it; one that is missing is the tool schema's business.
 *
 * Without any config: the tools whose names begin with `delete_` are refused, so that the hook does something sensible
 * as it comes.
 */
#include "../hookcell.h"

HOOK_MANIFEST({
  "abi": 1,
  "name": "guard",
  "version": "0.1.0",
  "description": "Denies tool calls by tool name and by the size of an argument.",
  "needs": ["toolName", "args"],
  "sdk": "c/0.1",
  "config": {
    "type": "object",
    "additionalProperties": false,
    "properties": {
      "allow": {
        "type": "array",
        "description": "Names of the only tools that may run; name* is a prefix. Absent: all.",
        "items": {"type": "string"}
      },
      "deny": {
        "type": "array",
        "description": "Tools that may not run, and what the model is told.",
        "items": {
          "type": "object",
          "additionalProperties": false,
          "required": ["tool"],
          "properties": {"tool": {"type": "string"}, "reason": {"type": "string"}}
        }
      },
      "limits": {
        "type": "array",
        "description": "Bounds of a numeric argument; a.b is b inside a.",
        "items": {
          "type": "object",
          "additionalProperties": false,
          "required": ["tool", "argument"],
          "properties": {
            "tool": {"type": "string"},
            "argument": {"type": "string"},
            "min": {"type": "number"},
            "max": {"type": "number"},
            "reason": {"type": "string"}
          }
        }
      }
    }
  }
})

enum { SHOWN_BYTES = 100 }; /* of a tool's name, which the model chose */

/* `{"deny": …}`: the rule's own reason, or a sentence made of pieces. */
static hook_outcome deny(hook_text tool, hook_value rule, const hook_text *pieces, uint32_t count) {
  hook_writer writer = {0};
  hook_write_map(&writer, 1);
  hook_write_c(&writer, "deny");
  hook_text reason = hook_as_text(hook_get(rule, "reason"));
  uint32_t mark = hook_text_begin(&writer);
  if (reason.at != NULL) hook_write_raw(&writer, reason);
  else
    for (uint32_t i = 0; i < count; i++) hook_write_raw(&writer, pieces[i]);
  hook_text_end(&writer, mark);
  hook_log_c("denied ");
  hook_log_text(hook_cut(tool, SHOWN_BYTES));
  hook_log_line();
  return hook_return(&writer);
}

static hook_outcome deny_tool(hook_text tool, hook_value rule, const char *why) {
  return deny(tool, rule, (hook_text[]){hook_c("tool "), hook_cut(tool, SHOWN_BYTES), hook_c(why)}, 3);
}

static hook_outcome bad_config(const char *message) { return hook_throw("ConfigInvalid", message); }

/* The argument that a path such as `order.total` names. */
static hook_value argument_at(hook_value args, hook_text path) {
  for (;;) {
    uint32_t bytes = 0;
    while (bytes < path.bytes && path.at[bytes] != '.') bytes++;
    args = hook_get_text(args, (hook_text){path.at, bytes});
    if (bytes == path.bytes) return args;
    path = (hook_text){path.at + bytes + 1, path.bytes - bytes - 1};
  }
}

/* The outcome of one limit, 0 when the call keeps it. */
static hook_outcome check_limit(hook_text tool, hook_value args, hook_value rule) {
  hook_text path = hook_as_text(hook_get(rule, "argument"));
  if (path.at == NULL) return bad_config("a limit has no argument");
  hook_value min = hook_get(rule, "min"), max = hook_get(rule, "max");
  double least = 0, most = 0, number;
  if (min.at != NULL && !hook_as_number(min, &least)) return bad_config("min is not a number");
  if (max.at != NULL && !hook_as_number(max, &most)) return bad_config("max is not a number");
  hook_value value = argument_at(args, path);
  if (value.at == NULL) return hook_nothing();
  hook_text subject[] = {hook_cut(tool, SHOWN_BYTES), hook_c(": argument "), path, hook_c(" is not a number")};
  if (!hook_as_number(value, &number)) return deny(tool, rule, subject, 4);
  /* Each comparison is written so that a NaN is refused. */
  if (max.at != NULL && !(number <= most)) subject[3] = hook_c(" is above the limit");
  else if (min.at != NULL && !(number >= least)) subject[3] = hook_c(" is below the limit");
  else return hook_nothing();
  return deny(tool, rule, subject, 4);
}

/* A list of the config, or no items when it is absent; anything else is a wrong config. */
static bool list_of(hook_value config, const char *name, hook_items *items) {
  hook_value list = hook_get(config, name);
  hook_kind kind = hook_kind_of(list);
  *items = hook_items_of(list);
  return kind == HOOK_LIST || kind == HOOK_ABSENT;
}

HOOK_POINT(pre_tool_call, context) {
  hook_text tool = hook_as_text(hook_get(context, "toolName"));
  if (tool.at == NULL) return hook_throw("ContextInvalid", "toolName is not a string");
  hook_value config = hook_get(context, "config");
  hook_kind kind = hook_kind_of(config);
  if (kind == HOOK_ABSENT || kind == HOOK_NIL) {
    if (!hook_matches(hook_c("delete_*"), tool)) return hook_nothing();
    return deny_tool(tool, (hook_value){NULL, NULL}, " deletes, which no config of guard allows");
  }
  if (kind != HOOK_MAP) return bad_config("the config is not a map");

  hook_items allow, rules, limits;
  if (!list_of(config, "allow", &allow)) return bad_config("allow is not a list");
  if (!list_of(config, "deny", &rules)) return bad_config("deny is not a list");
  if (!list_of(config, "limits", &limits)) return bad_config("limits is not a list");

  if (hook_get(config, "allow").at != NULL) {
    bool allowed = false;
    while (!allowed && hook_next(&allow)) {
      hook_text pattern = hook_as_text(allow.value);
      if (pattern.at == NULL) return bad_config("an item of allow is not a string");
      allowed = hook_matches(pattern, tool);
    }
    if (!allowed) return deny_tool(tool, (hook_value){NULL, NULL}, " is not on the list of allowed tools");
  }
  while (hook_next(&rules)) {
    hook_text pattern = hook_as_text(hook_get(rules.value, "tool"));
    if (pattern.at == NULL) return bad_config("a deny rule has no tool");
    if (hook_matches(pattern, tool)) return deny_tool(tool, rules.value, " is not allowed");
  }
  while (hook_next(&limits)) {
    hook_text pattern = hook_as_text(hook_get(limits.value, "tool"));
    if (pattern.at == NULL) return bad_config("a limit has no tool");
    if (!hook_matches(pattern, tool)) continue;
    hook_outcome outcome = check_limit(tool, hook_get(context, "args"), limits.value);
    if (outcome != hook_nothing()) return outcome;
  }
  return hook_nothing();
}
