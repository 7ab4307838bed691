;; The smallest guests. Memory starts at one page and grows as the payload asks, as an allocator's would: wasmtime clears
;; every page that an instance has before the next one gets it, 1.4 µs each, so that a larger guest has a higher floor.
(module
  (memory (export "memory") 1)
  ;; Room for the payload, and for as much again behind it.
  (func (export "hook_alloc") (param $size i32) (result i32) (local $missing i32)
    (local.set $missing
      (i32.sub
        (i32.shr_u (i32.add (i32.shl (local.get $size) (i32.const 1)) (i32.const 0x103ff)) (i32.const 16))
        (memory.size)))
    (if (i32.gt_s (local.get $missing) (i32.const 0))
      (then (if (i32.eq (memory.grow (local.get $missing)) (i32.const -1)) (then (return (i32.const 0))))))
    (i32.const 1024))
  ;; The payload is the output.
  (func (export "echo") (param i32 i32) (result i64)
    (i64.or (i64.shl (i64.extend_i32_u (local.get 0)) (i64.const 32)) (i64.extend_i32_u (local.get 1))))
  ;; The payload, copied: reads each byte of it and writes as many.
  (func (export "copy") (param $at i32) (param $size i32) (result i64) (local $to i32)
    (local.set $to (i32.add (local.get $at) (local.get $size)))
    (memory.copy (local.get $to) (local.get $at) (local.get $size))
    (i64.or (i64.shl (i64.extend_i32_u (local.get $to)) (i64.const 32)) (i64.extend_i32_u (local.get $size))))
  ;; As many rounds of a loop as the payload's first four bytes say, then nothing.
  (func (export "busy") (param $at i32) (param $size i32) (result i64) (local $left i32)
    (local.set $left (i32.load (local.get $at)))
    (loop $again
      (local.set $left (i32.sub (local.get $left) (i32.const 1)))
      (br_if $again (i32.gt_s (local.get $left) (i32.const 0))))
    (i64.const 0))
)
