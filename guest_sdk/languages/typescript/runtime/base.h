/* What the C SDK's headers want of their `base.h`, over the C library's allocator instead of an arena: QuickJS needs one
 * that frees, and two cannot both begin at the end of the data. Include this before any header of `c/hookcell`. */
#ifndef HOOKCELL_BASE_H
#define HOOKCELL_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const uint8_t *at;
  uint32_t bytes;
} hook_text;

#define HOOK_ONCE static inline __attribute__((noinline))
#define EXPORT(name) __attribute__((export_name(#name))) name

static inline hook_text hook_c(const char *string) { return (hook_text){(const uint8_t *)string, (uint32_t)strlen(string)}; }

static inline bool hook_same(hook_text a, hook_text b) { return a.bytes == b.bytes && memcmp(a.at, b.at, a.bytes) == 0; }

static inline void *hook_widen(void *block, uint32_t bytes, uint32_t wanted) {
  (void)bytes;
  return realloc(block, wanted);
}

/* ABI: where the host may write `bytes`; 0 = cannot. */
void *EXPORT(hook_alloc)(uint32_t bytes) { return malloc(bytes ? bytes : 1); }

/* Whether these bytes are UTF-8: no lone surrogate, nothing overlong, nothing past U+10FFFF. */
static bool hook_is_utf8(hook_text text) {
  const uint8_t *at = text.at, *end = at + text.bytes;
  while (at < end) {
    uint32_t head = *at++, more, low = 0x80, high = 0xbf;
    if (head < 0x80) continue;
    if (head >= 0xc2 && head <= 0xdf) more = 1;
    else if (head >= 0xe0 && head <= 0xef) more = 2;
    else if (head >= 0xf0 && head <= 0xf4) more = 3;
    else return false;
    if (head == 0xe0) low = 0xa0;
    if (head == 0xed) high = 0x9f;
    if (head == 0xf0) low = 0x90;
    if (head == 0xf4) high = 0x8f;
    if ((size_t)(end - at) < more) return false;
    for (; more > 0; more--, at++, low = 0x80, high = 0xbf)
      if (*at < low || *at > high) return false;
  }
  return true;
}

#endif
