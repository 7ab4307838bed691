/* Writing the outcome: msgpack into a buffer that grows as needed. */
#ifndef HOOKCELL_WRITER_H
#define HOOKCELL_WRITER_H

#include "value.h"

/* Start with `hook_writer writer = {0};`. Running out of memory is remembered, and `hook_return` says it. */
typedef struct {
  uint8_t *at;
  uint32_t bytes;
  uint32_t capacity;
  bool failed;
} hook_writer;

/* Room for `bytes` more; NULL when there is none. */
HOOK_ONCE uint8_t *hook_room(hook_writer *writer, uint32_t bytes) {
  if (writer->failed) return NULL;
  uint64_t needed = (uint64_t)writer->bytes + bytes;
  if (needed > writer->capacity) {
    uint64_t wanted = needed < 2 * (uint64_t)writer->capacity ? 2 * (uint64_t)writer->capacity : needed;
    if (wanted < 256) wanted = 256;
    void *wider = wanted > UINT32_MAX ? NULL : hook_widen(writer->at, writer->capacity, (uint32_t)wanted);
    if (wider == NULL && needed <= UINT32_MAX) { /* twice as much was too much: try what is needed */
      wanted = needed;
      wider = hook_widen(writer->at, writer->capacity, (uint32_t)wanted);
    }
    if (wider == NULL) {
      writer->failed = true;
      return NULL;
    }
    writer->at = wider;
    writer->capacity = (uint32_t)wanted;
  }
  uint8_t *room = writer->at + writer->bytes;
  writer->bytes += bytes;
  return room;
}

/* Raw bytes: encoded values, or a piece of a text that is open. */
HOOK_ONCE void hook_write_raw(hook_writer *writer, hook_text raw) {
  uint8_t *room = hook_room(writer, raw.bytes);
  if (room != NULL) __builtin_memcpy(room, raw.at, raw.bytes);
}

HOOK_ONCE void hook_write_head(hook_writer *writer, uint8_t head, uint64_t number, uint32_t width) {
  uint8_t *room = hook_room(writer, 1 + width);
  if (room == NULL) return;
  *room++ = head;
  while (width-- > 0) *room++ = (uint8_t)(number >> 8 * width);
}

static inline void hook_write_nil(hook_writer *writer) { hook_write_head(writer, 0xc0, 0, 0); }

static inline void hook_write_bool(hook_writer *writer, bool yes) { hook_write_head(writer, yes ? 0xc3 : 0xc2, 0, 0); }

static inline void hook_write_integer(hook_writer *writer, int64_t number) {
  if (number >= -32 && number < 128) hook_write_head(writer, (uint8_t)number, 0, 0);
  else if (number >= INT32_MIN && number <= INT32_MAX) hook_write_head(writer, 0xd2, (uint64_t)number, 4);
  else hook_write_head(writer, 0xd3, (uint64_t)number, 8);
}

static inline void hook_write_real(hook_writer *writer, double number) {
  union { double real; uint64_t bits; } pair = {number};
  hook_write_head(writer, 0xcb, pair.bits, 8);
}

HOOK_ONCE void hook_write_text(hook_writer *writer, hook_text text) {
  if (text.bytes < 32) hook_write_head(writer, (uint8_t)(0xa0 | text.bytes), 0, 0);
  else hook_write_head(writer, 0xdb, text.bytes, 4);
  hook_write_raw(writer, text);
}

static inline void hook_write_c(hook_writer *writer, const char *string) { hook_write_text(writer, hook_c(string)); }

/* A text in pieces: `uint32_t mark = hook_text_begin(&w); hook_write_raw(&w, piece)…; hook_text_end(&w, mark);` */
static inline uint32_t hook_text_begin(hook_writer *writer) {
  hook_write_head(writer, 0xdb, 0, 4);
  return writer->bytes;
}

static inline void hook_text_end(hook_writer *writer, uint32_t mark) {
  if (writer->failed) return;
  uint32_t length = writer->bytes - mark;
  for (uint32_t i = 0; i < 4; i++) writer->at[mark - 1 - i] = (uint8_t)(length >> 8 * i);
}

/* A list of `count` items, which the caller writes next. */
static inline void hook_write_list(hook_writer *writer, uint32_t count) {
  if (count < 16) hook_write_head(writer, (uint8_t)(0x90 | count), 0, 0);
  else hook_write_head(writer, 0xdd, count, 4);
}

/* A map of `count` pairs, which the caller writes next: key, value, key, value… */
static inline void hook_write_map(hook_writer *writer, uint32_t count) {
  if (count < 16) hook_write_head(writer, (uint8_t)(0x80 | count), 0, 0);
  else hook_write_head(writer, 0xdf, count, 4);
}

/* A value of the context, as it stands there. */
static inline void hook_write_value(hook_writer *writer, hook_value value) { hook_write_raw(writer, hook_span(value)); }

#endif
