/* __NAME__: keeps the agent from running a shell command that removes files. */
#include "hookcell.h"

HOOK_MANIFEST({
  "abi": 1,
  "name": "__NAME__",
  "version": "0.1.0",
  "needs": ["toolName", "args"]
})

/* Whether the text begins with these bytes. */
static bool begins_with(hook_text text, hook_text start) {
  return text.bytes >= start.bytes && hook_same((hook_text){text.at, start.bytes}, start);
}

/* Before a tool runs: let it pass, deny it, or answer in its place. */
HOOK_POINT(pre_tool_call, context) {
  if (!hook_same(hook_as_text(hook_get(context, "toolName")), hook_c("shell"))) return hook_nothing();
  hook_text command = hook_as_text(hook_get(hook_get(context, "args"), "command"));
  if (!begins_with(command, hook_c("rm "))) return hook_nothing();
  hook_log_c("denied: ");
  hook_log_text(command);
  hook_log_line();
  return hook_deny("Files are removed by a person here. Say which ones, and why.");
}
