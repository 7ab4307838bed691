"""What runs in the capture child: one module's setup, once, under the kernel's limits.

The setup is one call more of the kind that `call` makes, with the same fuel, deadline, memory and errors; in place of
an output it leaves its memory and its globals. The host speaks first, in three parts of `JOB` each: what to do (JSON),
the module, the artifact of its code. It gets one `REPLY`.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TYPE_CHECKING, BinaryIO

import wasmtime

from .admission import AdmissionPolicy, inspect
from .call import IsolatedCall
from .compile_child import (
    JOB,
    MESSAGE_BYTES,
    limit_for_good,
    limit_this_job,
    send,
    take_the_pipes,
    used_address_space_bytes,
)
from .errors import GuestError, GuestTrap, SandboxError
from .image import take_apart
from .instance import LONG_SLICE, Ceilings, Compiled, Name, NativeError, Pool
from .limits import Limits, ModuleLimits
from .program import Program
from .settings import EngineSettings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["POLICY", "Status", "serve"]

_DEFAULTS = ModuleLimits()

POLICY = AdmissionPolicy(
    entry_points=frozenset(),
    # A module made for capture exports what it keeps to itself otherwise.
    limits=ModuleLimits(exports=_DEFAULTS.exports + _DEFAULTS.globals),
)
"""What is captured: what would be admitted, but for the exports that make a module a hook."""


class Status:
    """The first byte of a reply."""

    CAPTURED = b"C"
    """The body is the globals and the result as JSON, a zero byte, and linear memory."""
    FAILED = b"F"
    """The guest failed; the body is its error as JSON."""
    UNFIT = b"U"
    """It was not the guest's fault; the body is a message."""


def serve(
    settings: Mapping[str, int], limits: Mapping[str, int], *, cpu_seconds: int, address_space_bytes: int
) -> None:
    """Run the setup that comes in on standard input.

    Args:
        settings: The fields of `EngineSettings`.
        limits: The fields of `Limits`.
        cpu_seconds: CPU time for all of it.
        address_space_bytes: Beyond what the slot of the pool reserves.
    """
    jobs, replies = take_the_pipes()
    try:
        pool = Pool(EngineSettings(**settings))
        # wasmtime keeps the memory that it laid out in a file without a name, which is no larger than the memory.
        limit_for_good(used_address_space_bytes() + address_space_bytes, file_bytes=limits["memory_bytes"])
        limit_this_job(cpu_seconds)
        plan, wasm, artifact = json.loads(_part(jobs)), _part(jobs), _part(jobs)
        functions = [(name, results) for name, results in plan["functions"]]
        setup = _prepared(pool, wasm, artifact, Limits(**limits), functions[-1][0])
        left = setup.run_all(pool, functions, plan["globals"])
    except GuestError as error:
        send(replies, Status.FAILED, json.dumps(_told(error)).encode())
    except Exception as error:
        send(replies, Status.UNFIT, f"{type(error).__name__}: {error}".encode("utf-8", "replace")[:MESSAGE_BYTES])
    else:
        head = json.dumps({"result": left.result, "globals": left.globals})
        send(replies, Status.CAPTURED, b"\0".join((head.encode(), left.memory)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Left:
    memory: bytes
    globals: list[int]
    result: int | None


class _Setup(IsolatedCall):
    """A call of functions that take nothing, in place of a hook's entry point."""

    __slots__ = ()

    def run_all(self, pool: Pool, functions: Sequence[tuple[str, int]], names: Sequence[str]) -> _Left:
        """Run each function (name, number of i64 results) in order, in one fresh instance, on one budget.

        Raises:
            GuestError: What the guest did, as its subclass says.
            SandboxError: wasmtime refused in a way that is not the guest's doing.
        """
        limits, compiled = self._limits, self._compiled
        budget = self._budget = limits.fuel
        self._deadline_ns = perf_counter_ns() + limits.deadline_ms * 1_000_000
        if compiled.memory_bytes > limits.memory_bytes or compiled.table_elements > limits.table_elements:
            self._fail_minimums()
        instance = None
        try:
            instance = self._instance = pool.instantiate(compiled, self._ceilings, budget, LONG_SLICE)
            if instance.failed():
                self._explain("instantiation")
            result = None
            for name, results in functions:
                if not instance.begin(Name(name), 0, 0, 0, results):
                    for _ in self._slices(instance, name):
                        pass
                if instance.failed():
                    self._explain(name)
                result = instance.result_64() if results else None
            memory = instance.read(0, instance.memory_bytes())
            if memory is None:
                raise SandboxError("linear memory cannot be read")
            return _Left(memory=memory, globals=[instance.global_64(Name(name)) for name in names], result=result)
        except NativeError as error:
            raise SandboxError(f"wasmtime failed in module {self._program.digest[:12]}: {error}") from None
        finally:
            if instance is not None:
                instance.close()


def _prepared(pool: Pool, wasm: bytes, artifact: bytes, limits: Limits, entry: str) -> _Setup:
    report = inspect(wasm, POLICY)
    module, image = wasmtime.Module.deserialize(pool.engine, artifact), take_apart(wasm, report).image
    compiled = Compiled(pool.engine, module, report, image)
    program = Program(digest=report.digest, entry_points=frozenset(), manifest=None, report=report, compiled=compiled)
    ceilings = Ceilings(memory_bytes=limits.memory_bytes, table_elements=limits.table_elements)
    return _Setup(compiled, program, entry, b"", limits, ceilings)


def _part(jobs: BinaryIO) -> bytes:
    (length,) = JOB.unpack(jobs.read(JOB.size))
    part = jobs.read(length)
    if len(part) != length:
        raise EOFError("the host's end of the pipe is gone")
    return part


def _told(error: GuestError) -> dict[str, object]:
    told: dict[str, object] = {
        "kind": type(error).__name__,
        "message": str(error),
        "entry": error.entry,
        "fuel_used": error.fuel_used,
        "log": base64.b64encode(error.log.raw).decode(),
        "cut": error.log.cut,
    }
    if isinstance(error, GuestTrap):
        told |= {"trap": error.trap, "backtrace": error.backtrace}
    return told
