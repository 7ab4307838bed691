"""wasmtime's C API, as far as one isolated call needs it. The only file that touches ctypes.

wasmtime's Python package takes 130 µs for an isolated call, most of it in wrapper objects; own prototypes over the same
library take a tenth. The price is that a wrong call does not raise, it ends the process, so ownership is settled
here: a pointer is owned from the instant it exists. ctypes makes the owning object inside the foreign call, and its
destructor is the C function itself, not Python code. An exception between any two bytecodes (``KeyboardInterrupt``)
finds either no pointer or an owner.
"""

from __future__ import annotations

import _ctypes
import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import wasmtime
import wasmtime._bindings as _bindings

from .guest_text import escape

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .settings import EngineSettings

__all__ = [
    "SLOT_TABLES",
    "Context",
    "Future",
    "Scratch",
    "Store",
    "Trap",
    "error_text",
    "faults",
    "pooled",
    "take_trap",
]

# The wheel's own declarations: untyped, and the truth that ours are checked against.
_wheel: Any = _bindings

_BACKTRACE_FRAMES: Final = 16
_NAME_BYTES: Final = 1024
_MESSAGE_BYTES: Final = 4096

SLOT_TABLES: Final = 2
"""Tables that a slot of the pool holds."""

# wasmtime's own record of an instance, made on the heap for each call: 16 bytes a global, 12 a data segment. Its bound
# is 1 MiB unless it is told another, less than what `ModuleLimits` admits. Nothing is reserved by it.
_INSTANCE_BYTES: Final = 16 * 1024 * 1024


# --- layouts ----------------------------------------------------------------------------------------------------------


class _Value(ctypes.Structure):
    """wasmtime_val_t. The union's largest member is 24 bytes; only its integers are used."""

    _fields_ = (("kind", ctypes.c_uint8), ("of", ctypes.c_uint64 * 3))


class _Extern(ctypes.Structure):
    """wasmtime_extern_t: a kind, and a handle of at most 24 bytes that only wasmtime reads."""

    _fields_ = (("kind", ctypes.c_uint8), ("of", ctypes.c_uint64 * 3))


class _InstanceHandle(ctypes.Structure):
    """wasmtime_instance_t."""

    _fields_ = (("store_id", ctypes.c_uint64), ("private", ctypes.c_size_t))


class _Vector(ctypes.Structure):
    """wasm_byte_vec_t and wasm_frame_vec_t: a count and a pointer."""

    _fields_ = (("size", ctypes.c_size_t), ("data", ctypes.c_void_p))


class _Cells(ctypes.Structure):
    """What the C calls of one isolated call read and write."""

    _fields_ = (
        ("instance", _InstanceHandle),
        ("trap", ctypes.c_void_p),
        ("error", ctypes.c_void_p),
        ("memory", _Extern),
        ("function", _Extern),
        ("global_", _Extern),
        ("arguments", _Value * 2),
        ("result", _Value),
        ("fuel", ctypes.c_uint64),
    )


_LAYOUTS: Final[tuple[tuple[str, type[ctypes.Structure]], ...]] = (
    ("wasmtime_val_t", _Value),
    ("wasmtime_extern_t", _Extern),
    ("wasmtime_instance_t", _InstanceHandle),
    ("wasm_byte_vec_t", _Vector),
    ("wasm_frame_vec_t", _Vector),
)


# --- functions --------------------------------------------------------------------------------------------------------

# The C function and what it returns. ``argtypes`` stays unset: converting a Python number costs 0.1 to 0.2 µs for each
# argument, a third of the whole call. So every argument is a ctypes object, made once where it can be; a plain number
# would pass as a C int. That rule holds for this file and `instance`, the only one that calls these.
_RESULTS: Final[dict[str, Any]] = {
    "wasmtime_store_new": None,
    "wasmtime_store_delete": None,
    "wasmtime_store_context": None,
    "wasmtime_store_limiter": None,
    "wasmtime_context_set_fuel": ctypes.c_void_p,
    "wasmtime_context_get_fuel": ctypes.c_void_p,
    "wasmtime_context_fuel_async_yield_interval": ctypes.c_void_p,
    "wasmtime_instance_pre_instantiate": ctypes.c_void_p,
    "wasmtime_instance_export_get": ctypes.c_bool,
    "wasmtime_func_call_async": None,
    "wasmtime_call_future_poll": ctypes.c_bool,
    "wasmtime_call_future_delete": None,
    "wasmtime_memory_data": ctypes.c_void_p,
    "wasmtime_memory_data_size": ctypes.c_size_t,
    "wasmtime_global_get": None,
    "wasmtime_trap_code": ctypes.c_bool,
    "wasm_trap_trace": None,
    "wasm_trap_delete": None,
    "wasm_frame_func_index": ctypes.c_uint32,
    "wasm_frame_vec_delete": None,
    "wasmtime_frame_func_name": ctypes.c_void_p,
    "wasmtime_error_message": None,
    "wasmtime_error_delete": None,
    "wasm_byte_vec_delete": None,
}


def faults() -> list[str]:
    """Where the installed wheel differs from what this file relies on; empty when all of it fits."""
    found = [f"no function {name}" for name in _RESULTS if not hasattr(_wheel.dll, name)]
    for name, ours in _LAYOUTS:
        theirs: Any = getattr(_wheel, name, None)
        if theirs is None:
            found.append(f"no type {name}")
        elif ctypes.sizeof(theirs) != ctypes.sizeof(ours):
            found.append(f"{name} has {ctypes.sizeof(theirs)} bytes, not {ctypes.sizeof(ours)}")
        else:
            # The wheel's field may have another name; what counts is where the second one starts.
            offset, expected = (getattr(kind, kind._fields_[1][0]).offset for kind in (theirs, ours))
            if offset != expected:
                found.append(f"{name} has its second field at {offset}, not {expected}")
    return found


# Calls that run no guest code are short and keep the GIL (PyDLL): giving it up can cost a busy process a switch
# interval each. Only `poll` runs guest code and gives it up (CDLL), so that guests of several threads run at once.
_PATH: Final[str] = _wheel.dll._name  # noqa: SLF001 ctypes has no public name for the path of a loaded library
_KEEPING_GIL: Final = ctypes.PyDLL(_PATH)
_GIVING_GIL: Final = ctypes.CDLL(_PATH)


def _missing(*_: object) -> None:
    raise AttributeError("this wasmtime lacks a function that `faults` names")


def _function(name: str, library: ctypes.CDLL = _KEEPING_GIL, *, result: Any = None) -> Any:
    # Indexing makes a new function object each time, so what is set on it is ours alone.
    function: Any = library[name] if hasattr(library, name) else _missing
    function.restype = result or _RESULTS[name]
    return function


_as_method: Any = ctypes.pythonapi.PyInstanceMethod_New
_as_method.restype, _as_method.argtypes = ctypes.py_object, (ctypes.py_object,)

untrack: Any = ctypes.pythonapi.PyObject_GC_UnTrack
"""Take an object out of the cyclic collector's sight."""
untrack.restype, untrack.argtypes = None, (ctypes.py_object,)


class Store(ctypes.c_void_p):
    """An owned store. Its destructor is a C function bound as a method, which no signal can interrupt."""

    __slots__ = ()
    __hash__ = object.__hash__  # ctypes takes it away, and a set of weak references needs it
    __del__ = _as_method(_function("wasmtime_store_delete"))


class Future(ctypes.c_void_p):
    """An owned future. Deleting it while suspended unwinds the guest's fiber."""

    __slots__ = ()
    __del__ = _as_method(_function("wasmtime_call_future_delete"))


class Context(ctypes.c_void_p):
    """A store's context: borrowed from it. A class of its own, since ctypes turns a plain pointer into a number."""

    __slots__ = ()


store_new = _function("wasmtime_store_new", result=Store)
store_context = _function("wasmtime_store_context", result=Context)
store_limiter = _function("wasmtime_store_limiter")
set_fuel = _function("wasmtime_context_set_fuel")
get_fuel = _function("wasmtime_context_get_fuel")
set_yield_interval = _function("wasmtime_context_fuel_async_yield_interval")
instantiate = _function("wasmtime_instance_pre_instantiate")
export_get = _function("wasmtime_instance_export_get")
call_async = _function("wasmtime_func_call_async", result=Future)
poll = _function("wasmtime_call_future_poll", _GIVING_GIL)
memory_data = _function("wasmtime_memory_data")
memory_size = _function("wasmtime_memory_data_size")
global_get = _function("wasmtime_global_get")

# ctypes' own memmove gives up the GIL for each copy. These two take Python numbers.
_memmove_address: int = getattr(_ctypes, "_memmove_addr")  # noqa: B009 what ctypes.memmove is made of; untyped
copy_in: Any = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)(_memmove_address)
copy_out = ctypes.string_at

_trap_code = _function("wasmtime_trap_code")
_trap_trace = _function("wasm_trap_trace")
_trap_delete = _function("wasm_trap_delete")
_frame_index = _function("wasm_frame_func_index")
_frame_name = _function("wasmtime_frame_func_name")
_frames_delete = _function("wasm_frame_vec_delete")
_error_message = _function("wasmtime_error_message")
_error_delete = _function("wasmtime_error_delete")
_bytes_delete = _function("wasm_byte_vec_delete")


def disown() -> None:
    """Forget every store and future that lives now, destructors and all: in the child of a fork they are the parent's.

    Their locks may be held by threads that the child does not have. What is made from here on is owned as before.
    """
    for make in (store_new, call_async):
        old: Any = make.restype
        make.restype = type(old.__name__, old.__bases__, {**vars(old)})
        del old.__del__


def pointer(address: int | None) -> ctypes.c_void_p:
    """An address as an argument."""
    return ctypes.c_void_p(address)


def pointer_of(owner: Any) -> ctypes.c_void_p:
    """The C pointer inside one of wasmtime's Python objects, which must outlive its use."""
    return ctypes.cast(owner.ptr(), ctypes.c_void_p)


def size(number: int) -> ctypes.c_size_t:
    """A count or a length as an argument."""
    return ctypes.c_size_t(number)


def ceiling(number: int) -> ctypes.c_int64:
    """A limit of a store as an argument."""
    return ctypes.c_int64(number)


def fuel_amount(number: int) -> ctypes.c_uint64:
    """Fuel as an argument."""
    return ctypes.c_uint64(number)


def number_at(address: int) -> int:
    """The u32 at an address that the caller has checked, in the guest's byte order, which is little-endian."""
    return _LittleU32.from_address(address).value


_LittleU32: Final = ctypes.c_uint32.__ctype_le__

NOTHING: Final = ctypes.c_void_p(None)


# --- one call's memory ------------------------------------------------------------------------------------------------


class Scratch:
    """The cells of one isolated call, with their addresses and views made once; used by many calls in turn.

    A future keeps addresses into it from its creation to its end, so it must outlive the future.
    """

    # fmt: off
    __slots__ = (
        "arguments_at", "cells", "error", "error_at", "first", "fuel", "fuel_at", "function", "function_at", "global_",
        "global_at", "instance_at", "memory", "memory_at", "result_32", "result_64", "result_at", "second", "trap",
        "trap_at",
    )
    # fmt: on

    def __init__(self) -> None:
        cells = self.cells = _Cells()
        base = ctypes.addressof(cells)
        handle, integer = _Extern.of.offset, _Value.of.offset
        self.instance_at = pointer(base + _Cells.instance.offset)
        self.trap_at = pointer(base + _Cells.trap.offset)
        self.error_at = pointer(base + _Cells.error.offset)
        self.memory_at = pointer(base + _Cells.memory.offset)
        self.memory = pointer(base + _Cells.memory.offset + handle)
        self.function_at = pointer(base + _Cells.function.offset)
        self.function = pointer(base + _Cells.function.offset + handle)
        self.global_at = pointer(base + _Cells.global_.offset)
        self.global_ = pointer(base + _Cells.global_.offset + handle)
        self.arguments_at = pointer(base + _Cells.arguments.offset)
        self.result_at = pointer(base + _Cells.result.offset)
        self.fuel_at = pointer(base + _Cells.fuel.offset)
        # The kinds stay 0, which is i32: what every argument of the ABI is.
        first = _Cells.arguments.offset + integer
        self.first = ctypes.c_uint32.from_buffer(cells, first)
        self.second = ctypes.c_uint32.from_buffer(cells, first + ctypes.sizeof(_Value))
        self.result_32 = ctypes.c_uint32.from_buffer(cells, _Cells.result.offset + integer)
        self.result_64 = ctypes.c_uint64.from_buffer(cells, _Cells.result.offset + integer)
        self.trap = ctypes.c_void_p.from_buffer(cells, _Cells.trap.offset)
        self.error = ctypes.c_void_p.from_buffer(cells, _Cells.error.offset)
        self.fuel = ctypes.c_uint64.from_buffer(cells, _Cells.fuel.offset)

    def clear(self) -> None:
        """Free a trap or an error that nobody took."""
        if self.trap.value:
            take_trap(self)
        if error := self.error.value:
            self.error.value = None
            error_text(error)


# --- reading what wasmtime says ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Trap:
    """Why a guest stopped.

    Attributes:
        code: wasmtime's trap code, or None for one that it does not number.
        backtrace: Innermost frame first, at most 16 and a line that says how many more; names are guest text, escaped
            and bounded.
    """

    code: wasmtime.TrapCode | None
    backtrace: tuple[str, ...]


def take_trap(scratch: Scratch) -> Trap:
    """Read the trap in ``scratch`` and free it."""
    trap = pointer(scratch.trap.value)
    scratch.trap.value = None
    code, frames = ctypes.c_uint8(), _Vector()
    known = _trap_code(trap, ctypes.byref(code))
    _trap_trace(trap, ctypes.byref(frames))
    backtrace = tuple(_frame_names(frames))
    _frames_delete(ctypes.byref(frames))
    _trap_delete(trap)
    return Trap(code=wasmtime.TrapCode(code.value) if known else None, backtrace=backtrace)


def _frame_names(frames: _Vector) -> Iterator[str]:
    count: int = frames.size
    if not count:
        return
    for address in (ctypes.c_void_p * min(count, _BACKTRACE_FRAMES)).from_address(frames.data):
        frame = pointer(address)
        if name := _frame_name(frame):
            yield _text(_Vector.from_address(name), _NAME_BYTES)
        else:
            yield f"function {_frame_index(frame)}"
    if count > _BACKTRACE_FRAMES:
        yield f"… {count - _BACKTRACE_FRAMES} more"


def error_text(address: int) -> str:
    """The message of a wasmtime error, which may quote the guest: escaped and bounded. Frees the error."""
    error, message = pointer(address), _Vector()
    _error_message(error, ctypes.byref(message))
    text = _text(message, _MESSAGE_BYTES)
    _bytes_delete(ctypes.byref(message))
    _error_delete(error)
    return text


def _text(vector: _Vector, most_bytes: int) -> str:
    # A name may be as long as a module's whole name section: only what `escape` can keep is copied.
    length = min(vector.size, most_bytes)
    return escape(copy_out(vector.data, length) if length else b"", characters=most_bytes // 4)


# --- the pool ---------------------------------------------------------------------------------------------------------


def pooled(config: wasmtime.Config, settings: EngineSettings) -> wasmtime.Config:
    """``config`` with a pooling allocator of ``settings.slots`` slots, for which wasmtime's package has no setter."""
    pool: Any = _wheel.wasmtime_pooling_allocation_config_new()
    slots = settings.slots
    sizes = {
        "total_core_instances": slots,
        "total_memories": slots,
        "total_tables": SLOT_TABLES * slots,
        "total_stacks": slots,
        "max_memories_per_module": 1,
        "max_tables_per_module": SLOT_TABLES,
        "max_core_instance_size": _INSTANCE_BYTES,
        "max_memory_size": settings.memory_bytes,
        "table_elements": settings.table_elements,
        "linear_memory_keep_resident": settings.keep_resident_bytes,
        "table_keep_resident": min(settings.keep_resident_bytes, 64 * 1024),
        "max_unused_warm_slots": slots,
    }
    for name, value in sizes.items():
        getattr(_wheel, f"wasmtime_pooling_allocation_config_{name}_set")(pool, value)
    _wheel.wasmtime_pooling_allocation_strategy_set(config.ptr(), pool)
    _wheel.wasmtime_pooling_allocation_config_delete(pool)
    return config
