/* The floor: what an isolated call costs a C program over the very library in the wasmtime wheel.
 *
 * It is told the sandbox's own settings one by one, loads the code that the sandbox compiled (wasmtime refuses code
 * that was made under other switches), and does for each call what the sandbox does and no more: a new store, its
 * limits and fuel, a fresh instance, `hook_alloc`, the payload in, the entry point, fuel, the output out, the store
 * gone. Plain calls where the sandbox uses fibers. No C header comes with the wheel, so the few declarations are here.
 *
 *     floor LIBRARY, then one command a line on standard input, its words separated by tabs:
 *
 *     set FUNCTION WIDTH VALUE    a setting of the engine, or of its pool
 *     guest ARTIFACT ENTRY PAYLOAD MEMORY_BYTES TABLE_ELEMENTS FUEL ALLOC_FUEL    answers the guest's number
 *     answer GUEST                one call; answers the fuel it used and its output's length, then the output
 *     run GUEST WARM COUNT        answers COUNT times, nanoseconds, 64-bit little-endian
 *
 * Anything that goes wrong ends the process with a sentence on standard error.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct { uint64_t store_id; size_t private; } instance_handle;
typedef struct { uint64_t words[3]; } item_handle; /* a function's or a memory's: at most 24 bytes, read by wasmtime */
typedef struct { uint8_t kind; item_handle of; } export_item;
typedef union { int32_t i32; int64_t i64; uint8_t v128[16]; } raw_value;
typedef struct { size_t size; const char *data; } text;

/* Result, name and parameters of every function that is called. */
#define FUNCTIONS(F)                                                                                                   \
  F(void *, wasm_config_new, (void))                                                                                   \
  F(void *, wasm_engine_new_with_config, (void *))                                                                     \
  F(void *, wasmtime_pooling_allocation_config_new, (void))                                                            \
  F(void, wasmtime_pooling_allocation_strategy_set, (void *, const void *))                                            \
  F(void *, wasmtime_module_deserialize_file, (void *, const char *, void **))                                         \
  F(void *, wasmtime_linker_new, (void *))                                                                             \
  F(void *, wasmtime_linker_instantiate_pre, (const void *, const void *, void **))                                    \
  F(void *, wasmtime_instance_pre_instantiate, (const void *, void *, instance_handle *, void **))                     \
  F(bool, wasmtime_instance_export_get, (void *, const instance_handle *, const char *, size_t, export_item *))        \
  F(void *, wasmtime_store_new, (void *, void *, void (*)(void *)))                                                    \
  F(void *, wasmtime_store_context, (void *))                                                                          \
  F(void, wasmtime_store_limiter, (void *, int64_t, int64_t, int64_t, int64_t, int64_t))                               \
  F(void, wasmtime_store_delete, (void *))                                                                             \
  F(void *, wasmtime_context_set_fuel, (void *, uint64_t))                                                             \
  F(void *, wasmtime_context_get_fuel, (void *, uint64_t *))                                                           \
  F(void *, wasmtime_func_call_unchecked, (void *, const item_handle *, raw_value *, size_t, void **))                 \
  F(uint8_t *, wasmtime_memory_data, (const void *, const item_handle *))                                              \
  F(size_t, wasmtime_memory_data_size, (const void *, const item_handle *))                                            \
  F(void, wasmtime_error_message, (const void *, text *))

#define DECLARE(result, name, parameters) static result(*name) parameters;
FUNCTIONS(DECLARE)

enum { MOST_GUESTS = 64, MOST_WORDS = 9 };

typedef struct {
  void *prepared;
  char *entry;
  size_t entry_bytes;
  uint8_t *payload;
  size_t payload_bytes;
  int64_t memory_bytes, table_elements;
  uint64_t fuel, alloc_fuel;
} guest;

typedef struct { uint8_t *at; size_t room, size; uint64_t fuel; } answer;

static void fail(const char *what, const char *why) {
  fprintf(stderr, "floor: %s: %s\n", what, why);
  exit(1);
}

/* Ends the process on a wasmtime error, or on a trap where one is given. */
static void check(const char *what, void *error, void *trap) {
  text message = {0};
  if (error != NULL) wasmtime_error_message(error, &message);
  if (error != NULL) fprintf(stderr, "floor: %.*s\n", (int)message.size, message.data);
  if (error != NULL || trap != NULL) fail(what, error != NULL ? "error" : "trap");
}

/* --- the call ---------------------------------------------------------------------------------------------------- */

static uint8_t *range(void *context, const item_handle *memory, uint64_t at, uint64_t size) {
  if (at + size > wasmtime_memory_data_size(context, memory)) fail("a range", "it leaves linear memory");
  return wasmtime_memory_data(context, memory) + at;
}

static void call(void *engine, const guest *the, answer *out) {
  void *store = wasmtime_store_new(engine, NULL, NULL);
  void *context = wasmtime_store_context(store);
  wasmtime_store_limiter(store, the->memory_bytes, the->table_elements, 1, 2, 1);
  check("set_fuel", wasmtime_context_set_fuel(context, the->fuel), NULL);
  instance_handle instance;
  void *trap = NULL;
  check("instantiate", wasmtime_instance_pre_instantiate(the->prepared, context, &instance, &trap), trap);
  export_item memory, alloc, entry;
  if (!wasmtime_instance_export_get(context, &instance, "memory", 6, &memory)) fail("memory", "not exported");
  if (!wasmtime_instance_export_get(context, &instance, "hook_alloc", 10, &alloc)) fail("hook_alloc", "not exported");
  if (!wasmtime_instance_export_get(context, &instance, the->entry, the->entry_bytes, &entry))
    fail(the->entry, "not exported");

  check("set_fuel", wasmtime_context_set_fuel(context, the->alloc_fuel), NULL);
  raw_value values[2] = {{.i32 = (int32_t)the->payload_bytes}};
  check("hook_alloc", wasmtime_func_call_unchecked(context, &alloc.of, values, 1, &trap), trap);
  uint32_t address = (uint32_t)values[0].i32;
  memcpy(range(context, &memory.of, address, the->payload_bytes), the->payload, the->payload_bytes);

  check("set_fuel", wasmtime_context_set_fuel(context, the->fuel), NULL);
  values[0].i32 = (int32_t)address;
  values[1].i32 = (int32_t)the->payload_bytes;
  check(the->entry, wasmtime_func_call_unchecked(context, &entry.of, values, 2, &trap), trap);
  uint64_t packed = (uint64_t)values[0].i64;
  check("get_fuel", wasmtime_context_get_fuel(context, &out->fuel), NULL);
  out->fuel = the->fuel - out->fuel;
  out->size = packed & 0xffffffff;
  if (out->size > out->room) fail("the output", "it is too large");
  if (packed != 0) memcpy(out->at, range(context, &memory.of, packed >> 32, out->size), out->size);
  wasmtime_store_delete(store);
}

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* --- commands ---------------------------------------------------------------------------------------------------- */

typedef struct { void *library, *config, *pool, *engine; guest guests[MOST_GUESTS]; size_t count; answer out; } floor_state;

static uint64_t number(const char *word) {
  char *end;
  uint64_t value = strtoull(word, &end, 10);
  if (end == word || *end != 0) fail(word, "not a number");
  return value;
}

static const guest *guest_of(const floor_state *state, const char *word) {
  uint64_t index = number(word);
  if (index >= state->count) fail(word, "no such guest");
  return &state->guests[index];
}

static uint8_t *contents(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) fail(path, "cannot be read");
  *size = (size_t)ftell(file);
  rewind(file);
  uint8_t *bytes = malloc(*size + 1);
  if (bytes == NULL || fread(bytes, 1, *size, file) != *size) fail(path, "cannot be read");
  fclose(file);
  return bytes;
}

static void set(floor_state *state, const char *function, const char *width, uint64_t value) {
  if (state->engine != NULL) fail(function, "the engine is made already");
  void *of = strncmp(function, "wasmtime_pooling_", 17) == 0 ? state->pool : state->config;
  void *symbol = dlsym(state->library, function);
  if (symbol == NULL) fail(function, "no such function");
  if (strcmp(width, "8bit") == 0) ((void (*)(void *, bool))symbol)(of, value != 0);
  else if (strcmp(width, "32bit") == 0) ((void (*)(void *, uint32_t))symbol)(of, (uint32_t)value);
  else if (strcmp(width, "64bit") == 0) ((void (*)(void *, uint64_t))symbol)(of, value);
  else fail(width, "no such width");
}

static size_t add_guest(floor_state *state, char **words) {
  if (state->engine == NULL) {
    wasmtime_pooling_allocation_strategy_set(state->config, state->pool);
    state->engine = wasm_engine_new_with_config(state->config);
  }
  if (state->count == MOST_GUESTS) fail("guest", "there are too many");
  guest *the = &state->guests[state->count];
  void *module;
  check(words[1], wasmtime_module_deserialize_file(state->engine, words[1], &module), NULL);
  check(words[1], wasmtime_linker_instantiate_pre(wasmtime_linker_new(state->engine), module, &the->prepared), NULL);
  the->entry = strdup(words[2]);
  the->entry_bytes = strlen(words[2]);
  the->payload = contents(words[3], &the->payload_bytes);
  the->memory_bytes = (int64_t)number(words[4]);
  the->table_elements = (int64_t)number(words[5]);
  the->fuel = number(words[6]);
  the->alloc_fuel = number(words[7]);
  return state->count++;
}

static void run(floor_state *state, const guest *the, uint64_t warm, uint64_t count) {
  uint64_t *taken = malloc((count + 1) * sizeof(uint64_t));
  if (taken == NULL) fail("run", "no memory");
  for (uint64_t i = 0; i < warm; i++) call(state->engine, the, &state->out);
  for (uint64_t i = 0; i < count; i++) {
    uint64_t started = now();
    call(state->engine, the, &state->out);
    taken[i] = now() - started;
  }
  fwrite(taken, sizeof(uint64_t), count, stdout);
  free(taken);
}

int main(int argc, char **argv) {
  if (argc != 2) fail("usage", "floor LIBRARY");
  static floor_state state;
  state.library = dlopen(argv[1], RTLD_NOW);
  if (state.library == NULL) fail(argv[1], dlerror());
#define FIND(result, name, parameters)                                                                                 \
  if ((*(void **)&name = dlsym(state.library, #name)) == NULL) fail(#name, "no such function");
  FUNCTIONS(FIND)
  state.config = wasm_config_new();
  state.pool = wasmtime_pooling_allocation_config_new();
  state.out.room = 16u << 20;
  state.out.at = malloc(state.out.room);

  char *line = NULL;
  size_t room = 0;
  while (getline(&line, &room, stdin) > 0) {
    char *words[MOST_WORDS] = {0};
    size_t count = 0;
    for (char *word = strtok(line, "\t\n"); word != NULL && count < MOST_WORDS; word = strtok(NULL, "\t\n"))
      words[count++] = word;
    if (count == 4 && strcmp(words[0], "set") == 0) set(&state, words[1], words[2], number(words[3]));
    else if (count == 8 && strcmp(words[0], "guest") == 0) printf("%zu\n", add_guest(&state, words));
    else if (count == 4 && strcmp(words[0], "run") == 0)
      run(&state, guest_of(&state, words[1]), number(words[2]), number(words[3]));
    else if (count == 2 && strcmp(words[0], "answer") == 0) {
      call(state.engine, guest_of(&state, words[1]), &state.out);
      printf("%llu\t%zu\n", (unsigned long long)state.out.fuel, state.out.size);
      fwrite(state.out.at, 1, state.out.size, stdout);
    } else fail("command", count ? words[0] : "an empty line");
    fflush(stdout);
  }
  return 0;
}
