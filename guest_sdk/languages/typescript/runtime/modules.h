/* The author's files: the slot that the builder fills, and the loader that resolves imports in it and nowhere else. */
#ifndef HOOKJS_MODULES_H
#define HOOKJS_MODULES_H

#include "base.h"
#include "hookcell/value.h"
#include "quickjs.h"

#include <stdio.h>

enum { HOOKJS_SOURCE_BYTES = 1 << 20, HOOKJS_PATH_BYTES = 512 };

/* The exported global `hookcell_source` is the address of this: a length, and msgpack [[path, text], …], the entry first.
 * One segment of data there makes the engine a hook. */
__attribute__((used, visibility("default"))) struct {
  uint32_t bytes;
  uint8_t content[HOOKJS_SOURCE_BYTES - 4];
} hookcell_source;

/* The module `hookcell`: what an author imports beside files of the project. */
#define HOOKJS_SDK "hookcell"

static JSValue hookjs_sdk = JS_UNDEFINED; /* an object; each of its properties is an export */

static hook_items hookjs_files(void) {
  bool filled = hookcell_source.bytes > 0 && hookcell_source.bytes <= sizeof(hookcell_source.content);
  if (!filled) return hook_items_of((hook_value){NULL, NULL});
  return hook_items_of((hook_value){hookcell_source.content, hookcell_source.content + hookcell_source.bytes});
}

/* Path and text of the next file; false behind the last. */
static bool hookjs_next_file(hook_items *files, hook_text *path, hook_text *text) {
  if (!hook_next(files)) return false;
  hook_items pair = hook_items_of(files->value);
  if (!hook_next(&pair)) return false;
  *path = hook_as_text(pair.value);
  if (!hook_next(&pair)) return false;
  *text = hook_as_text(pair.value);
  return path->at != NULL && text->at != NULL;
}

static bool hookjs_find_file(hook_text wanted, hook_text *text) {
  hook_text path;
  for (hook_items files = hookjs_files(); hookjs_next_file(&files, &path, text);)
    if (hook_same(path, wanted)) return true;
  return false;
}

/* Joins a relative specifier to the folder of `base`; false when it leaves the project or is too long. */
static bool hookjs_join(char *out, const char *base, const char *specifier) {
  const char *slash = strrchr(base, '/');
  size_t used = slash ? (size_t)(slash - base) : 0;
  if (used >= HOOKJS_PATH_BYTES) return false;
  memcpy(out, base, used);
  while (*specifier) {
    const char *end = strchr(specifier, '/');
    size_t bytes = end ? (size_t)(end - specifier) : strlen(specifier);
    if (bytes == 2 && memcmp(specifier, "..", 2) == 0) {
      if (used == 0) return false;
      while (used > 0 && out[--used] != '/') {}
    } else if (bytes > 0 && !(bytes == 1 && *specifier == '.')) {
      if (used + 1 + bytes >= HOOKJS_PATH_BYTES - 16) return false;
      if (used > 0) out[used++] = '/';
      memcpy(out + used, specifier, bytes);
      used += bytes;
    }
    specifier += bytes + (end != NULL);
  }
  out[used] = 0;
  return true;
}

/* Where a path may lead, in this order; the builder's `_candidates` is the same list. */
static bool hookjs_resolve(char *path) {
  static const char *const endings[] = {"", ".ts", ".js", ".json", "/index.ts", "/index.js"};
  hook_text text;
  size_t bytes = strlen(path);
  for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
    strcpy(path + bytes, endings[i]); /* hookjs_join left room */
    if (hookjs_find_file(hook_c(path), &text)) return true;
  }
  path[bytes] = 0;
  if (bytes > 3 && strcmp(path + bytes - 3, ".js") == 0) { /* TypeScript's own way to import x.ts */
    strcpy(path + bytes - 3, ".ts");
    if (hookjs_find_file(hook_c(path), &text)) return true;
    strcpy(path + bytes - 3, ".js");
  }
  return false;
}

static char *hookjs_normalize(JSContext *context, const char *base, const char *specifier, void *unused) {
  (void)unused;
  char path[HOOKJS_PATH_BYTES];
  if (strcmp(specifier, HOOKJS_SDK) == 0) return js_strdup(context, specifier);
  if (strncmp(specifier, "./", 2) != 0 && strncmp(specifier, "../", 3) != 0) {
    JS_ThrowTypeError(context, "%s: cannot import \"%.100s\": a hook has its own files (\"./x\") and \"" HOOKJS_SDK "\", nothing else",
                      base, specifier);
    return NULL;
  }
  if (!hookjs_join(path, base, specifier)) {
    JS_ThrowTypeError(context, "%s: cannot import \"%.100s\": it leaves the hook's folder", base, specifier);
    return NULL;
  }
  if (!hookjs_resolve(path)) {
    JS_ThrowTypeError(context, "%s: cannot import \"%.100s\": no such file was built in", base, specifier);
    return NULL;
  }
  return js_strdup(context, path);
}

static int hookjs_fill_sdk(JSContext *context, JSModuleDef *module) {
  JSPropertyEnum *names;
  uint32_t count;
  if (JS_GetOwnPropertyNames(context, &names, &count, hookjs_sdk, JS_GPN_STRING_MASK) < 0) return -1;
  for (uint32_t i = 0; i < count; i++) {
    const char *name = JS_AtomToCString(context, names[i].atom);
    if (name != NULL) JS_SetModuleExport(context, module, name, JS_GetProperty(context, hookjs_sdk, names[i].atom));
    JS_FreeCString(context, name);
  }
  JS_FreePropertyEnum(context, names, count);
  return 0;
}

static JSModuleDef *hookjs_load_sdk(JSContext *context) {
  JSPropertyEnum *names;
  uint32_t count;
  JSModuleDef *module = JS_NewCModule(context, HOOKJS_SDK, hookjs_fill_sdk);
  if (module == NULL || JS_GetOwnPropertyNames(context, &names, &count, hookjs_sdk, JS_GPN_STRING_MASK) < 0) return NULL;
  for (uint32_t i = 0; i < count; i++) {
    const char *name = JS_AtomToCString(context, names[i].atom);
    if (name != NULL) JS_AddModuleExport(context, module, name);
    JS_FreeCString(context, name);
  }
  JS_FreePropertyEnum(context, names, count);
  return module;
}

static int hookjs_fill_json(JSContext *context, JSModuleDef *module) {
  JSAtom atom = JS_GetModuleName(context, module);
  const char *path = JS_AtomToCString(context, atom);
  hook_text text;
  JSValue value = JS_EXCEPTION;
  if (path != NULL && hookjs_find_file(hook_c(path), &text)) {
    char *copy = js_strndup(context, (const char *)text.at, text.bytes); /* the parser wants a 0 behind it */
    if (copy != NULL) value = JS_ParseJSON(context, copy, text.bytes, path);
    js_free(context, copy);
  }
  JS_FreeCString(context, path);
  JS_FreeAtom(context, atom);
  return JS_IsException(value) ? -1 : JS_SetModuleExport(context, module, "default", value);
}

/* A file as a module, not yet run. */
static JSValue hookjs_compile(JSContext *context, hook_text text, const char *path) {
  char *copy = js_strndup(context, (const char *)text.at, text.bytes);
  if (copy == NULL) return JS_EXCEPTION;
  JSValue module = JS_Eval(context, copy, text.bytes, path, JS_EVAL_TYPE_MODULE | JS_EVAL_FLAG_COMPILE_ONLY);
  js_free(context, copy);
  return module;
}

static JSModuleDef *hookjs_load(JSContext *context, const char *path, void *unused) {
  (void)unused;
  hook_text text;
  if (strcmp(path, HOOKJS_SDK) == 0) return hookjs_load_sdk(context);
  if (!hookjs_find_file(hook_c(path), &text)) return NULL;
  size_t bytes = strlen(path);
  if (bytes > 5 && strcmp(path + bytes - 5, ".json") == 0) {
    JSModuleDef *json = JS_NewCModule(context, path, hookjs_fill_json);
    if (json != NULL) JS_AddModuleExport(context, json, "default");
    return json;
  }
  JSValue module = hookjs_compile(context, text, path);
  if (JS_IsException(module)) return NULL;
  JSModuleDef *made = JS_VALUE_GET_PTR(module);
  JS_FreeValue(context, module); /* the context holds it */
  return made;
}

#endif
