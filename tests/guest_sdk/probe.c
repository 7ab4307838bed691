/* A hook for the tests of the header alone: its metadata says what to do. */
#define HOOK_LOG_BYTES 64
#include "hookcell.h"

HOOK_MANIFEST({"abi": 1, "name": "probe", "version": "0.0.0", "pattern": "^a\\d \"q\"$", "list": [1, 2.5, true, null]})

static void write_numbers(hook_writer *writer, hook_value list) {
  hook_write_list(writer, hook_count(list));
  hook_items items = hook_items_of(list);
  while (hook_next(&items)) {
    int64_t integer;
    double number;
    if (hook_as_integer(items.value, &integer)) hook_write_integer(writer, integer);
    else if (hook_as_number(items.value, &number)) hook_write_real(writer, number);
    else if (hook_kind_of(items.value) == HOOK_BOOL) hook_write_bool(writer, hook_as_bool(items.value, false));
    else hook_write_nil(writer);
  }
}

HOOK_POINT(post_tool_call, context) {
  hook_value asked = hook_get(context, "metadata");
  hook_log_text(hook_as_text(hook_get(asked, "log")));
  hook_value number = hook_get(asked, "logged");
  int64_t logged;
  if (hook_as_integer(number, &logged)) hook_log_integer(logged);
  if (hook_get(asked, "trap").at != NULL) __builtin_trap();
  if (hook_get(asked, "throw").at != NULL)
    return hook_throw("Name", "1234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901"
                              "234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901"
                              "23456789012345678\xe2\x82\xac tail");
  hook_writer writer = {0};
  hook_write_map(&writer, 1);
  hook_write_c(&writer, "result");
  write_numbers(&writer, hook_get(asked, "numbers"));
  return hook_return(&writer);
}

HOOK_POINT(on_error, context) {
  hook_writer writer = {0};
  hook_write_map(&writer, 1);
  hook_write_c(&writer, "replace");
  hook_write_value(&writer, hook_get(context, "error"));
  return hook_return(&writer);
}
