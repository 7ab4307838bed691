"""What others offer for the same call: wasmtime's Python package, Extism, and a Python process for each call."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import wasmtime

from hookcell_sandbox import EngineSettings, Limits, native, settings

if TYPE_CHECKING:
    from guests import Case

__all__ = ["Public", "extism_calls", "subprocess_call"]


class Public:
    """The isolated call by the public interface of wasmtime's Python package, on an engine configured as ours is."""

    def __init__(self, artifacts: Path, chosen: EngineSettings, limits: Limits) -> None:
        self._engine = wasmtime.Engine(native.pooled(settings.config(chosen), chosen))
        self._artifacts, self._limits = artifacts, limits

    def call_of(self, case: Case) -> Callable[[], bytes | None]:
        """Make the call ready: a new store, a fresh instance, the payload in, the output out, the store closed."""
        [artifact] = self._artifacts.glob(f"*-{case.program.digest}.*.cwasm")
        engine, limits, entry, payload = self._engine, self._limits, case.entry, case.payload
        prepared = wasmtime.Linker(engine).instantiate_pre(wasmtime.Module.deserialize_file(engine, str(artifact)))
        size = len(payload)
        budget, alloc_budget = limits.fuel_for(size), 50_000 + 2 * size

        def call() -> bytes | None:
            store = wasmtime.Store(engine)
            store.set_limits(
                memory_size=limits.memory_bytes,
                table_elements=limits.table_elements,
                instances=1,
                tables=2,
                memories=1,
            )
            store.set_fuel(budget)
            exports: Any = prepared.instantiate(store).exports(store)
            memory = exports["memory"]
            store.set_fuel(alloc_budget)
            address = exports["hook_alloc"](store, size) & 0xFFFF_FFFF
            memory.write(store, payload, address)
            store.set_fuel(budget)
            packed = exports[entry](store, address, size) & 0xFFFF_FFFF_FFFF_FFFF
            at, length = packed >> 32, packed & 0xFFFF_FFFF
            output = bytes(memory.read(store, at, at + length)) if packed else None
            store.get_fuel()
            store.close()
            return output

        return call


def extism_calls(wasm: bytes, payload: bytes) -> dict[str, Callable[[], bytes]] | None:
    """Extism's call of an echo: in a fresh plugin of a module compiled before, in one that is compiled for each call,
    and in one that is used again and again. None where Extism is not installed.

    The first is not among the SDK's exported names; the second is what its documentation shows. Neither is given fuel,
    which this SDK has no argument for; the time and memory limits are ours.
    """
    if importlib.util.find_spec("extism") is None:
        return None
    from extism.extism import CompiledPlugin, Plugin

    limits = Limits()
    manifest = {
        "wasm": [{"data": wasm}],
        "memory": {"max_pages": limits.memory_bytes // 65_536},
        "timeout_ms": limits.deadline_ms,
    }
    compiled = CompiledPlugin(manifest, functions=[])
    kept = Plugin(compiled)
    return {
        "extism_fresh": lambda: Plugin(compiled).call("echo", payload),
        "extism_compiling": lambda: Plugin(manifest, functions=[]).call("echo", payload),
        "extism_reused": lambda: kept.call("echo", payload),
    }


_HOOK = """
import json, re, sys
context = json.load(sys.stdin)
def masked(value):
    if isinstance(value, str):
        value = re.sub(r"[\\w.%+'-]+@[\\w-]+(\\.[\\w-]+)*\\.[A-Za-z]\\w+", "[email]", value)
        return re.sub(r"\\+\\d[\\d .()/-]{6,20}\\d", "[phone]", value)
    if isinstance(value, dict):
        return {key: masked(item) for key, item in value.items()}
    return [masked(item) for item in value] if isinstance(value, list) else value
json.dump({"result": masked(context["result"]["result"])}, sys.stdout)
"""


def subprocess_call(context: dict[str, object]) -> Callable[[], bytes]:
    """The redacting hook as a command that reads JSON and writes JSON: a Python process for each call."""
    written = json.dumps(context).encode()

    def call() -> bytes:
        return subprocess.run([sys.executable, "-c", _HOOK], input=written, stdout=subprocess.PIPE, check=True).stdout

    return call
