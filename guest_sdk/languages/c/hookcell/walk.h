/* Every item of a value in the order it lies in memory, at any depth, in one pass and without recursion. */
#ifndef HOOKCELL_WALK_H
#define HOOKCELL_WALK_H

#include "value.h"

enum { HOOK_DEPTH = 64 }; /* the ABI's nesting limit */

/* hook_walk walk = hook_walk_of(value);
 * while (hook_walk_next(&walk)) { walk.item; walk.is_key; walk.start; }
 * Afterwards `walk.next` is the first byte behind the value.
 */
typedef struct {
  hook_item item;       /* the current item's header */
  const uint8_t *start; /* its first byte */
  bool is_key;          /* whether it is the key of a map */
  bool in_map;          /* whether the innermost open level is a map */
  uint32_t left;        /* items still to come there, keys counted */
  const uint8_t *next;
  const uint8_t *end;
  uint32_t depth;
  struct {
    uint32_t left;
    bool in_map;
  } outer[HOOK_DEPTH]; /* the levels round it */
} hook_walk;

static inline hook_walk hook_walk_of(hook_value value) {
  return (hook_walk){.next = value.at, .end = value.end, .left = value.at != NULL};
}

static inline bool hook_walk_next(hook_walk *walk) {
  while (walk->left == 0) {
    if (walk->depth == 0) return false;
    walk->depth--;
    walk->left = walk->outer[walk->depth].left;
    walk->in_map = walk->outer[walk->depth].in_map;
  }
  uint32_t left = --walk->left;
  walk->is_key = walk->in_map & left; /* a map owes pairs: once a key is taken the rest is odd */
  walk->start = walk->next;
  if (!hook_read(&walk->item, walk->start, walk->end)) return false;
  walk->next = walk->item.next;
  if (walk->is_key && walk->item.kind != HOOK_STRING) hook_malformed = true;
  if (walk->item.kind >= HOOK_LIST) {
    if (walk->depth == HOOK_DEPTH) hook_malformed = true;
    if (hook_malformed) return false;
    walk->outer[walk->depth].left = left;
    walk->outer[walk->depth].in_map = walk->in_map;
    walk->depth++;
    walk->in_map = walk->item.kind == HOOK_MAP;
    walk->left = walk->item.size << walk->in_map;
  }
  return !hook_malformed;
}

/* Steps over the whole numbers below 256 that come next in a list: long runs of them (pixels, say) hold nothing to look
 * at, and cost a tenth this way. */
static inline void hook_walk_past_small(hook_walk *walk) {
  if (walk->in_map) return;
  while (walk->left > 0 && walk->next < walk->end) {
    uint8_t head = *walk->next;
    uint32_t bytes = head < 0x80 || head >= 0xe0 ? 1 : head == 0xcc ? 2 : 0;
    if (bytes == 0 || (size_t)(walk->end - walk->next) < bytes) return;
    walk->next += bytes;
    walk->left--;
  }
}

#endif
