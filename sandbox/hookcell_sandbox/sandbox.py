"""The sandbox: an admitted, compiled module and a payload in, an output or a typed error out."""

from __future__ import annotations

import atexit
import os
import re
import threading
import time
import weakref
from collections.abc import Generator
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Final, Protocol, Self

import anyio
import anyio.to_thread

from . import native
from .admission import AdmissionPolicy, admit
from .call import IsolatedCall
from .compiler import CompileLimits, Compiler
from .errors import InputTooLarge, ModuleRejected, SandboxBusy, SandboxUnusable
from .image import take_apart
from .instance import LONG_SLICE, SLICE, Ceilings, Compiled, NoSlot, Pool
from .lane import current_lane
from .limits import Limits
from .program import Completion, Program
from .settings import EngineSettings

if TYPE_CHECKING:
    from ctypes import c_uint64

    import wasmtime

    from .admission import ModuleReport
    from .artifacts import ArtifactCache
    from .image import Apart

__all__ = ["Runner", "Sandbox"]

_WASMTIME: Final = ((50, 0, 1), (51,))
"""From this version on, below that one: what `native` was written and tested against."""

_RETRY_SECONDS: Final = 0.001


class Runner(Protocol):
    """The sandbox as the engine sees it, one call wide; a test replaces it with a few lines."""

    async def run(self, program: Program, entry: str, payload: bytes, limits: Limits) -> Completion:
        """Run one entry point on a payload, in an event loop."""
        ...

    def run_sync(self, program: Program, entry: str, payload: bytes, limits: Limits) -> Completion:
        """The same from a plain thread."""
        ...


class Sandbox:
    """Runs each call in a fresh instance, under limits, in this process.

    Safe to use from many threads and event loops at once. Use it as a context manager or `close` it.

    Args:
        settings: What is fixed for the engine's life: slots, largest memory, stack.
        limits: Limits of a call that names none; also what `Program`s are admitted for.
        wait_ms: How long a call waits for a slot before it gives up.
        compile_limits: What compiling one module may take.
        cache: Where compiled code is kept over restarts; None compiles anew in each process.

    Raises:
        SandboxUnusable: The installed wasmtime is not one that this version was written for.
    """

    def __init__(
        self,
        *,
        settings: EngineSettings | None = None,
        limits: Limits | None = None,
        wait_ms: int = 1_000,
        compile_limits: CompileLimits | None = None,
        cache: ArtifactCache | None = None,
    ) -> None:
        _check_library()
        self.settings = settings or EngineSettings()
        self.limits = limits or Limits()
        if wait_ms < 0:
            raise ValueError(f"wait_ms is {wait_ms}; give 0 or more")
        self._wait_ms = wait_ms
        self._why_not: str | None = None
        self._fitting = (self.limits, self._check_fit(self.limits))
        self._pool = Pool(self.settings)
        self._compiler = Compiler(self.settings, limits=compile_limits or CompileLimits(), cache=cache)
        self._lock = threading.RLock()  # as in `Pool`
        # By digest and entry points: one module may be loaded under several policies.
        self._compiled: weakref.WeakValueDictionary[tuple[str, frozenset[str]], Compiled] = (
            weakref.WeakValueDictionary()
        )
        # By digest of the code.
        self._modules: weakref.WeakValueDictionary[str, wasmtime.Module] = weakref.WeakValueDictionary()
        _sandboxes.add(self)

    @property
    def taken(self) -> int:
        """Calls in flight."""
        return self._pool.taken

    # --- loading ----------------------------------------------------------------------------------------------------

    def load(self, wasm: bytes, policy: AdmissionPolicy) -> Program:
        """Admit and compile a module. Blocks: half a second to read a hostile one, seconds to compile a large one.

        Raises:
            ModuleRejected: With every finding.
            SandboxBusy: Too many modules are waiting to be compiled.
        """
        self._check_usable()
        report = admit(wasm, self._fitted(policy))
        key = (report.digest, report.entry_points)
        with self._lock:
            compiled = self._compiled.get(key)
        if compiled is None:
            apart = take_apart(wasm, report)
            module = self._module(apart, report)
            with self._lock:
                compiled = self._compiled.setdefault(key, Compiled(self._pool.engine, module, report, apart.image))
        return Program(
            digest=report.digest,
            entry_points=report.entry_points,
            manifest=report.manifest,
            report=report,
            compiled=compiled,
        )

    def _module(self, apart: Apart, report: ModuleReport) -> wasmtime.Module:
        """The compiled code, shared by all modules that differ in data alone."""
        with self._lock:
            module = self._modules.get(apart.digest)
        if module is None:
            try:
                module = self._compiler.load(self._pool.engine, apart.code, apart.digest)
            except ModuleRejected as error:
                raise ModuleRejected(error.findings, digest=report.digest) from error  # the module's, not its code's
            with self._lock:
                module = self._modules.setdefault(apart.digest, module)
        return module

    def _fitted(self, policy: AdmissionPolicy) -> AdmissionPolicy:
        """The policy, where it would admit what no slot holds, made to refuse it with a finding."""
        limits, settings = policy.limits, self.settings
        fitted = replace(
            limits,
            memory_bytes=min(limits.memory_bytes, settings.memory_bytes),
            table_elements=min(limits.table_elements, settings.table_elements),
            tables=min(limits.tables, native.SLOT_TABLES),
        )
        return policy if fitted == limits else replace(policy, limits=fitted)

    async def load_async(self, wasm: bytes, policy: AdmissionPolicy) -> Program:
        """`load`, off the event loop."""
        return await anyio.to_thread.run_sync(self.load, wasm, policy)

    def check_limits(self, limits: Limits) -> None:
        """Raise ``ValueError`` when a call under ``limits`` could not run here: `run` would say the same, later."""
        self._check_fit(limits)

    # --- running ----------------------------------------------------------------------------------------------------

    async def run(self, program: Program, entry: str, payload: bytes, limits: Limits | None = None) -> Completion:
        """Run ``entry`` on ``payload`` in a fresh instance, under asyncio or trio.

        A short call finishes in place. A long one yields to the loop between slices of fuel and can be cancelled there.

        Raises:
            GuestError: What the guest did, as its subclass says.
            InputTooLarge: The payload is over ``limits.input_bytes``.
            SandboxBusy: No slot came free within ``wait_ms``.
            SandboxUnusable: The sandbox is closed, or this process is a fork of the one that made it.
        """
        limits = self.limits if limits is None else limits
        lane = current_lane()
        try:
            return await lane.drive(self._slices(program, entry, payload, limits))
        except NoSlot:
            give_up_at = time.monotonic() + self._wait_ms / 1000
        while time.monotonic() < give_up_at:
            await anyio.sleep(_RETRY_SECONDS)
            try:
                return await lane.drive(self._slices(program, entry, payload, limits))
            except NoSlot:
                continue
        raise self._busy()

    def run_sync(self, program: Program, entry: str, payload: bytes, limits: Limits | None = None) -> Completion:
        """`run` from a plain thread. Raises the same."""
        limits = self.limits if limits is None else limits
        try:
            return _drain(self._slices(program, entry, payload, limits, LONG_SLICE))
        except NoSlot:
            give_up_at = time.monotonic() + self._wait_ms / 1000
        while time.monotonic() < give_up_at:
            time.sleep(_RETRY_SECONDS)
            try:
                return _drain(self._slices(program, entry, payload, limits, LONG_SLICE))
            except NoSlot:
                continue
        raise self._busy()

    def _slices(
        self, program: Program, entry: str, payload: bytes, limits: Limits, slice_fuel: c_uint64 = SLICE
    ) -> Generator[None, None, Completion]:
        if self._why_not is not None:
            raise SandboxUnusable(self._why_not)
        # Not a bytearray or a view either: the C call takes none, and another thread could resize it in between.
        if type(payload) is not bytes:
            raise TypeError(f"the payload is {type(payload).__name__}; give bytes")
        fitting, ceilings = self._fitting
        if limits is not fitting:
            ceilings = self._check_fit(limits)
        if len(payload) > limits.input_bytes:
            raise InputTooLarge(
                f"the payload for {entry} has {len(payload):_} bytes, over the limit of input_bytes="
                f"{limits.input_bytes:_}; send less context or raise it",
                size=len(payload),
                limit=limits.input_bytes,
            )
        compiled = program.compiled
        # An instance of another engine's module in this engine's store ends the process.
        if not isinstance(compiled, Compiled) or compiled.engine is not self._pool.engine:
            raise ValueError("the program was loaded by another sandbox; load it with this one")
        if entry not in program.entry_points:
            raise ValueError(f"module {program.digest[:12]} has no entry point {entry!r}: see program.entry_points")
        return IsolatedCall(compiled, program, entry, payload, limits, ceilings).run(self._pool, slice_fuel)

    def _check_fit(self, limits: Limits) -> Ceilings:
        settings = self.settings
        for name in ("memory_bytes", "table_elements"):
            asked, held = getattr(limits, name), getattr(settings, name)
            if asked > held:
                raise ValueError(
                    f"limits.{name} is {asked:_}, more than a slot holds ({held:_}); raise EngineSettings.{name} too"
                )
        ceilings = Ceilings(memory_bytes=limits.memory_bytes, table_elements=limits.table_elements)
        self._fitting = (limits, ceilings)  # one store, so that another thread sees a pair that belongs together
        return ceilings

    def _busy(self) -> SandboxBusy:
        return SandboxBusy(
            f"all {self.settings.slots:_} slots stayed taken for wait_ms={self._wait_ms:_}; try later, or raise "
            "EngineSettings.slots"
        )

    # --- ending -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Take no more calls. Those in flight come to their end. Safe to call again."""
        self.retire("the sandbox is closed; make a new one")
        self._compiler.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_usable(self) -> None:
        if self._why_not is not None:
            raise SandboxUnusable(self._why_not)

    def retire(self, why: str) -> None:
        """Refuse every call from here on, saying why. The first reason stands."""
        self._why_not = self._why_not or why


def _drain(slices: Generator[None, None, Completion]) -> Completion:
    while True:
        try:
            next(slices)
        except StopIteration as end:
            return end.value


@cache
def _check_library() -> None:
    """Refuse a wasmtime whose calls or layouts are not those that `native` relies on, before the first of them."""
    installed = version("wasmtime")
    numbers = tuple(int(part) for part in re.findall(r"\d+", installed)[:3])
    faults = native.faults()
    if not _WASMTIME[0] <= numbers < _WASMTIME[1]:
        faults.insert(0, f"version {installed} is not one that was tested")
    if faults:
        raise SandboxUnusable(
            f"the installed wasmtime {installed} does not fit: {'; '.join(faults)}. Install wasmtime>=50.0.1,<51"
        )


_sandboxes: weakref.WeakSet[Sandbox] = weakref.WeakSet()
_disowned: list[Sandbox] = []


def _after_fork() -> None:
    native.disown()
    for sandbox in list(_sandboxes):
        sandbox.retire("this process was forked from the one that made the sandbox; make a new one here")
        _disowned.append(sandbox)  # kept for good: its engine's destructor is the parent's business too


@atexit.register
def _at_exit() -> None:
    for sandbox in list(_sandboxes):
        sandbox.retire("the interpreter is shutting down")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
