/* The few calls that the C library would make to a host, answered here with "no", so that the module imports nothing.
 * The clock stands still: prelude.js gives JavaScript the time of the context, or none. */
#include <stddef.h>
#include <stdint.h>
#include <wasi/api.h>

#define DENY(name) __wasi_errno_t name

DENY(__wasi_clock_time_get)(__wasi_clockid_t clock, __wasi_timestamp_t precision, __wasi_timestamp_t *time) {
  (void)clock, (void)precision;
  *time = 0;
  return 0;
}
DENY(__wasi_fd_close)(__wasi_fd_t file) { (void)file; return __WASI_ERRNO_BADF; }
DENY(__wasi_fd_fdstat_get)(__wasi_fd_t file, __wasi_fdstat_t *stat) { (void)file, (void)stat; return __WASI_ERRNO_BADF; }
DENY(__wasi_fd_seek)(__wasi_fd_t file, __wasi_filedelta_t offset, __wasi_whence_t whence, __wasi_filesize_t *size) {
  (void)file, (void)offset, (void)whence, (void)size;
  return __WASI_ERRNO_BADF;
}
DENY(__wasi_fd_write)(__wasi_fd_t file, const __wasi_ciovec_t *pieces, size_t count, __wasi_size_t *written) {
  (void)file, (void)pieces, (void)count, (void)written;
  return __WASI_ERRNO_BADF;
}
DENY(__wasi_environ_get)(uint8_t **environment, uint8_t *text) { (void)environment, (void)text; return 0; }
DENY(__wasi_environ_sizes_get)(__wasi_size_t *count, __wasi_size_t *bytes) {
  *count = *bytes = 0;
  return 0;
}
_Noreturn void __wasi_proc_exit(__wasi_exitcode_t code) {
  (void)code;
  __builtin_trap();
}
int close(int file) { (void)file; return -1; } /* zig's own calls the import directly */
