"""The pure-C floor: builds ``floor.c``, gives it the sandbox's own settings, and asks it for calls over a pipe."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from array import array
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self
from unittest.mock import patch

import wasmtime
import wasmtime._bindings as _bindings
from rounds import Batch, warm_calls

from hookcell_sandbox import EngineSettings, Limits, native, settings

if TYPE_CHECKING:
    from guests import Case

__all__ = ["Floor", "FloorMissing", "engine_settings"]

_SOURCE = Path(__file__).with_suffix(".c")


class FloorMissing(Exception):
    """The floor cannot be measured here. The text says which tool is missing."""


def engine_settings(chosen: EngineSettings) -> list[tuple[str, str, int]]:
    """Every call that the sandbox's own code makes to configure its engine: function, width of the value, value.

    Noted while that code runs, so that the floor cannot be configured otherwise than the sandbox.
    """
    noted: list[tuple[str, str, int]] = []

    class Noting:
        def __getattr__(self, name: str) -> Any:
            function = getattr(_bindings, name)
            if not name.endswith("_set") or name == "wasmtime_pooling_allocation_strategy_set":
                return function

            def note(target: object, value: int) -> Any:
                width = 8 * _size_of_argument(name)
                noted.append((name, f"{width}bit", int(value)))
                return function(target, value)

            return note

    with patch.object(settings, "_c", Noting()), patch.object(native, "_wheel", Noting()):
        wasmtime.Engine(native.pooled(settings.config(chosen), chosen))
    return noted


def _size_of_argument(name: str) -> int:
    import ctypes

    return ctypes.sizeof(getattr(_bindings, f"_{name}").argtypes[1])


class Floor:
    """The C program, running. A context manager.

    Args:
        scratch: A folder for the program and payloads.
        artifacts: Where the sandbox's compiler kept its artifacts.
        chosen: The sandbox's engine settings.
        limits: The sandbox's limits.

    Raises:
        FloorMissing: There is no compiler.
    """

    def __init__(self, scratch: Path, artifacts: Path, chosen: EngineSettings, limits: Limits) -> None:
        self._scratch, self._artifacts, self._limits = scratch, artifacts, limits
        program = _built(scratch / "floor")
        library: str = native._PATH
        self._child = subprocess.Popen([program, library], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._guests = 0
        for name, width, value in engine_settings(chosen):
            self._tell("set", name, width, value)

    def guest(self, case: Case) -> int:
        """Load a case's program, by the artifact that the sandbox runs, and its payload. Gives the guest's number."""
        [artifact] = self._artifacts.glob(f"*-{case.program.digest}.*.cwasm")
        payload = self._scratch / f"payload-{self._guests}"
        payload.write_bytes(case.payload)
        self._guests += 1
        size, limits = len(case.payload), self._limits
        # hook_alloc's own budget, as guest_sdk/ABI.md has it.
        budgets = (limits.fuel_for(size), 50_000 + 2 * size)
        ceilings = (limits.memory_bytes, limits.table_elements)
        self._tell("guest", artifact, case.entry, payload, *ceilings, *budgets)
        return int(self._line())

    def answer(self, guest: int) -> tuple[int, bytes]:
        """One call: the fuel it used, and its output."""
        self._tell("answer", guest)
        fuel, size = self._line().split(b"\t")
        return int(fuel), self._bytes(int(size))

    def batch(self, guest: int) -> Batch:
        """Calls of a guest, timed inside the C program."""

        def batch(count: int) -> array[int]:
            self._tell("run", guest, warm_calls(count), count)
            taken = array("Q")
            taken.frombytes(self._bytes(8 * count))
            return taken

        return batch

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for end in (self._stdin, self._stdout):
            end.close()
        self._child.wait(10)

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._child.stdin is not None
        return self._child.stdin

    @property
    def _stdout(self) -> IO[bytes]:
        assert self._child.stdout is not None
        return self._child.stdout

    def _tell(self, *words: object) -> None:
        self._stdin.write("\t".join(map(str, words)).encode() + b"\n")
        self._stdin.flush()

    def _line(self) -> bytes:
        return self._whole(self._stdout.readline().rstrip(b"\n"), 1)

    def _bytes(self, size: int) -> bytes:
        return self._whole(self._stdout.read(size), size)

    def _whole(self, answer: bytes, least: int) -> bytes:
        if len(answer) < least:
            raise RuntimeError(f"the C program ended with code {self._child.wait(10)}; its reason is on standard error")
        return answer


def _built(program: Path) -> str:
    if importlib.util.find_spec("ziglang") is None:
        raise FloorMissing("ziglang is not installed: pip install 'hookcell[bench]'")
    command = [sys.executable, "-m", "ziglang", "cc", "-O2", "-std=gnu17", "-Wall", "-Wextra", "-Werror"]
    command += ["-o", str(program), str(_SOURCE), "-ldl"]
    run = subprocess.run(command, cwd=program.parent, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise FloorMissing(f"floor.c does not build here: {run.stderr.strip()}")
    return str(program)
