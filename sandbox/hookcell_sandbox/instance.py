"""One fresh instance in one new store, and the pool that its slot comes from.

What wasmtime leaves to its caller, on pain of ending the process, is kept by construction:

- A future dies before its store, and its store before the cells that both write to: `Instance` declares them in that
  order, and the cyclic collector never finalizes a store on its own (see `Pool.instantiate`).
- A future is polled only while suspended: `Instance.poll` lets go of it in the step that sees it finish.
- A slot is taken as long as its store lives. The pool counts weak references whose callback is C code, so no exception
  at any moment can lose one.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Final

import wasmtime

from . import native
from .image import LAID_OUT_BYTES
from .native import NOTHING, Context, Future, Scratch, Store, Trap, error_text
from .settings import EngineSettings, config

if TYPE_CHECKING:
    import ctypes

    from .admission import ModuleReport

__all__ = ["LONG_SLICE", "SLICE", "Ceilings", "Compiled", "Instance", "Name", "NativeError", "NoSlot", "Pool"]

SLICE: Final = native.fuel_amount(200_000)
"""Fuel between two yields of a guest on an event loop, about 0.1 ms. At 1M, ten endless ones make it 15 ms late."""

LONG_SLICE: Final = native.fuel_amount(2_000_000)
"""The same in a plain thread, where only the deadline waits: a slice gives the GIL up once, so longer ones run better
beside other threads."""


# Looked up once: these are called two dozen times in a call of 20 µs.
_call_async = native.call_async
_copy_in = native.copy_in
_copy_out = native.copy_out
_export_get = native.export_get
_get_fuel = native.get_fuel
_instantiate = native.instantiate
_memory_data = native.memory_data
_memory_size = native.memory_size
_poll = native.poll
_set_fuel = native.set_fuel
_set_yield_interval = native.set_yield_interval
_store_context = native.store_context
_store_limiter = native.store_limiter
_store_new = native.store_new
_untrack = native.untrack

_FREE_SEGMENT_BYTES: Final = 25_000  # half of hook_alloc's smallest budget, which pays where nothing else does

_ONE = native.ceiling(1)
_TABLES = native.ceiling(native.SLOT_TABLES)
_COUNTS = (native.size(0), native.size(1), native.size(2))


class NativeError(Exception):
    """wasmtime reported an error that is not a trap. The text is bounded and escaped."""


class NoSlot(Exception):
    """Every slot of the pool is taken."""


class Compiled:
    """A compiled module, ready to be instantiated. Keeps wasmtime's own objects alive while anything may use them."""

    __slots__ = (
        "__weakref__",
        "_module",
        "_prepared",
        "engine",
        "has_initialize",
        "image",
        "logs",
        "memory_bytes",
        "names",
        "pointer",
        "starts_on_budget",
        "table_elements",
    )

    def __init__(
        self,
        engine: wasmtime.Engine,
        module: wasmtime.Module,
        report: ModuleReport,
        image: tuple[tuple[int, bytes], ...] = (),
    ) -> None:
        self.engine = engine
        # What the host lays into fresh memory, since ``module`` is without it: address, bytes, size.
        self.image = tuple((address, content, len(content)) for address, content in image)
        self._module = module
        # The linker defines nothing: a module with an import, which admission refuses, gets no instance here either.
        self._prepared = wasmtime.Linker(engine).instantiate_pre(module)
        self.pointer = native.pointer_of(self._prepared)
        self.names = {entry: Name(entry) for entry in report.entry_points}
        self.has_initialize = report.has_initialize
        self.logs = report.log_global
        # What the instance needs to start.
        self.memory_bytes = report.memory.minimum if report.memory else 0
        self.table_elements = max((table.minimum for table in report.tables), default=0)
        # Whether something before hook_alloc may use fuel. Besides `_initialize` that is the copying of segments, about
        # one for each byte, where wasmtime did not lay the memory out when it compiled: it does so up to 16 MiB, unless
        # a segment ends outside.
        self.starts_on_budget = (
            report.has_initialize
            or self.memory_bytes > LAID_OUT_BYTES
            or (0 if image else report.data_bytes) + report.elements > _FREE_SEGMENT_BYTES
        )


class Name:
    """An export's name as the C calls take it."""

    __slots__ = ("length", "utf8")

    def __init__(self, name: str) -> None:
        self.utf8 = name.encode()
        self.length = native.size(len(self.utf8))


class Ceilings:
    """What a store may grow to, as the C call takes it.

    Args:
        memory_bytes: Of its linear memory.
        table_elements: Of each table.
    """

    __slots__ = ("memory_bytes", "table_elements")

    def __init__(self, *, memory_bytes: int, table_elements: int) -> None:
        self.memory_bytes = native.ceiling(memory_bytes)
        self.table_elements = native.ceiling(table_elements)


_MEMORY = Name("memory")


class _Stored:
    """What must outlive an instance's future. A base class's slots are cleared after its heir's."""

    __slots__ = ("scratch", "store")

    store: Store | None
    scratch: Scratch


class Instance(_Stored):
    """One instance, for one call: used by one thread at a time, closed once. Made by `Pool.instantiate`."""

    __slots__ = ("_base", "_compiled", "_context", "_pool", "_size", "future")

    future: Future | None
    _context: Context
    # Where linear memory starts (0: there is no instance yet), and a size that it has at least. It never moves, which
    # `settings` rules out, and never shrinks.
    _base: int
    _size: int

    def __init__(self, pool: Pool, compiled: Compiled) -> None:
        self.future = self.store = None
        self._base = self._size = 0
        self._pool = pool
        self._compiled = compiled
        self.scratch = pool.take_scratch()

    def start(self, ceilings: Ceilings, fuel: int, slice_fuel: ctypes.c_uint64) -> None:
        """Make the store and the instance in it. A trap while data or elements are copied in is left in `trap`."""
        scratch = self.scratch
        store = self._pool.lease(self)
        context = self._context = _store_context(store)
        _store_limiter(store, ceilings.memory_bytes, ceilings.table_elements, _ONE, _TABLES, _ONE)
        scratch.fuel.value = fuel
        error = (
            _set_fuel(context, scratch.fuel)
            or _instantiate(self._compiled.pointer, context, scratch.instance_at, scratch.trap_at)
            or _set_yield_interval(context, slice_fuel)
        )
        if error:
            raise NativeError(error_text(error))
        if not scratch.trap.value:
            _export_get(context, scratch.instance_at, _MEMORY.utf8, _MEMORY.length, scratch.memory_at)
            self._base = _memory_data(context, scratch.memory)
            self._size = self._compiled.memory_bytes
            for address, content, size in self._compiled.image:
                _copy_in(self._base + address, content, size)

    def set_fuel(self, fuel: int) -> None:
        """Let the guest run for this much fuel from here."""
        scratch = self.scratch
        scratch.fuel.value = fuel
        if error := _set_fuel(self._context, scratch.fuel):
            raise NativeError(error_text(error))

    def fuel(self) -> int:
        """Fuel that is left. After a hardware trap it reads as if nothing had been used."""
        scratch = self.scratch
        if error := _get_fuel(self._context, scratch.fuel_at):
            raise NativeError(error_text(error))
        return scratch.fuel.value

    def begin(self, name: Name, first: int, second: int, arguments: int, results: int) -> bool:
        """Call an exported function with up to two i32 and run its first slice. True when it is done."""
        scratch = self.scratch
        context = self._context
        if not _export_get(context, scratch.instance_at, name.utf8, name.length, scratch.function_at):
            raise NativeError("the function is not exported")
        scratch.first.value = first
        scratch.second.value = second
        self.future = _call_async(
            context,
            scratch.function,
            scratch.arguments_at,
            _COUNTS[arguments],
            scratch.result_at,
            _COUNTS[results],
            scratch.trap_at,
            scratch.error_at,
        )
        if _poll(self.future):
            self.future = None
            return True
        return False

    def poll(self) -> bool:
        """Run one more slice. True when the function is done, and then there is nothing left to poll."""
        if _poll(self.future):
            self.future = None
            return True
        return False

    def failed(self) -> bool:
        """Whether the last function, or the making of the instance, ended in a trap or an error: see `trap`."""
        scratch = self.scratch
        return bool(scratch.trap.value or scratch.error.value)

    def trap(self) -> Trap:
        """Why the last function stopped. To be asked once, after `failed`.

        Raises:
            NativeError: It stopped for another reason than a trap.
        """
        scratch = self.scratch
        if scratch.trap.value:
            return native.take_trap(scratch)
        error, scratch.error.value = scratch.error.value, None
        raise NativeError(error_text(error) if error else "no trap")

    def result_32(self) -> int:
        """The i32 that the last function returned, unsigned."""
        return self.scratch.result_32.value

    def result_64(self) -> int:
        """The i64 that the last function returned, unsigned."""
        return self.scratch.result_64.value

    def has_memory(self) -> bool:
        """Whether the instance could be made."""
        return self._base != 0

    def memory_bytes(self) -> int:
        """Size of the linear memory now; 0 when the instance could not be made."""
        return self._base and _memory_size(self._context, self.scratch.memory)

    def write(self, at: int, payload: bytes) -> bool:
        """Copy ``payload`` into linear memory. False, and nothing written, when it would leave it."""
        size = len(payload)
        if not self._holds(at, size):
            return False
        _copy_in(self._base + at, payload, size)
        return True

    def read(self, at: int, size: int) -> bytes | None:
        """Copy ``size`` bytes out, or None when the range leaves linear memory. The caller has bounded ``size``."""
        return _copy_out(self._base + at, size) if self._holds(at, size) else None

    def read_32(self, at: int) -> int | None:
        """The little-endian u32 at ``at``, or None when it leaves linear memory."""
        return native.number_at(self._base + at) if self._holds(at, 4) else None

    def _holds(self, at: int, size: int) -> bool:
        if at + size <= self._size:
            return True
        self._size = self.memory_bytes()
        return at + size <= self._size

    def global_32(self, name: Name) -> int | None:
        """The value of an exported i32 global, unsigned; None without one."""
        scratch = self.scratch
        if not _export_get(self._context, scratch.instance_at, name.utf8, name.length, scratch.global_at):
            return None
        native.global_get(self._context, scratch.global_, scratch.result_at)
        return scratch.result_32.value

    def global_64(self, name: Name) -> int:
        """The raw bits of an exported global that holds a number; of a 32-bit one only the low half counts."""
        scratch = self.scratch
        if not _export_get(self._context, scratch.instance_at, name.utf8, name.length, scratch.global_at):
            raise NativeError("the global is not exported")
        native.global_get(self._context, scratch.global_, scratch.result_at)
        return scratch.result_64.value

    def drop_fiber(self) -> None:
        """End a suspended function where it stands. Linear memory may be read after that, not before."""
        self.future = None

    def close(self) -> None:
        """Give everything back, in order. Safe to call again."""
        self.future = None
        if self.store is not None:
            self.store = None
            self._pool.put_scratch(self.scratch)


class Pool:
    """An engine with a pooling allocator, and the count of who uses its slots."""

    def __init__(self, settings: EngineSettings) -> None:
        self.engine = wasmtime.Engine(native.pooled(config(settings), settings))
        self.engine_pointer = native.pointer_of(self.engine)
        self._slots = settings.slots
        # Reentrant: an allocation inside may start the collector, and with it a destructor that calls a guest.
        self._lock = threading.RLock()
        self._live: set[weakref.ref[Store]] = set()
        self._scratches: list[Scratch] = []

    @property
    def taken(self) -> int:
        """Slots in use."""
        return len(self._live)

    def instantiate(self, compiled: Compiled, ceilings: Ceilings, fuel: int, slice_fuel: ctypes.c_uint64) -> Instance:
        """A fresh instance of ``compiled`` in a new store, with ``fuel`` to start on,
        yielding after each ``slice_fuel`` of it (`SLICE` or `LONG_SLICE`).

        Raises:
            NoSlot: Every slot is taken.
            NativeError: wasmtime refused, for instance since a declared minimum is over the limit.
        """
        instance = Instance(self, compiled)
        try:
            instance.start(ceilings, fuel, slice_fuel)
        except BaseException:
            instance.close()
            raise
        return instance

    def lease(self, instance: Instance) -> Store:
        """Give ``instance`` a new store, and with it a slot for as long as the store lives."""
        live = self._live
        with self._lock:
            if len(live) >= self._slots:
                raise NoSlot
            store = instance.store = _store_new(self.engine_pointer, NOTHING, NOTHING)
            # The cyclic collector finalizes what it finds in any order, a store before its future among them, which
            # aborts the process. Untracked, a store dies by its reference count alone, which comes after the future's.
            _untrack(store)
            live.add(weakref.ref(store, live.discard))
        return store

    def take_scratch(self) -> Scratch:
        """A used scratch, or a new one."""
        try:
            scratch = self._scratches.pop()
        except IndexError:
            return Scratch()
        return scratch

    def put_scratch(self, scratch: Scratch) -> None:
        """Keep a scratch for a later call. One lost on the way is only garbage."""
        scratch.clear()
        self._scratches.append(scratch)
