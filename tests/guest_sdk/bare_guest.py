"""One guest call through wasmtime's public API, no code of hookcell's sandbox between: what the ABI alone gives."""

from __future__ import annotations

import atexit
import struct
from dataclasses import dataclass
from pathlib import Path

import msgpack
import wasmtime

from hookcell_sandbox.limits import Limits
from hookcell_sandbox.settings import EngineSettings, config

_ENGINE = wasmtime.Engine(config(EngineSettings()))

_MODULES: list[wasmtime.Module] = []
# A module that is alive when the interpreter tears its own down complains on standard error.
atexit.register(_MODULES.clear)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one call gave: the outcome (None = nothing), the log, the entry point's fuel, memory at the end."""

    outcome: dict[str, object] | None
    log: str
    fuel: int
    memory_bytes: int


class BareGuest:
    """A module to call; each call has a store and an instance of its own."""

    def __init__(self, wasm: bytes | Path) -> None:
        _MODULES.append(wasmtime.Module(_ENGINE, wasm.read_bytes() if isinstance(wasm, Path) else wasm))
        self._index = len(_MODULES) - 1

    @property
    def module(self) -> wasmtime.Module:
        return _MODULES[self._index]

    def alloc(self, wanted: int) -> int:
        """What ``hook_alloc`` answers in a fresh instance, under the default memory limit and its own fuel."""
        store = wasmtime.Store(_ENGINE)
        store.set_limits(memory_size=2**24)
        store.set_fuel(50_000)
        exports = wasmtime.Instance(store, self.module, []).exports(store)
        return exports["hook_alloc"](store, wanted) & 0xFFFFFFFF

    def call(self, point: str, **context: object) -> Answer:
        return self.call_raw(point, msgpack.packb({"point": point, **context}))

    def call_raw(self, point: str, payload: bytes, *, fuel: int | None = None, memory_bytes: int = 2**24) -> Answer:
        store = wasmtime.Store(_ENGINE)
        store.set_limits(memory_size=memory_bytes)
        store.set_fuel(Limits().fuel_for(len(payload)) if fuel is None else fuel)
        exports = wasmtime.Instance(store, self.module, []).exports(store)
        memory = exports["memory"]
        address = exports["hook_alloc"](store, len(payload)) & 0xFFFFFFFF
        assert address != 0, "hook_alloc had no room"
        memory.write(store, payload, address)
        before = store.get_fuel()
        packed = exports[point](store, address, len(payload)) & 0xFFFFFFFFFFFFFFFF
        at, length = packed >> 32, packed & 0xFFFFFFFF
        raw = bytes(memory.read(store, at, at + length))
        assert len(raw) == length, "the outcome leaves linear memory"
        log_at = exports["hook_log"].value(store)
        (log_bytes,) = struct.unpack("<I", memory.read(store, log_at, log_at + 4))
        return Answer(
            outcome=msgpack.unpackb(raw) if packed else None,
            log=bytes(memory.read(store, log_at + 4, log_at + 4 + log_bytes)).decode(),
            fuel=before - store.get_fuel(),
            memory_bytes=memory.data_len(store),
        )
