/* The log: lines that reach the host whether the call returns or traps (SEMANTICS G5). */
#ifndef HOOKJS_LOG_H
#define HOOKJS_LOG_H

#include "base.h"

enum { HOOKJS_LOG_BYTES = 65532 }; /* with its length the 64 KiB that the host copies by default */

/* ABI: the exported global `hook_log` is the address of this. */
__attribute__((used, visibility("default"))) struct {
  uint32_t bytes;
  uint8_t text[HOOKJS_LOG_BYTES];
} hook_log;

/* Written once when the rest no longer fits: a cut log says that it was cut (G6). */
#define HOOKJS_LOG_FULL "\n[log full]\n"

static bool hookjs_log_full;

static void hookjs_log_byte(uint8_t byte) {
  if (hookjs_log_full) return;
  if (hook_log.bytes + sizeof(HOOKJS_LOG_FULL) - 1 < HOOKJS_LOG_BYTES) {
    hook_log.text[hook_log.bytes++] = byte;
    return;
  }
  hookjs_log_full = true;
  memcpy(hook_log.text + hook_log.bytes, HOOKJS_LOG_FULL, sizeof(HOOKJS_LOG_FULL) - 1);
  hook_log.bytes += sizeof(HOOKJS_LOG_FULL) - 1;
}

/* One entry. Its further lines are indented, so that text of the context cannot pass for an entry of its own. */
static void hookjs_log_entry(hook_text text) {
  for (uint32_t i = 0; i < text.bytes && !hookjs_log_full; i++) {
    hookjs_log_byte(text.at[i]);
    if (text.at[i] == '\n') {
      hookjs_log_byte(' ');
      hookjs_log_byte(' ');
    }
  }
  hookjs_log_byte('\n');
}

#endif
