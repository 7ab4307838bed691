"""One isolated call, from payload to completion or error: what the ABI says happens, in its order.

`IsolatedCall.run` is a generator that yields between slices of fuel, whichever function of the guest is running. It
does no waiting of its own: a plain thread drives it in a loop, an event loop with other tasks' turns between. Being a
generator it is also the call's locked state machine: new, running, suspended or done, never run by two threads at
once, closed for good by an error, a cancellation or its end.

Source: guest_sdk/ABI.md, "A call".
"""

from __future__ import annotations

from collections.abc import Generator
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final, NoReturn

from wasmtime import TrapCode

from .errors import (
    DeadlineExceeded,
    FuelExhausted,
    GuestError,
    GuestTrap,
    MemoryExceeded,
    OutputTooLarge,
    ProtocolViolation,
    SandboxError,
)
from .guest_text import EMPTY_LOG, GuestLog
from .instance import SLICE, Name, NativeError
from .limits import PAGE_BYTES
from .program import Completion

if TYPE_CHECKING:
    from ctypes import c_uint64

    from .instance import Ceilings, Compiled, Instance, Pool
    from .limits import Limits
    from .program import Program

__all__ = ["IsolatedCall"]

_ALLOC_FUEL: Final = 50_000
_ALLOC_FUEL_PER_BYTE: Final = 2
_INITIALIZE: Final = Name("_initialize")
_HOOK_ALLOC: Final = Name("hook_alloc")
_HOOK_LOG: Final = Name("hook_log")
_LOW_32: Final = 0xFFFF_FFFF

_OF_AN_ALLOCATOR: Final = (TrapCode.UNREACHABLE, TrapCode.MEMORY_OUT_OF_BOUNDS)
"""How a guest ends that gets no more memory: it gives up, or writes where it has none."""


class IsolatedCall:
    """One call, and the facts of it that its failures report."""

    __slots__ = (
        "_budget",
        "_ceilings",
        "_compiled",
        "_deadline_ns",
        "_entry",
        "_instance",
        "_limits",
        "_payload",
        "_program",
    )

    def __init__(
        self, compiled: Compiled, program: Program, entry: str, payload: bytes, limits: Limits, ceilings: Ceilings
    ) -> None:
        self._compiled = compiled
        self._program = program
        self._entry = entry
        self._payload = payload
        self._limits = limits
        self._ceilings = ceilings
        self._instance: Instance | None = None

    def run(self, pool: Pool, slice_fuel: c_uint64 = SLICE) -> Generator[None, None, Completion]:
        """Run the entry point of a fresh instance on the payload, yielding after each slice that did not finish.

        Raises:
            GuestError: What the guest did wrong, as its subclass says.
            NoSlot: Every slot is taken; nothing ran, and the generator is over.
            SandboxError: wasmtime refused in a way that is not the guest's doing.
        """
        started = perf_counter_ns()
        limits, compiled, payload = self._limits, self._compiled, self._payload
        size = len(payload)
        budget = self._budget = limits.fuel_for(size)
        alloc_budget = _ALLOC_FUEL + _ALLOC_FUEL_PER_BYTE * size
        self._deadline_ns = started + limits.deadline_ms * 1_000_000
        if compiled.memory_bytes > limits.memory_bytes or compiled.table_elements > limits.table_elements:
            self._fail_minimums()
        try:
            # Where nothing before hook_alloc uses any, the store starts on its fuel: that saves a call.
            first = budget if compiled.starts_on_budget else alloc_budget
            instance = self._instance = pool.instantiate(compiled, self._ceilings, first, slice_fuel)
        except NativeError as error:
            digest = self._program.digest[:12]
            raise SandboxError(f"wasmtime could not make an instance of module {digest}: {error}") from None
        try:
            if instance.failed():
                self._explain("instantiation")
            if compiled.starts_on_budget:
                if compiled.has_initialize:
                    if not instance.begin(_INITIALIZE, 0, 0, 0, 0):
                        yield from self._slices(instance, "_initialize")
                    if instance.failed():
                        self._explain("_initialize")
                left = instance.fuel()
                instance.set_fuel(alloc_budget)
            else:
                left = budget

            self._budget = alloc_budget
            if not instance.begin(_HOOK_ALLOC, size, 0, 1, 1):
                yield from self._slices(instance, "hook_alloc")
            if instance.failed():
                self._explain("hook_alloc", needs=size)
            address = instance.result_32()
            if not address or not instance.write(address, payload):
                self._refuse_address(instance, address, size)

            self._budget = budget
            instance.set_fuel(left)
            if not instance.begin(compiled.names[self._entry], address, size, 2, 1):
                yield from self._slices(instance, self._entry)
            if instance.failed():
                self._explain(self._entry)
            packed = instance.result_64()
            return Completion(
                self._output(instance, packed) if packed else None,
                self._log(instance) if compiled.logs else EMPTY_LOG,
                budget - instance.fuel(),
                (perf_counter_ns() - started) / 1000,
            )
        finally:
            instance.close()

    def _slices(self, instance: Instance, running: str) -> Generator[None, None, None]:
        """Let the other side have its turn, then run one more slice, until the function is done or late."""
        while True:
            yield
            if perf_counter_ns() >= self._deadline_ns:
                instance.drop_fiber()
                self._fail(
                    DeadlineExceeded,
                    f"was still running after deadline_ms={self._limits.deadline_ms:_}; raise it or simplify the hook",
                    running=running,
                    used=self._budget - instance.fuel(),
                )
            if instance.poll():
                return

    def _fail_minimums(self) -> NoReturn:
        compiled, limits = self._compiled, self._limits
        if compiled.memory_bytes > limits.memory_bytes:
            what = f"{compiled.memory_bytes:_} bytes of memory to start, over the limit of memory_bytes"
            limit = limits.memory_bytes
        else:
            what = f"a table of {compiled.table_elements:_} elements, over the limit of table_elements"
            limit = limits.table_elements
        self._fail(MemoryExceeded, f"needs {what}={limit:_}; raise it or build the hook with less", used=0)

    def _explain(self, running: str, *, needs: int = PAGE_BYTES) -> NoReturn:
        """Raise what a trap means. ``needs`` is the memory that the guest must have been able to grow by, bytes."""
        instance = self._instance
        if instance is None:
            raise SandboxError("there is no instance")
        try:
            trap = instance.trap()
        except NativeError as error:
            raise SandboxError(f"wasmtime failed in module {self._program.digest[:12]}: {error}") from None
        name = "unknown" if trap.code is None else trap.code.name.lower()
        if trap.code is TrapCode.OUT_OF_FUEL:
            fixed = running == "hook_alloc"
            advice = "its budget is fixed, make it do less" if fixed else "raise its fuel or simplify the hook"
            self._fail(FuelExhausted, f"used all {self._budget:_} fuel; {advice}", running=running)
        if trap.code in _OF_AN_ALLOCATOR and self._memory_is_full(instance, needs):
            self._fail_memory(instance, running, f"trapped ({name})")
        where = f" in {trap.backtrace[0]}" if trap.backtrace else ""
        self._fail(GuestTrap, f"trapped: {name}{where}", running=running, trap=name, backtrace=trap.backtrace)

    def _refuse_address(self, instance: Instance, address: int, size: int) -> NoReturn:
        """Say why the address that hook_alloc gave cannot be used."""
        if not address and self._memory_is_full(instance, size):
            self._fail_memory(instance, "hook_alloc", f"has no room for {size:_} bytes")
        if not address:
            self._fail(ProtocolViolation, f"returned 0 for {size:_} bytes, though memory is left", running="hook_alloc")
        memory = instance.memory_bytes()
        self._fail(
            ProtocolViolation,
            f"returned address {address:_} for {size:_} bytes, which leaves its memory of {memory:_}",
            running="hook_alloc",
        )

    def _output(self, instance: Instance, packed: int) -> bytes:
        """Copy the output that ``packed`` (high 32 bits address, low 32 bits length) names.

        Source: guest_sdk/ABI.md, "Returning an outcome".
        """
        address, size = packed >> 32, packed & _LOW_32
        if size > self._limits.output_bytes:
            self._fail(
                OutputTooLarge,
                f"returned {size:_} bytes, over the limit of output_bytes={self._limits.output_bytes:_}; raise it or "
                "return less",
                used=self._budget - instance.fuel(),
            )
        output = instance.read(address, size)
        if output is None:
            self._fail(
                ProtocolViolation,
                f"returned {size:_} bytes at {address:_}, which leaves its memory of {instance.memory_bytes():_}",
                used=self._budget - instance.fuel(),
            )
        return output

    def _log(self, instance: Instance) -> GuestLog:
        """Copy the log out: ``{u32 length, bytes}`` at the address in the global. Both are the guest's to set."""
        if not instance.has_memory():
            return EMPTY_LOG
        address = self._program.report.log_address
        if address is None:
            address = instance.global_32(_HOOK_LOG) or 0
        size = instance.read_32(address)
        if size is None:
            return GuestLog(b"[hook_log points outside of memory]", cut=True)
        if not size:
            return EMPTY_LOG
        kept = min(size, self._limits.log_bytes, max(instance.memory_bytes() - address - 4, 0))
        return GuestLog(instance.read(address + 4, kept) or b"", cut=kept < size)

    def _memory_is_full(self, instance: Instance, needs: int) -> bool:
        # The host's own figures decide, so that no guest can pass for one that ran out of memory.
        return instance.memory_bytes() + needs > self._limits.memory_bytes

    def _fail_memory(self, instance: Instance, running: str, what: str) -> NoReturn:
        memory, limit = instance.memory_bytes(), self._limits.memory_bytes
        self._fail(
            MemoryExceeded,
            f"{what} with {memory:_} bytes of memory in use, under the limit of memory_bytes={limit:_}; raise it or "
            "let the hook use less",
            running=running,
        )

    def _fail(
        self, kind: type[GuestError], what: str, *, running: str | None = None, used: int | None = None, **more: Any
    ) -> NoReturn:
        """Raise ``kind`` with the call's facts. Without ``used`` the whole budget is billed, as after any trap."""
        running = running or self._entry
        raise kind(
            f"module {self._program.digest[:12]}: {running} {what}",
            entry=running,
            digest=self._program.digest,
            limits=self._limits,
            fuel_used=self._budget if used is None else used,
            log=EMPTY_LOG if self._instance is None or not self._compiled.logs else self._log(self._instance),
            **more,
        )
