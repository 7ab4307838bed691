/* What an author changed, as a JSON Patch (RFC 6902): two encoded values in, the operations that turn the first into the
 * second out. Works on msgpack alone, so nothing that a hook's values do can disturb it. */
#ifndef HOOKJS_DIFF_H
#define HOOKJS_DIFF_H

#include "encode.h"

enum { HOOKJS_PATCH_OPERATIONS = 1000 }; /* ABI, "Outcome" */

typedef struct {
  hook_writer *out;
  hook_writer path; /* the JSON Pointer so far, bytes alone */
  uint32_t operations;
} hookjs_diff;

static bool hookjs_equal(hook_value a, hook_value b);

static bool hookjs_equal_numbers(const hook_item *a, const hook_item *b) {
  if (a->kind == HOOK_INTEGER && b->kind == HOOK_INTEGER) {
    return a->integer == b->integer && a->negative == b->negative;
  }
  const hook_item *whole = a->kind == HOOK_INTEGER ? a : b;
  double real = a->kind == HOOK_REAL ? a->real : b->real;
  if (whole->kind == HOOK_REAL) return a->real == b->real;
  /* JavaScript has no 1.0 beside 1. */
  return (whole->negative ? (double)(int64_t)whole->integer : (double)whole->integer) == real && fabs(real) <= 0x1p53;
}

/* The value of `key`, tried first where `guess` stands: two versions of a map hold most keys in the same order. */
static hook_value hookjs_find(hook_value map, hook_items *guess, hook_text key) {
  hook_items ahead = *guess;
  if (hook_next(&ahead) && hook_same(ahead.key, key)) {
    *guess = ahead;
    return ahead.value;
  }
  for (ahead = hook_items_of(map); hook_next(&ahead);)
    if (hook_same(ahead.key, key)) {
      *guess = ahead;
      return ahead.value;
    }
  return (hook_value){NULL, NULL};
}

static bool hookjs_equal_items(hook_value a, hook_value b) {
  hook_items left = hook_items_of(a), right = hook_items_of(b);
  bool map = left.map;
  while (hook_next(&left)) {
    hook_value other;
    if (map) {
      other = hookjs_find(b, &right, left.key);
    } else {
      hook_next(&right);
      other = right.value;
    }
    if (other.at == NULL || !hookjs_equal(left.value, other)) return false;
  }
  return true;
}

static bool hookjs_equal(hook_value a, hook_value b) {
  if (hook_same(hook_span(a), hook_span(b))) return true;
  hook_item left, right;
  hook_read_value(&left, a);
  hook_read_value(&right, b);
  bool numbers = left.kind == HOOK_INTEGER || left.kind == HOOK_REAL;
  if (numbers && (right.kind == HOOK_INTEGER || right.kind == HOOK_REAL)) return hookjs_equal_numbers(&left, &right);
  if (left.kind != right.kind || left.size != right.size) return false;
  if (left.kind >= HOOK_LIST) return hookjs_equal_items(a, b);
  return left.kind >= HOOK_STRING && hook_same(hook_item_text(&left), hook_item_text(&right));
}

static void hookjs_path_key(hookjs_diff *diff, hook_text key) {
  hook_write_raw(&diff->path, hook_c("/"));
  for (uint32_t i = 0; i < key.bytes; i++) {
    if (key.at[i] == '~') hook_write_raw(&diff->path, hook_c("~0"));
    else if (key.at[i] == '/') hook_write_raw(&diff->path, hook_c("~1"));
    else hook_write_raw(&diff->path, (hook_text){key.at + i, 1});
  }
}

static void hookjs_path_index(hookjs_diff *diff, uint32_t index) {
  char digits[12];
  snprintf(digits, sizeof(digits), "%u", index);
  hookjs_path_key(diff, hook_c(digits));
}

/* One operation at the current path; `value.at` is NULL of a remove. */
static void hookjs_operation(hookjs_diff *diff, const char *op, hook_value value) {
  diff->operations++;
  hookjs_write_count(diff->out, 0x80, value.at ? 3 : 2);
  hookjs_write_text(diff->out, hook_c("op"));
  hookjs_write_text(diff->out, hook_c(op));
  hookjs_write_text(diff->out, hook_c("path"));
  hookjs_write_text(diff->out, (hook_text){diff->path.at, diff->path.bytes});
  if (value.at == NULL) return;
  hookjs_write_text(diff->out, hook_c("value"));
  hook_write_raw(diff->out, hook_span(value));
}

static const hook_value hookjs_no_value = {NULL, NULL};

static void hookjs_diff_value(hookjs_diff *diff, hook_value was, hook_value is);

static void hookjs_diff_map(hookjs_diff *diff, hook_value was, hook_value is) {
  uint32_t here = diff->path.bytes;
  hook_items old = hook_items_of(was), guess = hook_items_of(is);
  while (hook_next(&old))
    if (hookjs_find(is, &guess, old.key).at == NULL) {
      hookjs_path_key(diff, old.key);
      hookjs_operation(diff, "remove", hookjs_no_value);
      diff->path.bytes = here;
    }
  hook_items new = hook_items_of(is);
  guess = hook_items_of(was);
  while (hook_next(&new)) {
    hook_value before = hookjs_find(was, &guess, new.key);
    hookjs_path_key(diff, new.key);
    if (before.at == NULL) hookjs_operation(diff, "add", new.value);
    else hookjs_diff_value(diff, before, new.value);
    diff->path.bytes = here;
  }
}

/* Where each item of a list stands; NULL when there is no room, or none. */
static hook_value *hookjs_list(hook_value list, uint32_t *count) {
  *count = hook_count(list);
  hook_value *all = malloc(*count * sizeof(hook_value) + 1);
  if (all == NULL) __builtin_trap();
  hook_items items = hook_items_of(list);
  for (uint32_t i = 0; hook_next(&items); i++) all[i] = items.value;
  return all;
}

/* Keeps what both begin and end with. What lies between is changed item by item; what is left over was added or removed. */
static void hookjs_diff_list(hookjs_diff *diff, hook_value was, hook_value is) {
  uint32_t old_count, new_count, first = 0, same_end = 0, here = diff->path.bytes;
  hook_value *old = hookjs_list(was, &old_count), *new = hookjs_list(is, &new_count);
  uint32_t fewer = old_count < new_count ? old_count : new_count;
  while (first < fewer && hookjs_equal(old[first], new[first])) first++;
  while (same_end < fewer - first && hookjs_equal(old[old_count - 1 - same_end], new[new_count - 1 - same_end])) same_end++;
  uint32_t at = first;
  for (; at < fewer - same_end; at++) {
    hookjs_path_index(diff, at);
    hookjs_diff_value(diff, old[at], new[at]);
    diff->path.bytes = here;
  }
  for (uint32_t extra = at; extra < old_count - same_end; extra++) {
    hookjs_path_index(diff, at);
    hookjs_operation(diff, "remove", hookjs_no_value);
    diff->path.bytes = here;
  }
  for (uint32_t extra = at; extra < new_count - same_end; extra++) {
    if (same_end == 0) hook_write_raw(&diff->path, hook_c("/-"));
    else hookjs_path_index(diff, extra);
    hookjs_operation(diff, "add", new[extra]);
    diff->path.bytes = here;
  }
  free(old);
  free(new);
}

static void hookjs_diff_value(hookjs_diff *diff, hook_value was, hook_value is) {
  if (diff->operations > HOOKJS_PATCH_OPERATIONS || hookjs_equal(was, is)) return;
  hook_kind before = hook_kind_of(was), now = hook_kind_of(is);
  if (before == HOOK_MAP && now == HOOK_MAP) hookjs_diff_map(diff, was, is);
  else if (before == HOOK_LIST && now == HOOK_LIST) hookjs_diff_list(diff, was, is);
  else hookjs_operation(diff, "replace", is);
}

/* The operations for one field of the context. More of them than a patch may hold become one: the field, replaced. */
static void hookjs_diff_field(hookjs_diff *diff, hook_text field, hook_value was, hook_value is) {
  uint32_t before = diff->operations, written = diff->out->bytes;
  diff->path.bytes = 0;
  hookjs_path_key(diff, field);
  hookjs_diff_value(diff, was, is);
  if (diff->operations <= HOOKJS_PATCH_OPERATIONS) return;
  diff->operations = before;
  diff->out->bytes = written;
  diff->path.bytes = 0;
  hookjs_path_key(diff, field);
  hookjs_operation(diff, "replace", is);
}

#endif
