/* Bytes and memory: what a module without a C library needs, and no more. */
#ifndef HOOKCELL_BASE_H
#define HOOKCELL_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A run of bytes that somebody else owns: UTF-8 text, or the encoded bytes of a value. `at` is NULL when there is none. */
typedef struct {
  const uint8_t *at;
  uint32_t bytes;
} hook_text;

/* Functions that are called often and seldom matter for speed: one copy of each keeps a module small. */
#define HOOK_ONCE static inline __attribute__((noinline))

/* The text of a C string; its length costs nothing when it is a literal. */
static inline __attribute__((always_inline)) hook_text hook_c(const char *string) {
  uint32_t bytes = 0;
  if (__builtin_constant_p(__builtin_strlen(string))) bytes = (uint32_t)__builtin_strlen(string);
  else
    while (string[bytes] != 0) bytes++;
  return (hook_text){(const uint8_t *)string, bytes};
}

HOOK_ONCE bool hook_same(hook_text a, hook_text b) {
  if (a.bytes != b.bytes) return false;
  for (uint32_t i = 0; i < a.bytes; i++)
    if (a.at[i] != b.at[i]) return false;
  return true;
}

/* At most `bytes` of a text, whole UTF-8 characters: half of one would make the outcome invalid. */
HOOK_ONCE hook_text hook_cut(hook_text text, uint32_t bytes) {
  if (text.bytes <= bytes) return text;
  while (bytes > 0 && (text.at[bytes] & 0xc0) == 0x80) bytes--;
  return (hook_text){text.at, bytes};
}

/* Whether `text` is `pattern`, or begins with it when the pattern ends in `*`. */
HOOK_ONCE bool hook_matches(hook_text pattern, hook_text text) {
  if (pattern.bytes > 0 && pattern.at[pattern.bytes - 1] == '*') {
    pattern.bytes--;
    if (text.bytes > pattern.bytes) text.bytes = pattern.bytes;
  }
  return hook_same(pattern, text);
}

/* The arena: memory from the end of the module's own data upwards. Nothing is freed, since an instance lives for one
 * call. The last block can be widened where it stands, so that a growing output is not copied. */

extern uint8_t __heap_base; /* given by the linker */

enum { HOOK_PAGE_BYTES = 65536, HOOK_ALIGNMENT = 8 };

static uint32_t hook_arena_end; /* 0 until the first block */

/* Makes memory reach at least `end`, which may be past 4 GiB and then cannot. */
HOOK_ONCE bool hook_reach(uint64_t end) {
  uint64_t have = (uint64_t)__builtin_wasm_memory_size(0) * HOOK_PAGE_BYTES;
  if (end <= have) return true;
  uint64_t pages = (end - have + HOOK_PAGE_BYTES - 1) / HOOK_PAGE_BYTES;
  return end <= UINT32_MAX && __builtin_wasm_memory_grow(0, (size_t)pages) != (size_t)-1;
}

/* A block of `bytes`, aligned to 8; NULL when the host's memory limit is reached. */
HOOK_ONCE void *hook_take(uint32_t bytes) {
  uint64_t start = hook_arena_end ? hook_arena_end : (uintptr_t)&__heap_base;
  start = (start + HOOK_ALIGNMENT - 1) & ~(uint64_t)(HOOK_ALIGNMENT - 1);
  if (!hook_reach(start + bytes)) return NULL;
  hook_arena_end = (uint32_t)(start + bytes);
  return (void *)(uintptr_t)start;
}

/* A block of `wanted` bytes that begins with the `bytes` of `block`, in the same place where possible; NULL when memory
 * is at its limit. `block` may be NULL with 0 bytes. */
HOOK_ONCE void *hook_widen(void *block, uint32_t bytes, uint32_t wanted) {
  uint64_t start = (uintptr_t)block;
  if (block != NULL && start + bytes == hook_arena_end) {
    if (!hook_reach(start + wanted)) return NULL;
    hook_arena_end = (uint32_t)(start + wanted);
    return block;
  }
  void *wider = hook_take(wanted);
  if (wider != NULL && bytes > 0) __builtin_memcpy(wider, block, bytes);
  return wider;
}

/* ABI: where the host may write `bytes`; 0 = cannot. */
__attribute__((export_name("hook_alloc"))) void *hook_alloc(uint32_t bytes) { return hook_take(bytes); }

#endif
