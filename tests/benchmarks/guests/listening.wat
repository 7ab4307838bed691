;; A hook that takes its whole context and says nothing: what the engine's side of a point costs.
(module
  (memory (export "memory") 1)
  ;; Room for the payload.
  (func (export "hook_alloc") (param $size i32) (result i32) (local $missing i32)
    (local.set $missing
      (i32.sub
        (i32.shr_u (i32.add (local.get $size) (i32.const 0x103ff)) (i32.const 16))
        (memory.size)))
    (if (i32.gt_s (local.get $missing) (i32.const 0))
      (then (if (i32.eq (memory.grow (local.get $missing)) (i32.const -1)) (then (return (i32.const 0))))))
    (i32.const 1024))
  (func (export "pre_tool_call") (param i32 i32) (result i64) (i64.const 0))
)
