/* JavaScript values to msgpack: JSON's values, byte strings and 64-bit whole numbers, each in its shortest form, which is
 * how the host writes them too. Whatever else stands in a value is an error that says where.
 *
 * Hostile values: each property is read once, so a getter cannot show two faces; a proxy is refused; what a getter
 * changes while it runs can change what is read after it, never what was counted.
 */
#ifndef HOOKJS_ENCODE_H
#define HOOKJS_ENCODE_H

#include "base.h"
#include "hookcell/writer.h"
#include "quickjs.h"

#include <math.h>
#include <stdio.h>

enum {
  HOOKJS_CLASS_OBJECT = 1, /* JS_CLASS_OBJECT, which quickjs.c keeps to itself: "must be first" */
  HOOKJS_PLACE_BYTES = 400,
  HOOKJS_ENCODE_DEPTH = 80, /* past any limit of the host's, which names its own */
};

/* Where in a value the encoder stands: a list from the innermost level outwards. */
typedef struct hookjs_level {
  const struct hookjs_level *outer;
  JSValueConst container;
  JSAtom key; /* of a map; JS_ATOM_NULL in a list */
  uint32_t index;
} hookjs_level;

typedef struct {
  hook_writer *writer;
  const char *place; /* what the value is, e.g. "outcome" */
} hookjs_encoder;

/* Writes `outcome/result/items/3` and gives its length; cut in the middle of nothing when it is long. */
static size_t hookjs_place(char *out, size_t room, const char *place, const hookjs_level *level) {
  if (level == NULL) return (size_t)snprintf(out, room, "%s", place);
  size_t used = hookjs_place(out, room, place, level->outer);
  if (used >= room - 1) return room - 1;
  if (level->key == JS_ATOM_NULL) {
    used += (size_t)snprintf(out + used, room - used, "/%u", level->index);
  } else {
    const char *key = JS_AtomToCString(js, level->key);
    used += (size_t)snprintf(out + used, room - used, "/%s", key ? key : "?");
    JS_FreeCString(js, key);
  }
  return used < room - 1 ? used : room - 1;
}

static int hookjs_refuse(const hookjs_encoder *to, const hookjs_level *level, const char *why) {
  char place[HOOKJS_PLACE_BYTES];
  hookjs_place(place, sizeof(place), to->place, level);
  JS_ThrowTypeError(js, "%s: %s", place, why);
  return -1;
}

static inline void hookjs_write_unsigned(hook_writer *writer, uint64_t number) {
  if (number < 128) hook_write_head(writer, (uint8_t)number, 0, 0);
  else if (number <= UINT8_MAX) hook_write_head(writer, 0xcc, number, 1);
  else if (number <= UINT16_MAX) hook_write_head(writer, 0xcd, number, 2);
  else if (number <= UINT32_MAX) hook_write_head(writer, 0xce, number, 4);
  else hook_write_head(writer, 0xcf, number, 8);
}

static void hookjs_write_signed(hook_writer *writer, int64_t number) {
  if (number >= 0) hookjs_write_unsigned(writer, (uint64_t)number);
  else if (number >= -32) hook_write_head(writer, (uint8_t)number, 0, 0);
  else if (number >= INT8_MIN) hook_write_head(writer, 0xd0, (uint64_t)number, 1);
  else if (number >= INT16_MIN) hook_write_head(writer, 0xd1, (uint64_t)number, 2);
  else if (number >= INT32_MIN) hook_write_head(writer, 0xd2, (uint64_t)number, 4);
  else hook_write_head(writer, 0xd3, (uint64_t)number, 8);
}

static void hookjs_write_text(hook_writer *writer, hook_text text) {
  if (text.bytes < 32) hook_write_head(writer, (uint8_t)(0xa0 | text.bytes), 0, 0);
  else if (text.bytes <= UINT8_MAX) hook_write_head(writer, 0xd9, text.bytes, 1);
  else if (text.bytes <= UINT16_MAX) hook_write_head(writer, 0xda, text.bytes, 2);
  else hook_write_head(writer, 0xdb, text.bytes, 4);
  hook_write_raw(writer, text);
}

/* The head of a list (`short_head` 0x90) or map (0x80). */
static void hookjs_write_count(hook_writer *writer, uint8_t short_head, uint32_t count) {
  if (count < 16) hook_write_head(writer, (uint8_t)(short_head | count), 0, 0);
  else if (count <= UINT16_MAX) hook_write_head(writer, short_head == 0x80 ? 0xde : 0xdc, count, 2);
  else hook_write_head(writer, short_head == 0x80 ? 0xdf : 0xdd, count, 4);
}

static int hookjs_encode(const hookjs_encoder *to, JSValueConst value, const hookjs_level *level, int depth);

static int hookjs_encode_string(const hookjs_encoder *to, JSValueConst value, const hookjs_level *level) {
  size_t bytes;
  const char *string = JS_ToCStringLen(js, &bytes, value);
  if (string == NULL) return -1;
  hook_text text = {(const uint8_t *)string, (uint32_t)bytes};
  /* A lone surrogate comes as three bytes of which the first is 0xed; Korean text begins with it too. */
  bool lone = memchr(string, 0xed, bytes) != NULL && !hook_is_utf8(text);
  if (!lone) hookjs_write_text(to->writer, text);
  JS_FreeCString(js, string);
  return lone ? hookjs_refuse(to, level, "a string with half a surrogate pair cannot cross: use toWellFormed()") : 0;
}

static int hookjs_encode_number(const hookjs_encoder *to, JSValueConst value, const hookjs_level *level) {
  double number;
  JS_ToFloat64(js, &number, value);
  if (!isfinite(number)) return hookjs_refuse(to, level, isnan(number) ? "NaN cannot cross" : "Infinity cannot cross");
  const double safe = 9007199254740992.0; /* 2^53 */
  if (number >= -safe && number <= safe && number == (double)(int64_t)number) {
    hookjs_write_signed(to->writer, (int64_t)number);
  } else {
    hook_write_real(to->writer, number);
  }
  return 0;
}

static int hookjs_encode_bigint(const hookjs_encoder *to, JSValueConst value, const hookjs_level *level) {
  int64_t bits;
  if (JS_ToBigInt64(js, &bits, value) < 0) return -1;
  /* The low 64 bits, read both ways: one of them is the number, or it has more. */
  JSValue same = JS_NewBigInt64(js, bits), positive = JS_NewBigUint64(js, (uint64_t)bits);
  bool is_signed = JS_IsStrictEqual(js, same, value), is_unsigned = JS_IsStrictEqual(js, positive, value);
  JS_FreeValue(js, same);
  JS_FreeValue(js, positive);
  if (is_signed) hookjs_write_signed(to->writer, bits);
  else if (is_unsigned) hookjs_write_unsigned(to->writer, (uint64_t)bits);
  else return hookjs_refuse(to, level, "a whole number over 64 bits cannot cross: pass it as a string");
  return 0;
}

static int hookjs_encode_array(const hookjs_encoder *to, JSValueConst value, const hookjs_level *outer, int depth) {
  int64_t count;
  if (JS_GetLength(js, value, &count) < 0) return -1;
  hookjs_level level = {outer, value, JS_ATOM_NULL, 0};
  hookjs_write_count(to->writer, 0x90, (uint32_t)count);
  for (int64_t i = 0; i < count; i++) {
    level.index = (uint32_t)i;
    JSValue item = JS_GetPropertyUint32(js, value, (uint32_t)i);
    int failed = JS_IsException(item)   ? -1
                 : JS_IsUndefined(item) ? hookjs_refuse(to, &level, "undefined in a list cannot cross: use null")
                                        : hookjs_encode(to, item, &level, depth + 1);
    JS_FreeValue(js, item);
    if (failed) return -1;
  }
  return 0;
}

/* Writes the count over a head of `reserved` bytes at `mark`; the content moves up when the count needs a shorter one. */
static void hookjs_close_map(hook_writer *writer, uint32_t mark, uint32_t reserved, uint32_t count) {
  if (writer->failed) return;
  uint8_t head[5];
  hook_writer short_head = {.at = head, .capacity = sizeof(head)};
  hookjs_write_count(&short_head, 0x80, count);
  uint8_t *at = writer->at + mark;
  memmove(at + short_head.bytes, at + reserved, writer->bytes - mark - reserved);
  memcpy(at, head, short_head.bytes);
  writer->bytes -= reserved - short_head.bytes;
}

static int hookjs_encode_map(const hookjs_encoder *to, JSValueConst value, const hookjs_level *outer, int depth) {
  JSPropertyEnum *names;
  uint32_t most, count = 0;
  if (JS_GetOwnPropertyNames(js, &names, &most, value, JS_GPN_STRING_MASK | JS_GPN_ENUM_ONLY) < 0) return -1;
  hookjs_level level = {outer, value, JS_ATOM_NULL, 0};
  uint32_t mark = to->writer->bytes;
  hookjs_write_count(to->writer, 0x80, most);
  uint32_t reserved = to->writer->bytes - mark;
  int failed = 0;
  for (uint32_t i = 0; i < most && !failed; i++) {
    level.key = names[i].atom;
    JSValue item = JS_GetProperty(js, value, level.key);
    if (JS_IsException(item)) failed = -1;
    if (!failed && !JS_IsUndefined(item)) { /* a key whose value is undefined is not there */
      JSValue key = JS_AtomToString(js, level.key);
      failed = JS_IsException(key) || hookjs_encode_string(to, key, &level) || hookjs_encode(to, item, &level, depth + 1);
      JS_FreeValue(js, key);
      count++;
    }
    JS_FreeValue(js, item);
  }
  JS_FreePropertyEnum(js, names, most);
  if (failed) return -1;
  if (count < most) hookjs_close_map(to->writer, mark, reserved, count);
  return 0;
}

/* "a Map cannot cross": with the name of the class that the value really is of, whatever it says of itself. */
static int hookjs_refuse_class(const hookjs_encoder *to, JSValueConst value, const hookjs_level *level) {
  char why[100];
  if (JS_IsProxy(value)) return hookjs_refuse(to, level, "a Proxy cannot cross");
  JSAtom atom = JS_GetClassName(JS_GetRuntime(js), JS_GetClassID(value));
  const char *name = JS_AtomToCString(js, atom);
  snprintf(why, sizeof(why), "%s %.40s cannot cross%s", name && strchr("AEIO", name[0]) ? "an" : "a",
           name ? name : "value of another class", JS_IsPromise(value) ? ": await it" : "");
  JS_FreeCString(js, name);
  JS_FreeAtom(js, atom);
  return hookjs_refuse(to, level, why);
}

static int hookjs_encode_object(const hookjs_encoder *to, JSValueConst value, const hookjs_level *level, int depth) {
  if (JS_IsFunction(js, value)) return hookjs_refuse(to, level, "a function cannot cross");
  if (JS_GetTypedArrayType(value) == JS_TYPED_ARRAY_UINT8) {
    size_t bytes;
    uint8_t *at = JS_GetUint8Array(js, &bytes, value);
    if (at == NULL && JS_HasException(js)) return -1; /* its buffer was detached or has shrunk */
    if (bytes <= UINT8_MAX) hook_write_head(to->writer, 0xc4, bytes, 1);
    else if (bytes <= UINT16_MAX) hook_write_head(to->writer, 0xc5, bytes, 2);
    else hook_write_head(to->writer, 0xc6, bytes, 4);
    hook_write_raw(to->writer, (hook_text){at, (uint32_t)bytes});
    return 0;
  }
  bool list = JS_IsArray(value);
  if (!list && JS_GetClassID(value) != HOOKJS_CLASS_OBJECT) return hookjs_refuse_class(to, value, level);
  for (const hookjs_level *above = level; above != NULL; above = above->outer)
    if (JS_VALUE_GET_PTR(above->container) == JS_VALUE_GET_PTR(value))
      return hookjs_refuse(to, level, "a value inside itself cannot cross");
  if (depth >= HOOKJS_ENCODE_DEPTH) return hookjs_refuse(to, level, "nests too deep to cross");
  return list ? hookjs_encode_array(to, value, level, depth) : hookjs_encode_map(to, value, level, depth);
}

/* Writes one value; -1 and an exception when it cannot cross. Room that is missing shows in the writer. */
static int hookjs_encode(const hookjs_encoder *to, JSValueConst value, const hookjs_level *level, int depth) {
  if (JS_IsString(value)) return hookjs_encode_string(to, value, level);
  if (JS_IsNumber(value)) return hookjs_encode_number(to, value, level);
  if (JS_IsObject(value)) return hookjs_encode_object(to, value, level, depth);
  if (JS_IsBool(value)) {
    hook_write_bool(to->writer, JS_ToBool(js, value));
    return 0;
  }
  if (JS_IsNull(value)) {
    hook_write_nil(to->writer);
    return 0;
  }
  if (JS_IsBigInt(value)) return hookjs_encode_bigint(to, value, level);
  return hookjs_refuse(to, level, JS_IsSymbol(value) ? "a symbol cannot cross" : "undefined cannot cross: use null");
}

#endif
