/* Reading the context: msgpack where it lies, nothing copied, every length checked against what is there.
 *
 * A malformed context cannot be read past its end: what is asked for is then absent, and the entry point returns the
 * error `ContextMalformed` whatever the hook decided (hookcell.h), so that no hook has to check.
 *
 * Why not a published decoder: on a 32-bit target the ones that trust a pre-check add a length to a pointer, and a
 * length near 4 GiB wraps past the check. Here lengths are compared with the bytes left, never added first.
 */
#ifndef HOOKCELL_VALUE_H
#define HOOKCELL_VALUE_H

#include "base.h"

typedef enum {
  HOOK_ABSENT,
  HOOK_NIL,
  HOOK_BOOL,
  HOOK_INTEGER,
  HOOK_REAL,
  HOOK_STRING,
  HOOK_BYTES,
  HOOK_LIST,
  HOOK_MAP,
} hook_kind;

/* A value in the context: its first byte, and where the context ends. */
typedef struct {
  const uint8_t *at;
  const uint8_t *end;
} hook_value;

/* One decoded header. `next` is the first byte after a scalar, or the first item of a list or map. */
typedef struct {
  hook_kind kind;
  const uint8_t *next;
  uint32_t size; /* bytes of a string or of bytes, items of a list, pairs of a map; else 0 */
  bool negative; /* of an integer: whether `integer` is to be read as signed */
  union {
    uint64_t integer; /* of an integer, two's complement; 0 or 1 of a bool */
    double real;
  };
} hook_item;

static bool hook_malformed; /* sticky */

/* `width` bytes at `*at`, most significant first; moves `*at`. */
HOOK_ONCE uint64_t hook_read_number(const uint8_t **at, const uint8_t *end, uint32_t width) {
  if ((size_t)(end - *at) < width) {
    hook_malformed = true;
    *at = end;
    return 0;
  }
  uint64_t number = 0;
  for (uint32_t i = 0; i < width; i++) number = number << 8 | *(*at)++;
  return number;
}

/* The text of a string, or the content of bytes. */
static inline hook_text hook_item_text(const hook_item *item) {
  return (hook_text){item->next - item->size, item->size};
}

/* Everything but the shortest integers, lists, maps and strings. */
HOOK_ONCE void hook_read_wide(hook_item *item, uint8_t head, const uint8_t *at, const uint8_t *end) {
  uint64_t length = 0, count = 0;
  if (head == 0xc0) {
    item->kind = HOOK_NIL;
  } else if (head == 0xc2 || head == 0xc3) {
    item->kind = HOOK_BOOL;
    item->integer = head & 1;
  } else if (head >= 0xc4 && head <= 0xc6) {
    item->kind = HOOK_BYTES;
    length = hook_read_number(&at, end, 1u << (head - 0xc4));
  } else if (head == 0xca) {
    union { uint32_t bits; float real; } single = {(uint32_t)hook_read_number(&at, end, 4)};
    item->kind = HOOK_REAL;
    item->real = single.real;
  } else if (head == 0xcb) {
    union { uint64_t bits; double real; } pair = {hook_read_number(&at, end, 8)};
    item->kind = HOOK_REAL;
    item->real = pair.real;
  } else if (head >= 0xcc && head <= 0xcf) {
    item->kind = HOOK_INTEGER;
    item->integer = hook_read_number(&at, end, 1u << (head - 0xcc));
    item->negative = false;
  } else if (head >= 0xd0 && head <= 0xd3) {
    uint32_t width = 1u << (head - 0xd0), unused_bits = 64 - 8 * width;
    int64_t number = (int64_t)(hook_read_number(&at, end, width) << unused_bits) >> unused_bits;
    item->kind = HOOK_INTEGER;
    item->integer = (uint64_t)number;
    item->negative = number < 0;
  } else if (head >= 0xd9 && head <= 0xdb) {
    item->kind = HOOK_STRING;
    length = hook_read_number(&at, end, 1u << (head - 0xd9));
  } else if (head == 0xdc || head == 0xdd) {
    item->kind = HOOK_LIST;
    count = hook_read_number(&at, end, head == 0xdc ? 2 : 4);
  } else if (head == 0xde || head == 0xdf) {
    item->kind = HOOK_MAP;
    count = hook_read_number(&at, end, head == 0xde ? 2 : 4);
  } else {
    hook_malformed = true; /* an extension type, or the byte that msgpack never uses: not in the ABI */
  }
  /* An item is at least one byte and a pair two, so a larger count is a lie. */
  size_t left = (size_t)(end - at);
  if (length > left || count > (item->kind == HOOK_MAP ? left / 2 : left)) hook_malformed = true;
  if (hook_malformed) return;
  item->size = (uint32_t)(length + count); /* one of them is 0 */
  item->next = at + length;
}

/* Decodes the header at `at`. False, and `HOOK_ABSENT` that ends where the context does, when there is none. */
static inline bool hook_read(hook_item *item, const uint8_t *at, const uint8_t *end) {
  if (at < end && !hook_malformed) {
    uint8_t head = *at++;
    item->next = at;
    if (head < 0x80 || head >= 0xe0) {
      item->kind = HOOK_INTEGER;
      item->size = 0;
      item->negative = head >= 0x80;
      item->integer = (uint64_t)(int64_t)(int8_t)head;
      return true;
    }
    if (head < 0xc0) {
      item->kind = head < 0x90 ? HOOK_MAP : head < 0xa0 ? HOOK_LIST : HOOK_STRING;
      item->size = head & (head < 0xa0 ? 15 : 31);
      if (item->kind == HOOK_STRING) item->next += item->size;
      if (item->size <= (size_t)(end - at)) return true;
      hook_malformed = true;
    } else {
      hook_read_wide(item, head, at, end);
      if (!hook_malformed) return true;
    }
  } else if (at != NULL) {
    hook_malformed = true;
  }
  item->kind = HOOK_ABSENT;
  item->size = 0;
  item->next = end;
  return false;
}

HOOK_ONCE void hook_read_value(hook_item *item, hook_value value) { hook_read(item, value.at, value.end); }

/* The first byte after the value at `at`, nesting of any depth included; `end` when it is malformed. */
HOOK_ONCE const uint8_t *hook_skip(const uint8_t *at, const uint8_t *end) {
  uint64_t owed = 1; /* at most the bytes left, for each open list or map: no overflow */
  while (owed > 0) {
    hook_item item;
    if (!hook_read(&item, at, end)) return end;
    owed--;
    if (item.kind >= HOOK_LIST) owed += (item.kind == HOOK_MAP ? 2 : 1) * (uint64_t)item.size;
    at = item.next;
    if (owed > (size_t)(end - at)) {
      hook_malformed = true;
      return end;
    }
  }
  return at;
}

HOOK_ONCE hook_kind hook_kind_of(hook_value value) {
  hook_item item;
  hook_read_value(&item, value);
  return item.kind;
}

/* Items of a list or pairs of a map; 0 of anything else. */
static inline uint32_t hook_count(hook_value value) {
  hook_item item;
  hook_read_value(&item, value);
  return item.kind >= HOOK_LIST ? item.size : 0;
}

/* A string's text; `at` is NULL for anything else. */
HOOK_ONCE hook_text hook_as_text(hook_value value) {
  hook_item item;
  hook_read_value(&item, value);
  return item.kind == HOOK_STRING ? hook_item_text(&item) : (hook_text){NULL, 0};
}

/* An integer that fits, or nothing and false. */
HOOK_ONCE bool hook_as_integer(hook_value value, int64_t *number) {
  hook_item item;
  hook_read_value(&item, value);
  if (item.kind != HOOK_INTEGER || (!item.negative && item.integer > INT64_MAX)) return false;
  *number = (int64_t)item.integer;
  return true;
}

/* Any number as a double (exact to 2^53), or nothing and false. */
HOOK_ONCE bool hook_as_number(hook_value value, double *number) {
  hook_item item;
  hook_read_value(&item, value);
  if (item.kind == HOOK_REAL) *number = item.real;
  else if (item.kind == HOOK_INTEGER) *number = item.negative ? (double)(int64_t)item.integer : (double)item.integer;
  else return false;
  return true;
}

/* A bool, or `otherwise` for anything else. */
HOOK_ONCE bool hook_as_bool(hook_value value, bool otherwise) {
  hook_item item;
  hook_read_value(&item, value);
  return item.kind == HOOK_BOOL ? item.integer != 0 : otherwise;
}

/* The exact encoded bytes of a value. */
HOOK_ONCE hook_text hook_span(hook_value value) {
  if (value.at == NULL) return (hook_text){NULL, 0};
  return (hook_text){value.at, (uint32_t)(hook_skip(value.at, value.end) - value.at)};
}

/* The items of a list or map, one after the other:
 *
 *     hook_items items = hook_items_of(value);
 *     while (hook_next(&items)) { items.key; items.value; }
 *
 * Anything else has none. `key.at` is NULL in a list.
 */
typedef struct {
  hook_text key;
  hook_value value;
  const uint8_t *next; /* NULL: the value has to be skipped first */
  uint32_t left;
  bool map;
} hook_items;

HOOK_ONCE hook_items hook_items_of(hook_value value) {
  hook_item item;
  hook_read_value(&item, value);
  return (hook_items){.value = value, .next = item.next, .left = item.kind >= HOOK_LIST ? item.size : 0,
                      .map = item.kind == HOOK_MAP};
}

HOOK_ONCE bool hook_next(hook_items *items) {
  if (items->left == 0 || hook_malformed) return false;
  items->left--;
  const uint8_t *end = items->value.end;
  const uint8_t *at = items->next ? items->next : hook_skip(items->value.at, end);
  if (items->map) {
    hook_item key;
    hook_read(&key, at, end);
    if (key.kind != HOOK_STRING) hook_malformed = true;
    items->key = hook_item_text(&key);
    at = key.next;
  }
  items->value.at = at;
  items->next = NULL;
  return !hook_malformed;
}

/* The value of a map's key. Absent when the key, or the map, is not there: lookups can be nested. */
HOOK_ONCE hook_value hook_get_text(hook_value map, hook_text key) {
  hook_items items = hook_items_of(map);
  while (items.map && hook_next(&items))
    if (hook_same(items.key, key)) return items.value;
  return (hook_value){NULL, NULL};
}

static inline __attribute__((always_inline)) hook_value hook_get(hook_value map, const char *key) { return hook_get_text(map, hook_c(key)); }

#endif
