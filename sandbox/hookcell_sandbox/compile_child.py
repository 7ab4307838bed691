"""What runs in the compile child: modules in, artifacts out, one after the other, under the kernel's limits.

Compiling cannot be interrupted and hostile code makes it take minutes or gigabytes, so it happens where the kernel may
end it. The child holds nothing but a pipe in each direction. It imports little, since each bomb costs one start.

Both ends of the pipes speak `JOB` and `REPLY`: a header of fixed size, then as many bytes as it says, which the reader
bounds before it takes them.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import math
import os
import struct
import sys
import time
from typing import TYPE_CHECKING, BinaryIO

import wasmtime

from .settings import EngineSettings, config

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "JOB",
    "MAGIC",
    "MESSAGE_BYTES",
    "REPLY",
    "Status",
    "limit_for_good",
    "limit_this_job",
    "send",
    "serve",
    "take_the_pipes",
    "used_address_space_bytes",
]

JOB = struct.Struct("<Q")
"""Host to child: length of the module in bytes, then the module."""

REPLY = struct.Struct("<cQQ")
"""Child to host: status, address space the child still uses in bytes (0 = unknown), length, then the body."""

MAGIC = b"\0asm\x01\0\0\0"
"""How a core module begins. wasmtime's Python package takes what does not begin with a zero byte for text."""

MESSAGE_BYTES = 4_096
"""The most that a message in a reply holds."""


class Status:
    """The first byte of a reply."""

    READY = b"R"
    """The child has started; the body is empty."""
    UNFIT = b"U"
    """The child cannot work here; the body is a message. It ends."""
    ARTIFACT = b"A"
    """The module compiled; the body is the artifact."""
    INVALID = b"I"
    """wasmtime refused the module; the body is its message, which holds guest text."""
    TOO_LARGE = b"L"
    """The artifact is over its limit; the body is its size, in digits."""
    NO_MEMORY = b"M"
    """Compiling or serialising ran out of memory where Python notices. The child ends."""


def serve(settings: Mapping[str, int], limits: Mapping[str, int], *, self_check: bool) -> None:
    """Compile what comes in on standard input until it ends.

    Args:
        settings: The fields of `EngineSettings`.
        limits: ``module_bytes``, ``artifact_bytes``, ``cpu_seconds`` and ``address_space_bytes``.
        self_check: Try the library once before the limits are set (`self_check`).
    """
    jobs, replies = take_the_pipes()
    try:
        if self_check:
            from .self_check import self_check as check

            check()
            gc.collect()  # its pool reserves address space, which would count against the limit below
        # Unpooled: a pool reserves hundreds of gigabytes of address space. The artifacts are the same.
        engine = wasmtime.Engine(config(EngineSettings(**settings)))
        limit_for_good(limits["address_space_bytes"])
    except Exception as error:
        send(replies, Status.UNFIT, f"{type(error).__name__}: {error}".encode("utf-8", "replace")[:MESSAGE_BYTES])
        raise SystemExit(1) from None
    send(replies, Status.READY, b"")
    while header := jobs.read(JOB.size):
        (length,) = JOB.unpack(header)
        if length > limits["module_bytes"]:
            raise SystemExit(2)
        wasm = jobs.read(length)
        if len(wasm) != length:
            return
        limit_this_job(limits["cpu_seconds"])
        status, body = _compiled(engine, wasm, limits["artifact_bytes"])
        send(replies, status, body)
        if status == Status.NO_MEMORY:
            raise SystemExit(3)


def _compiled(engine: wasmtime.Engine, wasm: bytes, artifact_bytes: int) -> tuple[bytes, bytes | bytearray]:
    """The status and the body of the reply to one module."""
    if not wasm.startswith(MAGIC):
        return Status.INVALID, b"not a WebAssembly module of version 1"
    try:
        artifact = wasmtime.Module(engine, wasm).serialize()
    except wasmtime.WasmtimeError as error:
        message = str(error)
        if os.strerror(errno.ENOMEM) in message:
            return Status.NO_MEMORY, b""
        return Status.INVALID, message.encode("utf-8", "replace")[:MESSAGE_BYTES]
    except MemoryError:
        return Status.NO_MEMORY, b""
    if len(artifact) > artifact_bytes:
        return Status.TOO_LARGE, str(len(artifact)).encode()
    return Status.ARTIFACT, artifact


def take_the_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The ends that carry jobs and replies, moved where no stray print or read can reach them."""
    jobs = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    # Nobody reads the error pipe while the child lives: what does not fit is dropped instead of blocking.
    with contextlib.suppress(OSError, AttributeError):
        os.set_blocking(2, False)
    return jobs, replies


def send(replies: BinaryIO, status: bytes, body: bytes | bytearray) -> None:
    """Write one reply."""
    replies.write(REPLY.pack(status, used_address_space_bytes(), len(body)))
    replies.write(body)
    replies.flush()


def limit_for_good(address_space_bytes: int, file_bytes: int = 0) -> None:
    """Put this process under the limits that no job lifts: address space, no core dump, no larger file of its own."""
    # Where memory is short, this process goes first and not the host (Linux).
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:  # noqa: PTH123 pathlib costs a start 4 ms
        score.write("1000")
    if sys.platform == "win32":
        return
    import resource
    import signal

    # Inherited from a host that ignores or blocks it, the signal of the CPU limit would be no limit.
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    _lower(resource.RLIMIT_CORE, 0)
    # The pipes are not files to this limit.
    _lower(resource.RLIMIT_FSIZE, file_bytes)
    if sys.platform == "linux":
        _lower(resource.RLIMIT_AS, address_space_bytes)


def limit_this_job(cpu_seconds: int) -> None:
    """Let this process use so many CPU seconds more. Only the soft limit, so that the next job can have as many."""
    if sys.platform == "win32":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = math.ceil(time.process_time()) + cpu_seconds
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _lower(limit: int, value: int) -> None:
    import resource

    _, hard = resource.getrlimit(limit)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(limit, (value, value))


def used_address_space_bytes() -> int:
    """Address space of this process; 0 = unknown."""
    # Not ru_maxrss: started by vfork, a process inherits the host's.
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 as above
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
