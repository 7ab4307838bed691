"""One call: what goes in, what comes out, and every way in which a guest can fail."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import wasmtime

from hookcell_sandbox import (
    AdmissionPolicy,
    DeadlineExceeded,
    EngineSettings,
    FuelExhausted,
    GuestError,
    GuestTrap,
    InputTooLarge,
    Limits,
    MemoryExceeded,
    ModuleLimits,
    ModuleRejected,
    OutputTooLarge,
    Program,
    ProtocolViolation,
    Sandbox,
)

Load = Callable[[str], Program]
PAGE = 65_536
MODULES = Path(__file__).parents[2] / "fixtures" / "modules"
ENDLESS = Limits(fuel=2**50, deadline_ms=30)
GO = AdmissionPolicy(entry_points=frozenset({"go"}))
SEGMENTS = """
(module (memory (export "memory") {pages}) {data}
  (func (export "hook_alloc") (param i32) (result i32) (local i32)
    (loop $again ;; 40,000 fuel
      (local.set 1 (i32.add (local.get 1) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get 1) (i32.const 5000))))
    (i32.const 1024))
  (func (export "go") (param i32 i32) (result i64) (i64.const 0)))
"""


def number(size: int) -> bytes:
    return size.to_bytes(4, "little")


class TestCompletion:
    def test_output_is_the_bytes_that_the_guest_points_at(self, sandbox: Sandbox, load: Load) -> None:
        assert sandbox.run_sync(load("plain"), "echo", b"payload").output == b"payload"

    def test_zero_is_nothing_and_an_address_with_no_bytes_is_an_empty_output(
        self, sandbox: Sandbox, load: Load
    ) -> None:
        assert sandbox.run_sync(load("plain"), "nothing", b"x").output is None
        assert sandbox.run_sync(load("plain"), "empty", b"x").output == b""

    def test_an_empty_payload_crosses(self, sandbox: Sandbox, load: Load) -> None:
        assert sandbox.run_sync(load("plain"), "echo", b"").output == b""

    def test_fuel_used_is_the_guests_own_and_the_same_each_time(self, sandbox: Sandbox, load: Load) -> None:
        used = {sandbox.run_sync(load("plain"), "work", b"x").fuel_used for _ in range(5)}
        assert len(used) == 1
        assert 1_000_000 < used.pop() < 5_000_000

    def test_initialize_runs_first_and_on_the_calls_fuel(self, sandbox: Sandbox, load: Load) -> None:
        done = sandbox.run_sync(load("start"), "echo", b"hello")
        assert done.output == b"hello"
        assert done.fuel_used > 500_000

    def test_the_elapsed_time_is_reported(self, sandbox: Sandbox, load: Load) -> None:
        assert sandbox.run_sync(load("plain"), "echo", b"x").elapsed_us > 0

    def test_a_module_loaded_under_two_policies_runs_the_entry_points_of_each(self, sandbox: Sandbox) -> None:
        wasm = bytes(wasmtime.wat2wasm((MODULES / "plain.wat").read_text("utf-8")))
        first, second = (
            sandbox.load(wasm, AdmissionPolicy(entry_points=frozenset({name}))) for name in ("echo", "empty")
        )
        assert sandbox.run_sync(first, "echo", b"x").output == b"x"
        assert sandbox.run_sync(second, "empty", b"x").output == b""
        with pytest.raises(ValueError, match="no entry point"):
            sandbox.run_sync(first, "empty", b"x")

    @pytest.mark.anyio
    @pytest.mark.parametrize("payload", [bytearray(b"x"), memoryview(b"x"), "x", None, 1])
    async def test_a_payload_that_is_not_bytes_is_the_callers_mistake(
        self, sandbox: Sandbox, load: Load, payload: Any
    ) -> None:
        with pytest.raises(TypeError, match="give bytes"):
            sandbox.run_sync(load("plain"), "echo", payload)
        with pytest.raises(TypeError, match="give bytes"):
            await sandbox.run(load("plain"), "echo", payload)
        assert sandbox.taken == 0

    def test_an_unknown_entry_point_is_the_callers_mistake(self, sandbox: Sandbox, load: Load) -> None:
        with pytest.raises(ValueError, match="no entry point 'missing'"):
            sandbox.run_sync(load("plain"), "missing", b"x")


class TestFuel:
    def test_n_is_enough_and_one_less_is_not(self, sandbox: Sandbox, load: Load) -> None:
        plain = load("plain")
        used = sandbox.run_sync(plain, "work", b"").fuel_used
        enough = Limits(fuel=used, fuel_per_kib=0)
        assert sandbox.run_sync(plain, "work", b"", enough).fuel_used == used
        # wasmtime checks at loop heads, so the last few units can be owed: one turn of the loop less is too little.
        with pytest.raises(FuelExhausted) as caught:
            sandbox.run_sync(plain, "work", b"", Limits(fuel=used - 50, fuel_per_kib=0))
        assert caught.value.code == "fuel"
        assert caught.value.fuel_used == used - 50

    def test_a_looping_guest_is_reported_by_code_with_what_to_do(self, sandbox: Sandbox, load: Load) -> None:
        """Public report (a): a loop is a fuel or deadline error, never an internal one."""
        with pytest.raises(FuelExhausted, match=r"spin used all 100_000 fuel; raise its fuel or simplify the hook"):
            sandbox.run_sync(load("greedy"), "spin", b"", Limits(fuel=100_000))

    def test_a_big_payload_brings_its_own_share(self, sandbox: Sandbox, load: Load) -> None:
        """Public report (f): 100 kB in, a tiny base budget: the share for each KiB covers it."""
        payload = b"x" * 100_000
        tiny = Limits(fuel=1_000)
        assert sandbox.run_sync(load("plain"), "work", payload, tiny).output == payload
        with pytest.raises(FuelExhausted):
            sandbox.run_sync(load("plain"), "work", payload, Limits(fuel=1_000, fuel_per_kib=0))

    def test_initialize_that_never_ends_is_stopped(self, sandbox: Sandbox, load: Load) -> None:
        with pytest.raises(FuelExhausted, match="_initialize used all"):
            sandbox.run_sync(load("start_spins"), "echo", b"", Limits(fuel=100_000))

    def test_hook_alloc_has_a_small_budget_of_its_own(self, sandbox: Sandbox, load: Load) -> None:
        with pytest.raises(FuelExhausted, match="hook_alloc used all 50_020 fuel") as caught:
            sandbox.run_sync(load("alloc_spins"), "echo", b"x" * 10)
        assert caught.value.entry == "hook_alloc"

    def test_no_fuel_at_all_stops_the_first_instruction(self, sandbox: Sandbox, load: Load) -> None:
        with pytest.raises(FuelExhausted):
            sandbox.run_sync(load("greedy"), "spin", b"", Limits(fuel=0, fuel_per_kib=0))

    @pytest.mark.parametrize("copied", [30_000, 100_000])
    def test_segments_that_are_copied_at_each_call_are_billed_to_the_call_and_not_to_hook_alloc(
        self, copied: int
    ) -> None:
        """wasmtime lays a memory out ahead up to 16 MiB; in a larger one with a hole it copies, for fuel."""
        larger = 64 * 1024 * 1024
        data = f'(data (i32.const 0) "{"x" * copied}") (data (i32.const 60000000) "y")'
        with Sandbox(settings=EngineSettings(slots=1, memory_bytes=larger)) as sandbox:
            policy = dataclasses.replace(GO, limits=ModuleLimits(memory_bytes=larger))
            program = sandbox.load(bytes(wasmtime.wat2wasm(SEGMENTS.format(pages=1_000, data=data))), policy)
            limits = Limits(memory_bytes=larger)
            used = sandbox.run_sync(program, "go", b"payload", limits).fuel_used
            assert copied <= used < 2 * copied
            sandbox.run_sync(program, "go", b"", dataclasses.replace(limits, fuel=used))
            with pytest.raises(FuelExhausted):
                sandbox.run_sync(program, "go", b"", dataclasses.replace(limits, fuel=used - 1))


class TestDeadline:
    def test_a_guest_with_endless_fuel_stops_at_the_deadline(self, sandbox: Sandbox, load: Load) -> None:
        with pytest.raises(DeadlineExceeded, match="deadline_ms=30") as caught:
            sandbox.run_sync(load("greedy"), "spin", b"", ENDLESS)
        assert caught.value.code == "deadline"
        assert 0 < caught.value.fuel_used < 2**50

    def test_bulk_operations_do_not_outrun_it(self, sandbox: Sandbox, load: Load) -> None:
        with pytest.raises(DeadlineExceeded):
            sandbox.run_sync(load("greedy"), "fill_forever", b"", ENDLESS)

    def test_initialize_counts(self, sandbox: Sandbox, load: Load) -> None:
        with pytest.raises(DeadlineExceeded, match="_initialize was still running"):
            sandbox.run_sync(load("start_spins"), "echo", b"", ENDLESS)


TRAPS = {
    "unreachable": "unreachable",
    "divide": "integer_division_by_zero",
    "overflow": "integer_overflow",
    "out_of_bounds": "memory_out_of_bounds",
    "fill_out_of_bounds": "memory_out_of_bounds",
    "null_call": "indirect_call_to_null",
    "table_out_of_bounds": "table_out_of_bounds",
    "not_a_number": "bad_conversion_to_integer",
    "recurse": "stack_overflow",
    "recurse_wide": "stack_overflow",
}


class TestTraps:
    @pytest.mark.parametrize(("entry", "trap"), TRAPS.items())
    def test_each_trap_has_its_name_and_bills_the_whole_budget(
        self, sandbox: Sandbox, load: Load, entry: str, trap: str
    ) -> None:
        """Public report (b): a division by zero after a million loops must not be billed 0 (wasmtime#13802)."""
        with pytest.raises(GuestTrap) as caught:
            sandbox.run_sync(load("traps"), entry, b"", Limits(fuel=30_000_000))
        error = caught.value
        assert (error.code, error.trap, error.entry, error.fuel_used) == ("trap", trap, entry, 30_000_000)
        assert error.digest == load("traps").digest

    def test_the_backtrace_names_functions_innermost_first(self, sandbox: Sandbox, load: Load) -> None:
        with pytest.raises(GuestTrap, match="unreachable in inner") as caught:
            sandbox.run_sync(load("traps"), "unreachable", b"")
        assert caught.value.backtrace[0] == "inner"

    def test_a_deep_backtrace_is_bounded(self, sandbox: Sandbox, load: Load) -> None:
        with pytest.raises(GuestTrap) as caught:
            sandbox.run_sync(load("traps"), "recurse", b"")
        assert len(caught.value.backtrace) <= 17

    def test_recursion_to_the_end_traps_on_a_thread_with_a_small_stack(self, sandbox: Sandbox, load: Load) -> None:
        """Guests run on a fiber, so the caller's stack does not matter: a plain call here is a SIGSEGV."""
        program, seen = load("traps"), []

        def call() -> None:
            with pytest.raises(GuestTrap) as caught:
                sandbox.run_sync(program, "recurse", b"")
            seen.append(caught.value.trap)

        before = threading.stack_size(128 * 1024)
        try:
            thread = threading.Thread(target=call)
            thread.start()
        finally:
            threading.stack_size(before)
        thread.join()
        assert seen == ["stack_overflow"]

    def test_the_next_call_of_the_same_and_of_another_module_is_right(self, sandbox: Sandbox, load: Load) -> None:
        """Public report (h)."""
        for entry in TRAPS:
            with pytest.raises(GuestTrap):
                sandbox.run_sync(load("traps"), entry, b"")
            assert sandbox.run_sync(load("plain"), "echo", b"fine").output == b"fine"

    def test_an_instance_that_cannot_be_made_is_a_trap_with_no_log(self, sandbox: Sandbox, load: Load) -> None:
        assert sandbox.run_sync(load("logs"), "says", b"").log  # so that a stale handle would have something to read
        for _ in range(3):
            with pytest.raises(GuestTrap, match="instantiation trapped: memory_out_of_bounds") as caught:
                sandbox.run_sync(load("data_beyond"), "echo", b"")
            assert not caught.value.log
        assert sandbox.taken == 0

    def test_a_segment_that_ends_outside_is_that_trap_however_much_was_copied_before_it(self, sandbox: Sandbox) -> None:
        for copied in (100, 60_000):
            data = f'(data (i32.const 0) "{"x" * copied}") (data (i32.const 65535) "xx")'
            program = sandbox.load(bytes(wasmtime.wat2wasm(SEGMENTS.format(pages=1, data=data))), GO)
            with pytest.raises(GuestTrap) as caught:
                sandbox.run_sync(program, "go", b"")
            assert (caught.value.trap, caught.value.entry) == ("memory_out_of_bounds", "instantiation")

    def test_hook_alloc_that_traps_is_named(self, sandbox: Sandbox, load: Load) -> None:
        with pytest.raises(GuestTrap) as caught:
            sandbox.run_sync(load("alloc_traps"), "echo", b"x")
        assert caught.value.entry == "hook_alloc"


class TestMemory:
    def test_a_guest_that_fails_at_its_memory_limit_exceeded_it(self, sandbox: Sandbox, load: Load) -> None:
        limits = Limits(memory_bytes=8 * PAGE)
        with pytest.raises(MemoryExceeded, match=r"524_288 bytes of memory in use") as caught:
            sandbox.run_sync(load("greedy"), "grow_and_trap", b"", limits)
        assert caught.value.code == "memory"

    def test_a_trap_with_memory_to_spare_is_a_trap(self, sandbox: Sandbox, load: Load) -> None:
        """Limit errors cannot be forged by a guest: the host's own figures decide."""
        with pytest.raises(GuestTrap):
            sandbox.run_sync(load("greedy"), "pretends", b"", Limits(memory_bytes=8 * PAGE))

    @pytest.mark.parametrize(("entry", "trap"), TRAPS.items())
    def test_a_trap_that_no_want_of_memory_brings_about_is_a_trap_also_where_memory_is_full(
        self, sandbox: Sandbox, load: Load, entry: str, trap: str
    ) -> None:
        with pytest.raises(GuestError) as caught:
            sandbox.run_sync(load("traps"), entry, b"", Limits(fuel=30_000_000, memory_bytes=2 * PAGE))
        may_be_memory = trap in {"unreachable", "memory_out_of_bounds"}
        assert isinstance(caught.value, MemoryExceeded if may_be_memory else GuestTrap)

    def test_growing_too_far_is_refused_to_the_guest_and_no_error(self, sandbox: Sandbox, load: Load) -> None:
        assert sandbox.run_sync(load("greedy"), "grow_refused", b"").output == number(2)

    @pytest.mark.parametrize("limit", [10, 5_009, 65_536])
    def test_a_table_grows_to_its_limit_and_no_further(self, sandbox: Sandbox, load: Load, limit: int) -> None:
        output = sandbox.run_sync(load("greedy"), "grow_table", b"", Limits(table_elements=limit)).output
        assert output == number(10 + (limit - 10) // 1000 * 1000)

    def test_a_declared_minimum_of_n_starts_and_under_a_limit_of_one_less_it_does_not(
        self, sandbox: Sandbox, load: Load
    ) -> None:
        assert sandbox.run_sync(load("plain"), "echo", b"", Limits(memory_bytes=4 * PAGE)).output == b""
        with pytest.raises(MemoryExceeded, match="262_144 bytes of memory to start") as caught:
            sandbox.run_sync(load("plain"), "echo", b"", Limits(memory_bytes=4 * PAGE - 1))
        assert caught.value.fuel_used == 0

    def test_a_table_minimum_of_n_starts_and_under_a_limit_of_one_less_it_does_not(
        self, sandbox: Sandbox, load: Load
    ) -> None:
        assert sandbox.run_sync(load("greedy"), "grow_refused", b"", Limits(table_elements=10)).output
        with pytest.raises(MemoryExceeded, match="a table of 10 elements"):
            sandbox.run_sync(load("greedy"), "grow_refused", b"", Limits(table_elements=9))

    def test_a_payload_that_does_not_fit_under_the_limit_is_a_memory_error(self, sandbox: Sandbox, load: Load) -> None:
        payload = b"x" * (2 * PAGE)
        assert sandbox.run_sync(load("alloc_grows"), "echo", payload, Limits(memory_bytes=4 * PAGE)).output == payload
        with pytest.raises(MemoryExceeded, match="hook_alloc has no room for 131_072 bytes"):
            sandbox.run_sync(load("alloc_grows"), "echo", payload, Limits(memory_bytes=2 * PAGE))

    def test_a_module_of_n_that_a_slot_holds_loads_and_of_more_is_refused_with_a_finding(
        self, load_into_sandbox: Callable[[Sandbox, str], Program]
    ) -> None:
        def load(memory_bytes: int, table_elements: int) -> Program:
            settings = EngineSettings(slots=1, memory_bytes=memory_bytes, table_elements=table_elements)
            limits = Limits(memory_bytes=memory_bytes, table_elements=table_elements)
            with Sandbox(settings=settings, limits=limits) as small:
                return load_into_sandbox(small, "greedy")

        assert load(2 * PAGE, 10).digest
        for memory_bytes, table_elements, code in ((PAGE, 10, "memory_too_large"), (2 * PAGE, 9, "table_too_large")):
            with pytest.raises(ModuleRejected) as caught:
                load(memory_bytes, table_elements)
            assert [finding.code for finding in caught.value.findings] == [code]

    @pytest.mark.parametrize(
        ("part", "n"), [('(data "")', 100_000), ("(global (mut i64) (i64.const 1))", 2_000), ("(elem func 0)", 256)]
    )
    def test_a_slot_holds_as_much_of_everything_as_admission_allows(self, sandbox: Sandbox, part: str, n: int) -> None:
        program = sandbox.load(bytes(wasmtime.wat2wasm(SEGMENTS.format(pages=1, data=part * n))), GO)
        assert sandbox.run_sync(program, "go", b"").output is None

    def test_a_slot_holds_two_tables_and_a_third_is_refused_whatever_the_policy(self, sandbox: Sandbox) -> None:
        policy = dataclasses.replace(GO, limits=ModuleLimits(tables=9))
        two, three = (wasmtime.wat2wasm(SEGMENTS.format(pages=1, data="(table 1 funcref)" * n)) for n in (2, 3))
        assert sandbox.run_sync(sandbox.load(bytes(two), policy), "go", b"").output is None
        with pytest.raises(ModuleRejected) as caught:
            sandbox.load(bytes(three), policy)
        assert [(finding.code, finding.limit) for finding in caught.value.findings] == [("too_many_tables", 2)]

    def test_limits_over_what_a_slot_holds_are_refused_by_name(self, sandbox: Sandbox, load: Load) -> None:
        more = Limits(memory_bytes=sandbox.settings.memory_bytes + PAGE)
        with pytest.raises(ValueError, match=r"raise EngineSettings\.memory_bytes too"):
            sandbox.run_sync(load("plain"), "echo", b"", more)


class TestBounds:
    def test_output_may_reach_the_last_byte_of_memory_and_not_one_beyond(self, sandbox: Sandbox, load: Load) -> None:
        assert sandbox.run_sync(load("bounds"), "last_byte", b"").output == b"\0"
        with pytest.raises(ProtocolViolation, match="leaves its memory of 131_072"):
            sandbox.run_sync(load("bounds"), "one_beyond", b"")

    def test_address_and_length_that_wrap_are_refused(self, sandbox: Sandbox, load: Load) -> None:
        with pytest.raises(ProtocolViolation) as caught:
            sandbox.run_sync(load("bounds"), "wraps", b"")
        assert caught.value.code == "protocol"

    def test_output_of_n_bytes_crosses_and_n_plus_1_does_not(self, sandbox: Sandbox, load: Load) -> None:
        limits = Limits(output_bytes=1000)
        assert sandbox.run_sync(load("bounds"), "sized", number(1000), limits).output is not None
        with pytest.raises(OutputTooLarge, match=r"1_001 bytes, over the limit of output_bytes=1_000") as caught:
            sandbox.run_sync(load("bounds"), "sized", number(1001), limits)
        assert caught.value.code == "output"
        assert 0 < caught.value.fuel_used < 1000

    def test_four_gigabytes_of_output_are_refused_by_their_length(self, sandbox: Sandbox, load: Load) -> None:
        with pytest.raises(OutputTooLarge):
            sandbox.run_sync(load("bounds"), "huge", b"")

    def test_a_payload_of_n_bytes_crosses_and_n_plus_1_does_not(self, sandbox: Sandbox, load: Load) -> None:
        limits = Limits(input_bytes=1000)
        assert sandbox.run_sync(load("plain"), "echo", b"x" * 1000, limits).output == b"x" * 1000
        with pytest.raises(InputTooLarge) as caught:
            sandbox.run_sync(load("plain"), "echo", b"x" * 1001, limits)
        assert (caught.value.code, caught.value.size, caught.value.limit) == ("input", 1001, 1000)

    @pytest.mark.parametrize("name", ["alloc_beyond", "alloc_wraps", "alloc_zero"])
    def test_an_address_that_hook_alloc_may_not_give_is_refused(self, sandbox: Sandbox, load: Load, name: str) -> None:
        with pytest.raises(ProtocolViolation) as caught:
            sandbox.run_sync(load(name), "echo", b"payload")
        assert caught.value.entry == "hook_alloc"


class TestLog:
    LINES = ("first line", "second line")

    def test_a_log_comes_with_the_completion(self, sandbox: Sandbox, load: Load) -> None:
        """SEMANTICS G5."""
        assert sandbox.run_sync(load("logs"), "says", b"").log.lines == self.LINES
        assert not sandbox.run_sync(load("logs"), "stays_silent", b"").log

    @pytest.mark.parametrize(
        ("entry", "limits", "kind"),
        [
            ("says_and_traps", Limits(), GuestTrap),
            ("says_and_spins", Limits(fuel=100_000), FuelExhausted),
            ("says_and_spins", ENDLESS, DeadlineExceeded),
        ],
    )
    def test_a_log_survives_each_way_to_fail(
        self, sandbox: Sandbox, load: Load, entry: str, limits: Limits, kind: type[GuestError]
    ) -> None:
        """SEMANTICS G5."""
        with pytest.raises(kind) as caught:
            sandbox.run_sync(load("logs"), entry, b"", limits)
        assert caught.value.log.lines == self.LINES

    def test_what_moves_a_cursor_or_is_not_text_is_escaped(self, sandbox: Sandbox, load: Load) -> None:
        log = sandbox.run_sync(load("logs"), "says_hostile", b"").log
        assert log.lines == (r"\x1b[2J\u202eevil\x00\xff",)

    def test_a_log_of_n_bytes_is_whole_and_of_n_plus_1_is_cut_and_says_so(self, sandbox: Sandbox, load: Load) -> None:
        """SEMANTICS G6."""
        limits = Limits(log_bytes=100)
        whole = sandbox.run_sync(load("logs"), "says_sized", number(100), limits).log
        assert (len(whole.raw), whole.cut) == (100, False)
        cut = sandbox.run_sync(load("logs"), "says_sized", number(101), limits).log
        assert (len(cut.raw), cut.cut) == (100, True)
        assert cut.lines[-1] == "… [log cut at the limit]"

    @pytest.mark.parametrize("length", [131_072 - 1028, 131_072 - 1027, 2**31, 2**32 - 1])
    def test_a_length_beyond_memory_reads_no_further_than_memory(
        self, sandbox: Sandbox, load: Load, length: int
    ) -> None:
        log = sandbox.run_sync(load("logs"), "says_sized", number(length), Limits(log_bytes=2**40)).log
        assert len(log.raw) == 131_072 - 1028
        assert log.cut == (length > 131_072 - 1028)

    def test_an_address_beyond_memory_is_said_in_the_log(self, sandbox: Sandbox, load: Load) -> None:
        log = sandbox.run_sync(load("log_beyond"), "echo", b"").log
        assert log.cut
        assert "points outside" in log.lines[0]


class TestIsolation:
    def test_nothing_of_a_call_reaches_the_next(self, load_into_sandbox: Callable[[Sandbox, str], Program]) -> None:
        """Memory, grown memory, tables and globals of the slot are as new for each call, whoever had it before."""
        # One slot, so that each call gets the soiled one.
        with Sandbox(settings=EngineSettings(slots=1)) as single:
            leak, plain = (load_into_sandbox(single, name) for name in ("leak", "plain"))
            limits = Limits(fuel=2**50, deadline_ms=60_000)
            for _ in range(10):
                single.run_sync(leak, "soil", b"secret", limits)
                assert single.run_sync(leak, "look", b"", limits).output == number(0)
                single.run_sync(plain, "echo", b"secret" * 1000, limits)
                assert single.run_sync(leak, "look", b"", limits).output == number(0)

    def test_every_error_carries_its_facts(self, sandbox: Sandbox, load: Load) -> None:
        limits = dataclasses.replace(Limits(), fuel=100_000)
        with pytest.raises(GuestError) as caught:
            sandbox.run_sync(load("greedy"), "spin", b"", limits)
        error = caught.value
        assert (error.limits, error.digest, error.entry) == (limits, load("greedy").digest, "spin")
