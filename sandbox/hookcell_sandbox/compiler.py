"""Turns an admitted module into machine code without letting it cost the host more than it may.

A cached artifact is loaded; anything else is compiled in a child process under the kernel's limits, kept, and loaded.
The host's own engine never compiles.
"""

from __future__ import annotations

import hashlib
import sys
import threading
import time
import weakref
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import wasmtime

from .compile_child import MAGIC
from .compile_children import Children, CompileLimits
from .compile_link import Refusal
from .errors import Finding, ModuleRejected, SandboxBusy, SandboxError
from .guest_text import escape
from .settings import fingerprint

if TYPE_CHECKING:
    from .artifacts import ArtifactCache
    from .settings import EngineSettings

__all__ = ["CompileLimits", "Compiler", "unenforced"]


def unenforced() -> tuple[str, ...]:
    """The fields of `CompileLimits` that this platform cannot enforce; on Linux none.

    macOS does not hold a process to an address space. Windows has no limits of this kind: there a bomb runs until
    ``wall_seconds`` and takes what memory it takes.
    """
    if sys.platform == "linux":
        return ()
    return ("address_space_bytes", "cpu_seconds") if sys.platform == "win32" else ("address_space_bytes",)


@dataclass(slots=True, eq=False)
class _Flight:
    """One load of a digest that is under way, and what those who wait for it may use."""

    landed: threading.Event = field(default_factory=threading.Event)
    artifact: bytes | None = None
    refusal: tuple[Finding, ...] | None = None


class Compiler:
    """Loads modules for engines of one `EngineSettings`. Safe in many threads; every call blocks.

    A child is started by the first module that needs one, serves those after it, and is replaced after any failure.

    Args:
        settings: What the engines that `load` is given were made from.
        limits: What compiling may cost.
        cache: Where artifacts are kept between processes. None: nowhere.
    """

    def __init__(
        self, settings: EngineSettings, *, limits: CompileLimits | None = None, cache: ArtifactCache | None = None
    ) -> None:
        self.settings = settings
        self.limits = CompileLimits() if limits is None else limits
        self.cache = cache
        self._fingerprint = fingerprint(settings)
        self._lock = threading.RLock()  # a signal handler or a destructor may load a module too
        self._flights: dict[str, _Flight] = {}
        self._rejected: OrderedDict[str, tuple[Finding, ...]] = OrderedDict()
        self._children = Children(settings, self.limits)
        # Also at interpreter exit, where a child would otherwise end by itself but unwaited for.
        self._closing = weakref.finalize(self, self._children.close)

    def load(self, engine: wasmtime.Engine, wasm: bytes, digest: str) -> wasmtime.Module:
        """The compiled module, from the cache or by way of a child; threads that ask for one digest share one compile.

        Args:
            engine: Made from `settings.config` of the same settings, pooled or not.
            wasm: The module's bytes, admitted.
            digest: Their sha256, lowercase hex.

        Raises:
            ModuleRejected: wasmtime refused the module (``invalid_module``), or compiling it cost too much
                (``compile_limit``); the same digest is refused again without a try.
            SandboxBusy: Too many wait for a child, or this one waited too long.
            SandboxUnusable: Closed, inherited over a fork, or the library does not fit.
            SandboxError: The child did not start or was lost, for no fault of the module.
        """
        self._children.check()
        if hashlib.sha256(wasm).hexdigest() != digest:
            # The digest names the artifact: a wrong one would run another module's code.
            raise ValueError(f"digest {digest!r} is not the sha256 of the module")
        limits = self.limits
        if not wasm.startswith(MAGIC):
            # Admission found this before; nothing may come near wasmtime's reader of text.
            what = "the file does not begin as a core module of version 1"
            finding = Finding(code="invalid_module", what=what, hint="give a core module (.wasm)")
            raise ModuleRejected([finding], digest=digest)
        if len(wasm) > limits.module_bytes:
            what = "the module is too large to compile, bytes"
            finding = Finding(code="compile_limit", what=what, value=len(wasm), limit=limits.module_bytes)
            raise ModuleRejected([finding], digest=digest)
        until = time.monotonic() + limits.queue_wait_seconds + limits.wall_seconds
        ours = _Flight()
        try:
            while True:
                with self._lock:
                    if digest in self._rejected:
                        self._rejected.move_to_end(digest)
                        raise ModuleRejected(self._rejected[digest], digest=digest)
                    flight = self._flights.setdefault(digest, ours)
                if flight is ours:
                    return self._lead(ours, engine, wasm, digest)
                module = self._follow(flight, until, engine, digest)
                if module is not None:
                    return module
        finally:
            with self._lock:
                if self._flights.get(digest) is ours:
                    del self._flights[digest]
            ours.landed.set()

    def start(self) -> None:
        """Start a child now and let it try wasmtime's library, so that a misfit shows before the first module.

        Raises:
            SandboxUnusable: The library does not fit.
            SandboxError: No child could be started.
        """
        with self._children.borrow():
            pass

    def close(self) -> None:
        """End the children, busy ones too; whoever waits for them gets `SandboxUnusable`. Loaded modules stay."""
        self._closing()

    def _lead(self, flight: _Flight, engine: wasmtime.Engine, wasm: bytes, digest: str) -> wasmtime.Module:
        """Load for all who ask for this digest at the moment."""
        key = f"{self._fingerprint}-{digest}"
        module = None if self.cache is None else self.cache.load(engine, key)
        if module is not None:
            return module
        with self._children.borrow() as child:
            made = child.compile(wasm)
        if isinstance(made, Refusal):
            flight.refusal = (made.finding,)
            self._remember(digest, flight.refusal)
            raise ModuleRejected(flight.refusal, digest=digest)
        flight.artifact = made
        # From the file if there is one, so that processes share its pages.
        if self.cache is not None and self.cache.store(key, made):
            module = self.cache.load(engine, key)
        return _loaded(engine, made) if module is None else module

    def _follow(self, flight: _Flight, until: float, engine: wasmtime.Engine, digest: str) -> wasmtime.Module | None:
        """Wait for another thread's load of this digest; None when it came to nothing that serves this one."""
        if not flight.landed.wait(max(0.0, until - time.monotonic())):
            raise SandboxBusy(f"module {digest[:12]} is still being compiled for another caller; try again later")
        self._children.check()
        if flight.refusal is not None:
            raise ModuleRejected(flight.refusal, digest=digest)
        return None if flight.artifact is None else _loaded(engine, flight.artifact)

    def _remember(self, digest: str, findings: tuple[Finding, ...]) -> None:
        with self._lock:
            self._rejected[digest] = findings
            while len(self._rejected) > self.limits.rejected:
                self._rejected.popitem(last=False)


def _loaded(engine: wasmtime.Engine, artifact: bytes) -> wasmtime.Module:
    try:
        return wasmtime.Module.deserialize(engine, artifact)
    except wasmtime.WasmtimeError as error:
        raise SandboxError(
            f"a fresh artifact does not load ({escape(str(error), characters=500)}); make the engine from the "
            "compiler's own settings, or lower ModuleLimits to what they hold"
        ) from error
