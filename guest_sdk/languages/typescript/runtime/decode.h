/* msgpack to JavaScript values. Whole numbers beyond ±2^53 become BigInt, byte strings Uint8Array. */
#ifndef HOOKJS_DECODE_H
#define HOOKJS_DECODE_H

#include "base.h"
#include "hookcell/value.h"
#include "quickjs.h"

enum { HOOKJS_CONTEXT_DEPTH = 72, HOOKJS_SAFE_BITS = 53 };

static JSContext *js;

static JSValue hookjs_decode_integer(const hook_item *item) {
  const int64_t safe = (int64_t)1 << HOOKJS_SAFE_BITS;
  if (!item->negative) {
    if (item->integer > (uint64_t)safe) return JS_NewBigUint64(js, item->integer);
    return JS_NewInt64(js, (int64_t)item->integer);
  }
  int64_t number = (int64_t)item->integer;
  return number < -safe ? JS_NewBigInt64(js, number) : JS_NewInt64(js, number);
}

/* The value at `*at`; moves `*at` behind it. An exception when memory is used up, or when what stands there is malformed or
 * nests too deep, which `hook_malformed` then says. */
static JSValue hookjs_decode(const uint8_t **at, const uint8_t *end, int depth) {
  hook_item item;
  if (!hook_read(&item, *at, end)) return JS_ThrowTypeError(js, "malformed msgpack");
  *at = item.next;
  hook_text text = hook_item_text(&item);
  switch (item.kind) {
  case HOOK_NIL: return JS_NULL;
  case HOOK_BOOL: return JS_NewBool(js, item.integer != 0);
  case HOOK_INTEGER: return hookjs_decode_integer(&item);
  case HOOK_REAL: return JS_NewFloat64(js, item.real);
  case HOOK_STRING: return JS_NewStringLen(js, (const char *)text.at, text.bytes);
  case HOOK_BYTES: return JS_NewUint8ArrayCopy(js, text.at, text.bytes);
  default: break;
  }
  if (depth >= HOOKJS_CONTEXT_DEPTH) {
    hook_malformed = true;
    return JS_ThrowTypeError(js, "msgpack nested over %d deep", HOOKJS_CONTEXT_DEPTH);
  }
  bool map = item.kind == HOOK_MAP;
  JSValue made = map ? JS_NewObject(js) : JS_NewArray(js);
  for (uint32_t i = 0; i < item.size && !JS_IsException(made); i++) {
    JSAtom key = JS_ATOM_NULL;
    if (map) {
      hook_item name;
      if (hook_read(&name, *at, end) && name.kind != HOOK_STRING) hook_malformed = true;
      if (!hook_malformed) {
        text = hook_item_text(&name);
        *at = name.next;
        key = JS_NewAtomLen(js, (const char *)text.at, text.bytes);
      }
      if (key == JS_ATOM_NULL) {
        JS_FreeValue(js, made);
        return hook_malformed ? JS_ThrowTypeError(js, "malformed msgpack") : JS_EXCEPTION;
      }
    }
    JSValue value = hookjs_decode(at, end, depth + 1);
    /* Defined, not assigned: `__proto__` is a key like any other. */
    int done = JS_IsException(value) ? -1
               : map                 ? JS_DefinePropertyValue(js, made, key, value, JS_PROP_C_W_E)
                                     : JS_DefinePropertyValueUint32(js, made, i, value, JS_PROP_C_W_E);
    JS_FreeAtom(js, key);
    if (done < 0) {
      JS_FreeValue(js, made);
      made = JS_EXCEPTION;
    }
  }
  return made;
}

#endif
