/* The log: lines that reach the host whether the call returns or traps (SEMANTICS G5). */
#ifndef HOOKCELL_LOG_H
#define HOOKCELL_LOG_H

#include "base.h"

#ifndef HOOK_LOG_BYTES
#define HOOK_LOG_BYTES 4096 /* define it before the include for more; the host copies 64 KiB by default */
#endif

/* ABI: the exported global `hook_log` is the address of this. */
__attribute__((used, visibility("default"))) struct {
  uint32_t bytes;
  uint8_t text[HOOK_LOG_BYTES];
} hook_log;

/* Written once when the rest no longer fits: a cut log says that it was cut (G6). */
#define HOOK_LOG_FULL "\n[log full]\n"

static bool hook_log_full;

static inline void hook_log_byte(uint8_t byte) {
  if (hook_log_full) return;
  if (hook_log.bytes + sizeof(HOOK_LOG_FULL) - 1 < HOOK_LOG_BYTES) {
    hook_log.text[hook_log.bytes++] = byte;
    return;
  }
  hook_log_full = true;
  __builtin_memcpy(hook_log.text + hook_log.bytes, HOOK_LOG_FULL, sizeof(HOOK_LOG_FULL) - 1);
  hook_log.bytes += sizeof(HOOK_LOG_FULL) - 1;
}

/* Text of the context may hold a line feed; as a space it cannot pass for a line of its own. */
HOOK_ONCE void hook_log_text(hook_text text) {
  for (uint32_t i = 0; i < text.bytes && !hook_log_full; i++) hook_log_byte(text.at[i] < ' ' ? ' ' : text.at[i]);
}

static inline void hook_log_c(const char *string) { hook_log_text(hook_c(string)); }

HOOK_ONCE void hook_log_integer(int64_t number) {
  uint8_t digits[20];
  uint32_t at = sizeof(digits);
  uint64_t left = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
  do digits[--at] = (uint8_t)('0' + left % 10);
  while (left /= 10);
  if (number < 0) hook_log_byte('-');
  hook_log_text((hook_text){digits + at, sizeof(digits) - at});
}

/* Ends the line. */
static inline void hook_log_line(void) { hook_log_byte('\n'); }

#endif
