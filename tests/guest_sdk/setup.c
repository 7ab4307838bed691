/* A hook with a setup that costs something: a table of squares mod a prime, by which it judges a tool's name. */
#include "hookcell.h"

HOOK_MANIFEST({"abi": 1, "name": "setup", "version": "1.0.0", "needs": ["toolName"]})

static uint32_t squares[4096];
static uint32_t ready;

__attribute__((export_name("_initialize"))) void initialize(void) {
  for (uint32_t n = 0; n < 4096; n++) squares[n] = n * n % 4093;
  ready++;
}

HOOK_POINT(pre_tool_call, context) {
  if (ready != 1 || squares[4092] != 1 || squares[5] != 25) return hook_throw("SetupLost", "the table is not there");
  hook_text name = hook_as_text(hook_get(context, "toolName"));
  if (name.bytes == 5 && squares[name.bytes] == 25 && hook_same(name, hook_c("shell"))) return hook_deny("no shell here");
  return hook_nothing();
}
