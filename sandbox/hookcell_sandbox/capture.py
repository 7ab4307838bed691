"""Runs a module's own setup once and takes what it left behind, its linear memory and its globals: half a snapshot.

In a child process, used once; compiling has its own, as ever. A setup is the longest run that any guest has, and a
build must outlive whatever it does: the kernel bounds it on top of fuel, deadline and memory, and a wasmtime that
aborts takes only the child with it. What comes back is a guest's bytes and numbers, bounded and checked here; nothing
else of the child is believed.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import math
import threading
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

import wasmtime

from . import native
from .admission import inspect
from .capture_child import POLICY, Status
from .compile_child import JOB, MESSAGE_BYTES, REPLY
from .compile_children import CompileLimits
from .compile_link import start_child
from .compiler import Compiler
from .errors import (
    DeadlineExceeded,
    Finding,
    FuelExhausted,
    GuestError,
    GuestTrap,
    MemoryExceeded,
    ModuleRejected,
    SandboxUnusable,
    WorkerLost,
)
from .findings import Findings
from .guest_text import GuestLog, escape
from .image import take_apart
from .limits import MIB, PAGE_BYTES, Limits
from .module import read_module
from .settings import EngineSettings, config

if TYPE_CHECKING:
    from collections.abc import Sequence
    from subprocess import Popen

    from .admission import ModuleReport
    from .artifacts import ArtifactCache
    from .shape import Module

__all__ = ["CAPTURE_LIMITS", "Capture", "capture"]

CAPTURE_LIMITS: Final = Limits(fuel=2_000_000_000, deadline_ms=10_000)
"""Of a setup that names none: a hundred calls' worth, about two seconds. The memory is that of a call, since each call
will start with what the setup left."""

_START_SECONDS: Final = 60.0
"""How long the child may take to start and to load the artifact; two busy cores need about a second."""

_OWN_CPU_SECONDS: Final = 10
"""CPU time of the child beside the guest's."""

_ADDRESS_SPACE_BYTES: Final = 1024 * MIB
"""Beside the slot's: Python, wasmtime, the artifact, and copies of memory."""

_HEAD_BYTES: Final = 1 * MIB
"""Most that a reply holds beside memory and log; 2,000 globals are 44 KB."""

# What makes a module a hook; a module may be captured before it is one.
_OF_HOOKS: Final = frozenset({"no_entry_point", "missing_hook_alloc"})

_I32, _F32 = 0x7F, 0x7D
_NUMBERS: Final = frozenset({0x7F, 0x7E, 0x7D, 0x7C})
_I64_RESULT: Final = b"\x7e"
_LOW_32: Final = 0xFFFF_FFFF

_KINDS: Final[dict[str, type[GuestError]]] = {
    kind.__name__: kind for kind in (FuelExhausted, DeadlineExceeded, MemoryExceeded, GuestTrap)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """What a setup left behind.

    Attributes:
        memory: Linear memory, whole.
        globals: Name and value of each exported mutable global that is a number, in the module's order. The value is
            its bits, unsigned, also of a float: a NaN keeps its payload.
        result: What the entry returned, unsigned; None where it returns nothing.
    """

    memory: bytes = field(repr=False)
    globals: tuple[tuple[str, int], ...]
    result: int | None


def capture(
    wasm: bytes,
    entry: str,
    *,
    limits: Limits = CAPTURE_LIMITS,
    compile_limits: CompileLimits | None = None,
    cache: ArtifactCache | None = None,
) -> Capture:
    """Run ``_initialize``, if the module exports it, then ``entry``, in a fresh instance, and take what they left.

    Blocks: the module is compiled, which takes seconds for a large one, and a process is started.

    Args:
        wasm: Untrusted. No imports and no start section, and its memory is exported as ``memory``.
        entry: An exported function ``() -> ()`` or ``() -> i64``; may be ``_initialize`` itself.
        limits: Of fuel (``fuel`` alone, for all that runs), deadline, memory, table and log.
        compile_limits: What compiling may cost.
        cache: Where compiled code is kept, so that modules which differ in data alone are compiled once.

    Raises:
        ModuleRejected: With every finding; also where there is no such entry.
        GuestError: What the guest did, as its subclass says.
        WorkerLost: The child died, or stayed silent past every limit.
        SandboxUnusable: wasmtime's library does not fit.
        SandboxError: No child could be started, or the one that compiles was lost for no fault of the module.
    """
    if faults := native.faults():
        raise SandboxUnusable(f"the installed wasmtime does not fit: {'; '.join(faults)}")
    report, functions, names = _plan(wasm, entry)
    # A slot that holds what the module declares, so that a minimum over the limits is told as a call's would be.
    settings = EngineSettings(
        slots=1,
        memory_bytes=max(limits.memory_bytes, PAGE_BYTES, report.memory.minimum if report.memory else 0),
        table_elements=max(limits.table_elements, 1, *(table.minimum for table in report.tables)),
        keep_resident_bytes=0,
    )
    artifact = _compiled(wasm, report, settings, compile_limits or CompileLimits(), cache)
    plan = json.dumps({"functions": functions, "globals": [name for name, _ in names]}).encode()
    child = start_child(
        "capture_child",
        settings=asdict(settings),
        limits=asdict(limits),
        cpu_seconds=math.ceil(limits.deadline_ms / 1000) + _OWN_CPU_SECONDS,
        address_space_bytes=_ADDRESS_SPACE_BYTES,
    )
    # Base64 makes four bytes of three.
    most = _HEAD_BYTES + max(limits.memory_bytes, 2 * limits.log_bytes)
    status, body = _exchange(child, (plan, wasm, artifact), _START_SECONDS + limits.deadline_ms / 1000, most)
    try:
        if status == Status.CAPTURED:
            return _captured(body, names, limits)
        failure = _failure(body, wasm, limits) if status == Status.FAILED else None
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise WorkerLost("the capture child broke its protocol") from error
    if failure is None:
        raise WorkerLost(f"the capture child could not do its work: {escape(body, characters=500)}")
    raise failure


def _plan(wasm: bytes, entry: str) -> tuple[ModuleReport, list[tuple[str, int]], list[tuple[str, int]]]:
    """The report, the functions to call, each with its number of results, and the globals to take, with their types."""
    report = inspect(wasm, POLICY)
    faults = [finding for finding in report.findings if finding.code not in _OF_HOOKS]
    if faults:
        raise ModuleRejected(faults, digest=report.digest)
    # Without a finding, every index of it is there.
    module = read_module(wasm, limits=POLICY.limits, manifest_section=POLICY.manifest_section, findings=Findings())
    exported = {name.decode(): (kind, index) for name, kind, index in module.exports}
    fault, results = _signature(module, exported.get(entry), entry)
    if fault is not None:
        raise ModuleRejected([fault], digest=report.digest)
    functions = [(entry, results)]
    if report.has_initialize and entry != "_initialize":
        functions.insert(0, ("_initialize", 0))
    names = [
        (name, module.globals[index].type)
        for name, (kind, index) in exported.items()
        if kind == "global" and module.globals[index].mutable and module.globals[index].type in _NUMBERS
    ]
    return report, functions, names


def _signature(module: Module, target: tuple[str, int] | None, entry: str) -> tuple[Finding | None, int]:
    """What is wrong with the entry, and its number of results."""
    shown = escape(entry)
    if target is None or target[0] != "function":
        return Finding(code="no_entry_point", what=f"the module exports no function '{shown}'"), 0
    found = module.types[module.functions[target[1]]]
    if found.parameters or found.results not in (b"", _I64_RESULT):
        what, wanted = f"export '{shown}'", "() -> () or () -> (i64)"
        return Finding(code="export_signature", what=what, value=str(found), limit=wanted), 0
    return None, len(found.results)


def _compiled(
    wasm: bytes, report: ModuleReport, settings: EngineSettings, limits: CompileLimits, cache: ArtifactCache | None
) -> bytes:
    """The artifact of the module's code; its data may be apart, see `hookcell_sandbox.image`."""
    apart = take_apart(wasm, report)
    with contextlib.closing(Compiler(settings, limits=limits, cache=cache)) as compiler:
        # Loaded here and written again, since the compiler gives no more than modules, and the cache none but these.
        try:
            module = compiler.load(wasmtime.Engine(config(settings)), apart.code, apart.digest)
        except ModuleRejected as error:
            raise ModuleRejected(error.findings, digest=report.digest) from error  # the module's, not its code's
    return bytes(module.serialize())


def _exchange(child: Popen[bytes], parts: Sequence[bytes], seconds: float, most: int) -> tuple[bytes, bytes]:
    """Give the child its work and read its one reply, at most ``most`` bytes. The child is gone after that."""
    watch = threading.Timer(seconds, child.kill)
    watch.daemon = True
    try:
        watch.start()
        jobs, replies = child.stdin, child.stdout
        if jobs is None or replies is None:
            raise EOFError
        for part in parts:
            jobs.write(JOB.pack(len(part)))
            jobs.write(part)
        jobs.flush()
        header = replies.read(REPLY.size)
        if len(header) < REPLY.size:
            raise EOFError
        status, _, length = REPLY.unpack(header)
        if length > (MESSAGE_BYTES if status == Status.UNFIT else most):
            raise WorkerLost(f"the capture child's reply has {length:_} bytes; it was ended")
        body = replies.read(length)
        if len(body) < length:
            raise EOFError
    except (OSError, EOFError) as error:
        with contextlib.suppress(Exception):
            child.wait(5)
        raise WorkerLost(f"the capture child was lost (exit status {child.poll()})") from error
    finally:
        watch.cancel()
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout, child.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError, ValueError):
                    pipe.close()
    return status, body


def _captured(body: bytes, names: Sequence[tuple[str, int]], limits: Limits) -> Capture:
    """A reply read strictly. ValueError and the like: it is not one of ours."""
    head, separator, memory = body.partition(b"\0")
    told: Any = json.loads(head)
    result, bits = told["result"], told["globals"]
    if not separator or len(memory) > limits.memory_bytes or len(bits) != len(names):
        raise ValueError
    values = [_number(value) for value in bits]
    return Capture(
        memory=memory,
        globals=tuple(
            (name, value & _LOW_32 if kind in (_I32, _F32) else value)
            for (name, kind), value in zip(names, values, strict=True)
        ),
        result=None if result is None else _number(result),
    )


def _failure(body: bytes, wasm: bytes, limits: Limits) -> GuestError:
    """The error that the child tells of. Its words are a guest's until they are escaped here."""
    told: Any = json.loads(body)
    kind = _KINDS[told["kind"]]
    more: dict[str, Any] = {}
    if kind is GuestTrap:
        backtrace = tuple(_line(frame) for frame in told["backtrace"][:32])
        more = {"trap": _line(told["trap"]), "backtrace": backtrace}
    return kind(
        _line(told["message"]),
        entry=_line(told["entry"]),
        digest=hashlib.sha256(wasm).hexdigest(),
        limits=limits,
        fuel_used=_number(told["fuel_used"]),
        log=GuestLog(base64.b64decode(told["log"], validate=True)[: limits.log_bytes], cut=bool(told["cut"])),
        **more,
    )


def _number(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 64:
        raise ValueError
    return value


def _line(text: object) -> str:
    if type(text) is not str:
        raise ValueError
    return escape(text, characters=2_000)
