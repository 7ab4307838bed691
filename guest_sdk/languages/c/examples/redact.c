/* redact: masks e-mail addresses, card numbers and phone numbers in what a tool returned.
 *
 * Every string of the result is searched, at any depth, the keys of maps too; so are whole numbers that are a card's.
 * Not searched: bytes, and digits that are spelt out or spaced one by one. What is not a hit stays byte for byte, and a
 * result without a hit is left alone. A tool's own error text is searched the same way.
 *
 * Cost: one pass. The untouched bytes between two hits are copied once, and only when there is a hit at all.
 */
#include "../hookcell.h"

HOOK_MANIFEST({
  "abi": 1,
  "name": "redact",
  "version": "0.1.0",
  "description": "Masks e-mail addresses, card numbers and phone numbers in tool results.",
  "needs": ["result"],
  "sdk": "c/0.1",
  "config": {
    "type": "object",
    "additionalProperties": false,
    "properties": {
      "email": {"type": "boolean", "description": "Mask e-mail addresses; on unless false."},
      "card": {"type": "boolean", "description": "Mask payment card numbers; on unless false."},
      "phone": {"type": "boolean", "description": "Mask phone numbers; on unless false."}
    }
  }
})

enum { EMAIL, CARD, PHONE, SECRETS };

enum { SHORTEST = 6 }; /* a@b.co */

static const char *const NAMES[SECRETS] = {"email", "card", "phone"};

static bool wanted[SECRETS];
static uint32_t masked[SECRETS];
static uint32_t masked_in_keys;

/* A hit: `[from, to)` is to be replaced. */
typedef struct {
  const uint8_t *from;
  const uint8_t *to;
  int secret;
} hit;

static bool is_digit(uint8_t byte) { return byte - '0' < 10u; }
static bool is_letter(uint8_t byte) { return (byte | 32) - 'a' < 26u; }

static const uint8_t *digits_from(const uint8_t *at, const uint8_t *end) {
  while (at < end && is_digit(*at)) at++;
  return at;
}

/* --- e-mail ------------------------------------------------------------------------------------------------------ */

/* Bytes of a Latin letter with a diacritic (U+00C0 to U+024F) at `at`, or 0. Other scripts are not taken, since they
 * write words without spaces and a whole sentence round an address would go. */
static uint32_t accented(const uint8_t *at, const uint8_t *end) {
  return end - at >= 2 && at[0] >= 0xc3 && at[0] <= 0xc9 && at[1] >= 0x80 && at[1] < 0xc0 ? 2 : 0;
}

static bool in_local_part(uint8_t byte) {
  return is_letter(byte) || is_digit(byte) || byte == '.' || byte == '_' || byte == '%' || byte == '+' || byte == '-' ||
         byte == '\'';
}

/* `at` is an @. The domain ends with its last label of two or more that begins with a letter, after the first dot. */
static bool find_email(const uint8_t *floor, const uint8_t *at, const uint8_t *end, hit *found) {
  const uint8_t *from = at;
  for (;;) {
    if (from > floor && in_local_part(from[-1])) from--;
    else if (from - floor >= 2 && accented(from - 2, from)) from -= 2;
    else break;
  }
  if (from == at) return false;
  const uint8_t *to = NULL, *label = at + 1;
  for (const uint8_t *p = label;;) {
    uint32_t wide = p < end ? accented(p, end) : 0;
    if (wide || (p < end && (is_letter(*p) || is_digit(*p) || *p == '-'))) {
      p += wide ? wide : 1;
      continue;
    }
    const uint8_t *label_end = p;
    while (label_end > label && label_end[-1] == '-') label_end--;
    if (label > at + 1 && label_end - label >= 2 && is_letter(*label)) to = label_end;
    if (p == label || p >= end || *p != '.') break;
    label = ++p;
  }
  if (to == NULL) return false;
  *found = (hit){from, to, EMAIL};
  return true;
}

/* --- cards ------------------------------------------------------------------------------------------------------- */

/* The check digit of ISO/IEC 7812-1, over the digits of `[from, to)`, separators aside. */
static bool luhn(const uint8_t *from, const uint8_t *to) {
  static const uint8_t WEIGHED[2][10] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {0, 2, 4, 6, 8, 1, 3, 5, 7, 9}};
  uint32_t sum = 0, twice = 0;
  while (to > from) {
    uint32_t digit = (uint32_t)*--to - '0';
    if (digit > 9) continue;
    sum += WEIGHED[twice][digit];
    twice ^= 1;
  }
  return sum % 10 == 0;
}

/* How the brands print their numbers: the sizes of the groups, as the digits of a decimal number. */
static bool is_shape(uint32_t sizes) {
  return sizes == 4444 || sizes == 44443 || sizes == 465 || sizes == 464 || sizes == 445;
}

/* `from` is the first of the digits up to `group`. A card number is 13 to 19 digits in one piece or in the groups that
 * are printed on cards, and begins with 2 to 6, as payment cards do: a time in milliseconds begins with 1. */
static bool find_card(const uint8_t *from, const uint8_t *group, const uint8_t *end, hit *found) {
  if (*from < '2' || *from > '6') return false;
  ptrdiff_t digits = group - from;
  if (digits >= 13 && digits <= 19 && luhn(from, group)) {
    *found = (hit){from, group, CARD};
    return true;
  }
  if (digits != 4 || group == end || (*group != ' ' && *group != '-')) return false;
  uint8_t separator = *group;
  const uint8_t *best = NULL;
  uint32_t sizes = 4;
  while (sizes <= 4444 && group < end && *group == separator) {
    const uint8_t *first = group + 1;
    group = digits_from(first, end - first > 7 ? first + 7 : end); /* more than 6 fits no shape */
    sizes = 10 * sizes + (uint32_t)(group - first);
    if (sizes < 100 && sizes != 44 && sizes != 46) return false;
    if (is_shape(sizes) && luhn(from, group)) best = group;
  }
  if (best == NULL) return false;
  *found = (hit){from, best, CARD};
  return true;
}

/* --- phones ------------------------------------------------------------------------------------------------------ */

static bool is_separator(uint8_t byte) {
  return byte == ' ' || byte == '-' || byte == '.' || byte == '(' || byte == ')' || byte == '/';
}

/* `at` is a +. An international number: 8 to 15 digits (ITU-T E.164), with up to two separators between them. */
static bool find_international(const uint8_t *at, const uint8_t *end, hit *found) {
  const uint8_t *last = NULL;
  uint32_t digits = 0, separators = 0;
  for (const uint8_t *p = at + 1; p < end && digits <= 15; p++) {
    if (is_digit(*p)) {
      digits++;
      separators = 0;
      last = p + 1;
    } else if (digits == 0 || !is_separator(*p) || ++separators > 2) {
      break;
    }
  }
  if (digits < 8 || digits > 15) return false;
  *found = (hit){at, last, PHONE};
  return true;
}

/* `from` is a ( or the first digit of a group. A North American number: 3-3-4, the first in parentheses or not. */
static bool find_national(const uint8_t *from, const uint8_t *end, hit *found) {
  bool open = *from == '(';
  const uint8_t *p = from + open;
  static const uint8_t SIZES[3] = {3, 3, 4};
  for (int group = 0; group < 3; group++) {
    if (group == 1 && open) {
      if (p >= end || *p++ != ')') return false;
      if (p < end && *p == ' ') p++;
    } else if (group > 0) {
      if (p >= end || (*p != '-' && *p != '.' && *p != ' ')) return false;
      p++;
    }
    for (int i = 0; i < SIZES[group]; i++, p++)
      if (p >= end || !is_digit(*p)) return false;
    if (p < end && is_digit(*p)) return false;
  }
  *found = (hit){from, p, PHONE};
  return true;
}

/* --- strings ----------------------------------------------------------------------------------------------------- */

/* Whether eight bytes hold none that a hit can begin with or hang on: ( ) * + @ and the digits, 2 to 5 instructions a
 * byte instead of 15. The subtraction sets a byte's high bit when it is below the bound; a borrow from the byte before
 * can only cost a closer look. */
static bool is_quiet(const uint8_t *at) {
  uint64_t bytes, ones = 0x0101010101010101;
  __builtin_memcpy(&bytes, at, sizeof(bytes));
  uint64_t digit = bytes ^ '0' * ones, sign = bytes ^ '(' * ones, a_sign = bytes ^ '@' * ones;
  uint64_t below = ((digit - 10 * ones) & ~digit) | ((sign - 4 * ones) & ~sign) | ((a_sign - ones) & ~a_sign);
  return (below & 0x80 * ones) == 0;
}

/* The first hit at or after `floor`. Each byte is looked at a bounded number of times, whatever it is. */
static bool find(const uint8_t *floor, const uint8_t *end, hit *found) {
  const uint8_t *p = floor;
  while (p < end) {
    while (end - p >= 8 && is_quiet(p)) p += 8;
    /* What follows goes through the rest of these eight bytes, or a little past them. */
    const uint8_t *stop = end - p < 8 ? end : p + 8;
    while (p < stop) {
      uint8_t byte = *p;
      if (is_digit(byte)) {
        const uint8_t *group = digits_from(p, end);
        bool fraction = p - floor >= 2 && p[-1] == '.' && is_digit(p[-2]); /* 0.4111… is a measure, not a card */
        if (wanted[CARD] && !fraction && find_card(p, group, end, found)) return true;
        if (wanted[PHONE] && !fraction && find_national(p, end, found)) return true;
        p = group;
        continue;
      }
      if (byte == '@' && wanted[EMAIL] && find_email(floor, p, end, found)) return true;
      if (byte == '+' && wanted[PHONE] && find_international(p, end, found)) return true;
      if (byte == '(' && wanted[PHONE] && find_national(p, end, found)) return true;
      p++;
    }
  }
  return false;
}

static void write_mask(hook_writer *writer, int secret, bool in_key) {
  masked[secret]++;
  hook_write_raw(writer, hook_c("["));
  hook_write_raw(writer, hook_c(NAMES[secret]));
  if (in_key) { /* two keys must not become the same one: the outcome would be refused */
    uint8_t digits[10];
    uint32_t at = sizeof(digits), left = ++masked_in_keys;
    do digits[--at] = (uint8_t)('0' + left % 10);
    while (left /= 10);
    hook_write_raw(writer, hook_c(" "));
    hook_write_raw(writer, (hook_text){digits + at, sizeof(digits) - at});
  }
  hook_write_raw(writer, hook_c("]"));
}

/* --- the result -------------------------------------------------------------------------------------------------- */

/* Untouched bytes from `*copied` to `at`; the outcome's head before the first. */
static void catch_up(hook_writer *writer, const uint8_t **copied, const uint8_t *at) {
  if (writer->bytes == 0) {
    hook_write_map(writer, 1);
    hook_write_c(writer, "result");
  }
  hook_write_raw(writer, (hook_text){*copied, (uint32_t)(at - *copied)});
  *copied = at;
}

static void redact_string(hook_writer *writer, const uint8_t **copied, const hook_walk *walk) {
  hook_text text = hook_item_text(&walk->item);
  const uint8_t *at = text.at, *end = at + text.bytes;
  hit found;
  if (!find(at, end, &found)) return;
  catch_up(writer, copied, walk->start);
  uint32_t mark = hook_text_begin(writer);
  do {
    hook_write_raw(writer, (hook_text){at, (uint32_t)(found.from - at)});
    write_mask(writer, found.secret, walk->is_key);
    at = found.to;
  } while (find(at, end, &found));
  hook_write_raw(writer, (hook_text){at, (uint32_t)(end - at)});
  hook_text_end(writer, mark);
  *copied = walk->next;
}

static void redact_integer(hook_writer *writer, const uint8_t **copied, const hook_walk *walk) {
  if (!wanted[CARD] || walk->item.negative || walk->item.integer < 2000000000000) return; /* 13 digits */
  uint8_t digits[20];
  uint32_t at = sizeof(digits);
  for (uint64_t left = walk->item.integer; left > 0; left /= 10) digits[--at] = (uint8_t)('0' + left % 10);
  hit found;
  if (!find_card(digits + at, digits + sizeof(digits), digits + sizeof(digits), &found)) return;
  catch_up(writer, copied, walk->start);
  uint32_t mark = hook_text_begin(writer);
  write_mask(writer, CARD, false);
  hook_text_end(writer, mark);
  *copied = walk->next;
}

static void log_counts(void) {
  hook_log_c("masked");
  for (int secret = 0; secret < SECRETS; secret++) {
    if (masked[secret] == 0) continue;
    hook_log_c(" ");
    hook_log_c(NAMES[secret]);
    hook_log_c("=");
    hook_log_integer(masked[secret]);
  }
  hook_log_line();
}

HOOK_POINT(post_tool_call, context) {
  hook_value settled = hook_get(context, "result");
  hook_value value = hook_get(settled, "result");
  hook_kind kind = hook_kind_of(value);
  if (kind == HOOK_ABSENT || kind == HOOK_NIL) value = hook_get(hook_get(settled, "error"), "message");
  hook_value config = hook_get(context, "config");
  for (int secret = 0; secret < SECRETS; secret++)
    wanted[secret] = hook_as_bool(hook_get(config, NAMES[secret]), true);

  hook_writer writer = {0};
  const uint8_t *copied = value.at;
  hook_walk walk = hook_walk_of(value);
  while (hook_walk_next(&walk)) {
    if (walk.item.kind == HOOK_STRING && walk.item.size >= SHORTEST) redact_string(&writer, &copied, &walk);
    else if (walk.item.kind == HOOK_INTEGER) redact_integer(&writer, &copied, &walk);
    hook_walk_past_small(&walk);
  }
  if (writer.bytes == 0 && !writer.failed) return hook_nothing();
  catch_up(&writer, &copied, walk.next);
  log_counts();
  return hook_return(&writer);
}
