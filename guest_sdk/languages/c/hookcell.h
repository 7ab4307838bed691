/* hookcell.h: write a hookcell hook in C (guest ABI 1).
 *
 *     #include "hookcell.h"
 *
 *     HOOK_MANIFEST({"abi": 1, "name": "no-shell", "version": "1.0.0", "needs": ["toolName"]})
 *
 *     HOOK_POINT(pre_tool_call, context) {
 *       if (hook_same(hook_as_text(hook_get(context, "toolName")), hook_c("shell"))) return hook_deny("no shell here");
 *       return hook_nothing();
 *     }
 *
 * One source file a hook; include this header in it once. The parts: base.h (text, memory), value.h (reading), walk.h
 * (every item of a value), writer.h (writing), log.h.
 */
#ifndef HOOKCELL_H
#define HOOKCELL_H

#include "hookcell/base.h"
#include "hookcell/log.h"
#include "hookcell/value.h"
#include "hookcell/walk.h"
#include "hookcell/writer.h"

/* What an entry point returns: `address << 32 | bytes` of a msgpack outcome, 0 = nothing. */
typedef uint64_t hook_outcome;

/* The manifest, as JSON, in the custom section `hookcell`. By assembler, because the section attribute of clang puts a
 * variable into linear memory instead. */
#define HOOK_MANIFEST(...) HOOK_MANIFEST_TEXT(#__VA_ARGS__)
#define HOOK_MANIFEST_TEXT(json) HOOK_MANIFEST_SECTION(json)
#define HOOK_MANIFEST_SECTION(json) __asm__(".section .custom_section.hookcell,\"\",@\n.ascii " #json "\n.text\n");

/* Defines the entry point of a hook point. A context that is not well-formed msgpack becomes an error, not a decision
 * taken on half of it. */
#define HOOK_POINT(point, context)                                                                          \
  static hook_outcome hook_body_of_##point(hook_value context);                                             \
  __attribute__((export_name(#point))) hook_outcome point(const uint8_t *at, uint32_t bytes) {              \
    hook_outcome outcome = hook_body_of_##point((hook_value){at, at + bytes});                              \
    return hook_malformed ? hook_throw("ContextMalformed", "the context is not well-formed msgpack") : outcome; \
  }                                                                                                         \
  static hook_outcome hook_body_of_##point(hook_value context)

static inline hook_outcome hook_nothing(void) { return 0; }

/* The outcome `{"error": {"name", "message"}}`: the hook failed, and the host's policy says what follows. Needs no
 * memory but its own; the name is cut at 60 bytes, the message at 200. */
HOOK_ONCE hook_outcome hook_throw(const char *name, const char *message) {
  static uint8_t block[320];
  hook_writer writer = {.at = block, .capacity = sizeof(block)};
  hook_write_map(&writer, 1);
  hook_write_c(&writer, "error");
  hook_write_map(&writer, 2);
  hook_write_c(&writer, "name");
  hook_write_text(&writer, hook_cut(hook_c(name), 60));
  hook_write_c(&writer, "message");
  hook_write_text(&writer, hook_cut(hook_c(message), 200));
  return (uint64_t)(uintptr_t)writer.at << 32 | writer.bytes;
}

/* What was written, as the outcome. */
HOOK_ONCE hook_outcome hook_return(const hook_writer *writer) {
  if (writer->failed) return hook_throw("OutOfMemory", "no memory for the outcome");
  return (uint64_t)(uintptr_t)writer->at << 32 | writer->bytes;
}

/* The outcome `{"deny": reason}`. */
HOOK_ONCE hook_outcome hook_deny(const char *reason) {
  hook_writer writer = {0};
  hook_write_map(&writer, 1);
  hook_write_c(&writer, "deny");
  hook_write_c(&writer, reason);
  return hook_return(&writer);
}

#endif
