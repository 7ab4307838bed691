/* The JavaScript engine of hookcell: QuickJS-NG as a guest of ABI 1. With an author's files in its slot it is a hook.
 *
 * What is called when, in a fresh instance: a point's export sets up what the slot holds, unless a snapshot was taken after
 * that; decodes the context; lets prelude.js call the author's method; encodes what came back.
 */
#include "base.h"

#include "decode.h"
#include "diff.h"
#include "encode.h"
#include "log.h"
#include "modules.h"

enum {
  /* Of the 1 MiB that the host gives a guest's stack, the part in linear memory (the linker's stack-size) and how much of
   * that JavaScript may use. The rest is for the C code below it, so that ordinary recursion ends in a RangeError. */
  HOOKJS_STACK_BYTES = 160 * 1024,
  /* An instance lives for one call: collect cycles when much was made, rather than early and often. */
  HOOKJS_COLLECT_BYTES = 4 * 1024 * 1024,
};

static const char hookjs_prelude_source[] = {
#embed "prelude.js"
    , 0};

static JSRuntime *runtime;
static JSValue hookjs_begin, hookjs_finish, hookjs_blame, hookjs_open;
static JSValue hookjs_description = JS_UNDEFINED;
static bool hookjs_ready;

/* --- a call's end ------------------------------------------------------------------------------------------------------ */

/* The memory is used up. The host tells that from any other trap by a memory that cannot grow, so the last pages, fewer than
 * what was wanted, are taken too. */
static _Noreturn void hookjs_out_of_memory(void) {
  while (__builtin_wasm_memory_grow(0, 1) != (size_t)-1) {}
  __builtin_trap();
}

static uint64_t hookjs_return(const hook_writer *writer) {
  if (writer->failed) hookjs_out_of_memory();
  return (uint64_t)(uintptr_t)writer->at << 32 | writer->bytes;
}

static uint64_t hookjs_error(hook_text name, hook_text message, hook_text stack) {
  hook_writer writer = {0};
  hookjs_write_count(&writer, 0x80, 1);
  hookjs_write_text(&writer, hook_c("error"));
  hookjs_write_count(&writer, 0x80, stack.bytes ? 3 : 2);
  hookjs_write_text(&writer, hook_c("name"));
  hookjs_write_text(&writer, name);
  hookjs_write_text(&writer, hook_c("message"));
  hookjs_write_text(&writer, message);
  if (stack.bytes > 0) {
    hookjs_write_text(&writer, hook_c("stack"));
    hookjs_write_text(&writer, stack);
  }
  return hookjs_return(&writer);
}

static hook_text hookjs_text_at(JSValueConst list, uint32_t index) {
  JSValue value = JS_GetPropertyUint32(js, list, index);
  size_t bytes = 0;
  const char *string = JS_ToCStringLen(js, &bytes, value);
  JS_FreeValue(js, value);
  if (string == NULL) hookjs_out_of_memory();
  return (hook_text){(const uint8_t *)string, (uint32_t)bytes}; /* freed with the instance */
}

/* The pending exception as an outcome. */
static uint64_t hookjs_fail(void) {
  if (hook_malformed) {
    return hookjs_error(hook_c("ContextMalformed"), hook_c("the context is not well-formed msgpack"), hook_c(""));
  }
  JSValue thrown = JS_GetException(js);
  /* prelude.js reads a hostile value: [name, message, stack], strings that can cross, or null when memory is used up. */
  JSValue said = JS_Call(js, hookjs_blame, JS_UNDEFINED, 1, (JSValueConst *)&thrown);
  if (!JS_IsArray(said)) hookjs_out_of_memory();
  return hookjs_error(hookjs_text_at(said, 0), hookjs_text_at(said, 1), hookjs_text_at(said, 2));
}

/* --- promises ---------------------------------------------------------------------------------------------------------- */

/* Rejected promises that nobody waits for, in their order; a handler that comes later takes its own away. */
static struct {
  JSValue promise;
  JSValue reason;
} hookjs_lost[64];
static uint32_t hookjs_lost_count;

static void hookjs_track(JSContext *context, JSValueConst promise, JSValueConst reason, bool handled, void *unused) {
  (void)unused;
  if (!handled) {
    if (hookjs_lost_count == sizeof(hookjs_lost) / sizeof(*hookjs_lost)) return; /* the first is the one that is told */
    hookjs_lost[hookjs_lost_count].promise = JS_DupValue(context, promise);
    hookjs_lost[hookjs_lost_count++].reason = JS_DupValue(context, reason);
    return;
  }
  for (uint32_t i = 0; i < hookjs_lost_count; i++)
    if (JS_VALUE_GET_PTR(hookjs_lost[i].promise) == JS_VALUE_GET_PTR(promise)) {
      hookjs_lost[i] = hookjs_lost[--hookjs_lost_count];
      return;
    }
}

/* Runs what is due, then gives the value of a promise, or `value` itself when it is none. Takes `value`. */
static JSValue hookjs_settle(JSValue value, const char *what) {
  JSContext *context;
  int ran;
  while ((ran = JS_ExecutePendingJob(runtime, &context)) > 0) {}
  if (ran < 0) return JS_EXCEPTION;
  if (JS_IsPromise(value)) {
    JSPromiseStateEnum state = JS_PromiseState(js, value);
    JSValue result = state == JS_PROMISE_PENDING ? JS_UNDEFINED : JS_PromiseResult(js, value);
    if (state == JS_PROMISE_REJECTED) return JS_Throw(js, result);
    if (state == JS_PROMISE_PENDING) {
      return JS_ThrowTypeError(js, "%s waits for a promise that never settles: a hook has no timers, files or network to wait for", what);
    }
    value = result;
  }
  /* A check that failed in the background must not pass for one that passed. */
  if (hookjs_lost_count > 0) return JS_Throw(js, JS_DupValue(js, hookjs_lost[0].reason));
  return value;
}

/* --- what prelude.js asks of C ----------------------------------------------------------------------------------------- */

static JSValue hookjs_native_log(JSContext *context, JSValueConst self, int count, JSValueConst *given) {
  (void)self, (void)count;
  size_t bytes;
  const char *text = JS_ToCStringLen(context, &bytes, given[0]);
  if (text == NULL) return JS_EXCEPTION;
  hookjs_log_entry((hook_text){(const uint8_t *)text, (uint32_t)bytes});
  JS_FreeCString(context, text);
  return JS_UNDEFINED;
}

/* copy(value, place): the value as it is now, as it would cross; throws where it could not. */
static JSValue hookjs_native_copy(JSContext *context, JSValueConst self, int count, JSValueConst *given) {
  (void)self, (void)count;
  const char *place = JS_ToCString(context, given[1]);
  if (place == NULL) return JS_EXCEPTION;
  hook_writer writer = {0};
  hookjs_encoder to = {&writer, place};
  int failed = hookjs_encode(&to, given[0], NULL, 0);
  JS_FreeCString(context, place);
  JSValue copied = JS_EXCEPTION;
  if (writer.failed) {
    copied = JS_ThrowOutOfMemory(context);
  } else if (!failed) {
    const uint8_t *at = writer.at;
    copied = hookjs_decode(&at, writer.at + writer.bytes, 0);
  }
  free(writer.at);
  return copied;
}

static JSValue hookjs_native_to_utf8(JSContext *context, JSValueConst self, int count, JSValueConst *given) {
  (void)self, (void)count;
  size_t bytes;
  const char *text = JS_ToCStringLen(context, &bytes, given[0]);
  if (text == NULL) return JS_EXCEPTION;
  JSValue made = JS_NewUint8ArrayCopy(context, (const uint8_t *)text, bytes);
  JS_FreeCString(context, text);
  return made;
}

/* fromUtf8(bytes, fatal): a string; null when they are not UTF-8 and `fatal` is set. */
static JSValue hookjs_native_from_utf8(JSContext *context, JSValueConst self, int count, JSValueConst *given) {
  (void)self, (void)count;
  size_t bytes;
  uint8_t *at = JS_GetUint8Array(context, &bytes, given[0]);
  if (at == NULL && JS_HasException(context)) return JS_EXCEPTION;
  if (JS_ToBool(context, given[1]) && !hook_is_utf8((hook_text){at, (uint32_t)bytes})) return JS_NULL;
  return JS_NewStringLen(context, (const char *)at, bytes);
}

static const JSCFunctionListEntry hookjs_natives[] = {
    JS_CFUNC_DEF("log", 1, hookjs_native_log),
    JS_CFUNC_DEF("copy", 2, hookjs_native_copy),
    JS_CFUNC_DEF("toUtf8", 1, hookjs_native_to_utf8),
    JS_CFUNC_DEF("fromUtf8", 2, hookjs_native_from_utf8),
};

/* --- setting up -------------------------------------------------------------------------------------------------------- */

static void hookjs_start_engine(void) {
  runtime = JS_NewRuntime();
  if (runtime == NULL) __builtin_trap();
  JS_SetMaxStackSize(runtime, HOOKJS_STACK_BYTES);
  JS_SetGCThreshold(runtime, HOOKJS_COLLECT_BYTES);
  JS_SetModuleLoaderFunc(runtime, hookjs_normalize, hookjs_load, NULL);
  JS_SetHostPromiseRejectionTracker(runtime, hookjs_track, NULL);
  js = JS_NewContext(runtime);
  if (js == NULL) __builtin_trap();
  JSValue natives = JS_NewObject(js);
  JS_SetPropertyFunctionList(js, natives, hookjs_natives, sizeof(hookjs_natives) / sizeof(*hookjs_natives));
  JSValue prelude = JS_Eval(js, hookjs_prelude_source, sizeof(hookjs_prelude_source) - 1, "hookcell:prelude", JS_EVAL_TYPE_GLOBAL);
  JSValue made = JS_Call(js, prelude, JS_UNDEFINED, 1, (JSValueConst *)&natives);
  if (JS_IsException(made)) __builtin_trap(); /* our own code: a test would see it */
  hookjs_open = JS_GetPropertyStr(js, made, "open");
  hookjs_begin = JS_GetPropertyStr(js, made, "begin");
  hookjs_finish = JS_GetPropertyStr(js, made, "finish");
  hookjs_blame = JS_GetPropertyStr(js, made, "blame");
  hookjs_sdk = JS_GetPropertyStr(js, made, "sdk");
}

/* Runs the author's modules and takes the entry's default export for the hook. False and an exception when that fails. */
static bool hookjs_set_up(void) {
  if (hookjs_ready) return true;
  if (runtime == NULL) hookjs_start_engine();
  hook_text path, text;
  hook_items files = hookjs_files();
  if (!hookjs_next_file(&files, &path, &text)) {
    JS_ThrowTypeError(js, "the engine holds no hook: its source slot is empty");
    return false;
  }
  char *name = js_strndup(js, (const char *)path.at, path.bytes);
  JSValue module = name == NULL ? JS_EXCEPTION : hookjs_compile(js, text, name);
  js_free(js, name);
  if (JS_IsException(module)) return false;
  JSModuleDef *entry = JS_VALUE_GET_PTR(module);
  JSValue ran = JS_EvalFunction(js, module);
  if (!JS_IsException(ran)) ran = hookjs_settle(ran, "the module");
  if (JS_IsException(ran)) return false;
  JS_FreeValue(js, ran);
  JSValue exports = JS_GetModuleNamespace(js, entry);
  if (JS_IsException(exports)) return false;
  hookjs_description = JS_Call(js, hookjs_open, JS_UNDEFINED, 1, (JSValueConst *)&exports);
  JS_FreeValue(js, exports);
  if (JS_IsException(hookjs_description)) return false;
  hookjs_ready = true;
  return true;
}

/* Build time, and removed there. The engine that ships is a snapshot taken after `hookcell_start`, so that no hook pays for
 * prelude.js; a hook is one taken after `hookcell_setup`, which returns what the hook says of itself, or its error. */
void EXPORT(hookcell_start)(void) { hookjs_start_engine(); }

uint64_t EXPORT(hookcell_setup)(void) {
  if (!hookjs_set_up()) return hookjs_fail();
  hook_writer writer = {0};
  hookjs_encoder to = {&writer, "hook"};
  if (hookjs_encode(&to, hookjs_description, NULL, 0)) return hookjs_fail();
  return hookjs_return(&writer);
}

/* --- a call ------------------------------------------------------------------------------------------------------------ */

/* What prelude.js gives back, as an outcome. Takes `plan`, an array: the outcome's map (or what the author returned
 * instead of one), and the fields of the context that may have been changed. */
static uint64_t hookjs_outcome(hook_value context, JSValue plan) {
  JSValue fields = JS_GetPropertyUint32(js, plan, 1);
  JSPropertyEnum *names;
  uint32_t count;
  if (JS_GetOwnPropertyNames(js, &names, &count, fields, JS_GPN_STRING_MASK) < 0) return hookjs_fail();
  hook_writer patch = {0}, storage = {0}, returned = {0};
  hookjs_diff diff = {.out = &patch};
  for (uint32_t i = 0; i < count; i++) {
    const char *name = JS_AtomToCString(js, names[i].atom);
    hook_value was = hook_get(context, name);
    hook_writer now = {0};
    hookjs_encoder to = {&now, name};
    if (hookjs_encode(&to, JS_GetProperty(js, fields, names[i].atom), NULL, 0)) return hookjs_fail();
    if (now.failed) return hookjs_return(&now);
    hook_value is = {now.at, now.at + now.bytes};
    if (strcmp(name, "storage") == 0) {
      if (!hookjs_equal(was, is)) storage = now;
    } else {
      hookjs_diff_field(&diff, hook_c(name), was, is);
    }
    if (storage.at != now.at) free(now.at);
    JS_FreeCString(js, name);
  }
  hookjs_encoder to = {&returned, "outcome"};
  if (hookjs_encode(&to, JS_GetPropertyUint32(js, plan, 0), NULL, 0)) return hookjs_fail();
  if (patch.failed || returned.failed) hookjs_out_of_memory();
  hook_value outcome = {returned.at, returned.at + returned.bytes};
  hook_item head;
  hook_read_value(&head, outcome);
  if (head.kind != HOOK_MAP) return hookjs_return(&returned); /* the host says what is wrong with it */
  uint32_t pairs = head.size + (diff.operations > 0) + (storage.at != NULL);
  if (pairs == 0) return 0;
  if (pairs == head.size) return hookjs_return(&returned);
  if ((diff.operations > 0 && hook_get(outcome, "patch").at) || (storage.at && hook_get(outcome, "storage").at)) {
    JS_ThrowTypeError(js, "outcome: return a patch or storage of your own, or change ctx; not both");
    return hookjs_fail();
  }
  hook_writer whole = {0};
  hookjs_write_count(&whole, 0x80, pairs);
  hook_write_raw(&whole, (hook_text){head.next, (uint32_t)(outcome.end - head.next)});
  if (diff.operations > 0) {
    hookjs_write_text(&whole, hook_c("patch"));
    hookjs_write_count(&whole, 0x90, diff.operations);
    hook_write_raw(&whole, (hook_text){patch.at, patch.bytes});
  }
  if (storage.at != NULL) {
    hookjs_write_text(&whole, hook_c("storage"));
    hook_write_raw(&whole, (hook_text){storage.at, storage.bytes});
  }
  return hookjs_return(&whole);
}

static uint64_t hookjs_call(const char *point, const char *method, const uint8_t *context, uint32_t bytes) {
  if (!hookjs_set_up()) return hookjs_fail();
  const uint8_t *at = context;
  JSValue given[2] = {JS_NewString(js, point), hookjs_decode(&at, context + bytes, 0)};
  if (JS_IsException(given[1])) return hookjs_fail();
  if (at != context + bytes || hook_kind_of((hook_value){context, context + bytes}) != HOOK_MAP) {
    hook_malformed = true;
    return hookjs_fail();
  }
  JSValue value = JS_Call(js, hookjs_begin, JS_UNDEFINED, 2, (JSValueConst *)given);
  if (!JS_IsException(value)) value = hookjs_settle(value, method);
  if (JS_IsException(value)) return hookjs_fail();
  JSValue plan = JS_Call(js, hookjs_finish, JS_UNDEFINED, 1, (JSValueConst *)&value);
  if (JS_IsException(plan)) return hookjs_fail();
  return hookjs_outcome((hook_value){context, context + bytes}, plan);
}

#define POINT(name, method) \
  uint64_t EXPORT(name)(const uint8_t *context, uint32_t bytes) { return hookjs_call(#name, #method, context, bytes); }

POINT(pre_tool_call, preToolCall)
POINT(post_tool_call, postToolCall)
POINT(pre_generate, preGenerate)
POINT(post_generate, postGenerate)
POINT(before_prompt, beforePrompt)
POINT(before_tool, beforeTool)
POINT(after_tool, afterTool)
POINT(after_response, afterResponse)
POINT(on_error, onError)
