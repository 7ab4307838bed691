"""The host's end of one compile child: starts it, gives it one module at a time, and tells whose fault its death is."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .compile_child import JOB, MESSAGE_BYTES, REPLY, Status
from .errors import Finding, SandboxError, SandboxUnusable
from .findings import FINDING_CODES
from .guest_text import escape

if TYPE_CHECKING:
    from .compile_children import CompileLimits
    from .settings import EngineSettings

__all__ = ["ChildLost", "CompileLink", "Refusal", "start_child"]

_START_SECONDS = 60.0
"""How long a child may take to start; two busy cores need about a second."""

# A package object with a path and nothing run, so that the child imports its own few modules and not the whole sandbox.
_BOOTSTRAP = """\
import json, sys, types
given = json.loads(sys.argv[1])
sys.path[:] = given["path"]
package = types.ModuleType(given["package"])
package.__path__ = [given["folder"]]
sys.modules[given["package"]] = package
from importlib import import_module
import_module(given["package"] + "." + given["module"]).serve(**given["serve"])
"""

# Deaths that hostile code can bring about. Any other is an accident, and not held against the module.
_DEADLY = ("SIGABRT", "SIGKILL", "SIGXCPU", "SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGTRAP")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The child's verdict against a module."""

    finding: Finding


class ChildLost(SandboxError):
    """The child ended for a reason that is not the module's; a new one may do better."""


class CompileLink:
    """One compile child. One caller at a time; once `spent`, only `close` is of use."""

    def __init__(self, settings: EngineSettings, limits: CompileLimits, *, self_check: bool) -> None:
        """Start a child and wait until it is ready.

        Raises:
            SandboxUnusable: The self-check found that wasmtime's library does not fit.
            SandboxError: The child did not start.
        """
        self._limits = limits
        self.spent = False
        self._lock = threading.Lock()
        self._turn: object = None
        self._overdue = False
        self._broke = False
        self._closed = False
        self._process = _start(settings, limits, self_check=self_check)
        try:
            status, body = self._exchange(None, _START_SECONDS)
        except ChildLost as error:
            end = self._end()
            said = self._last_words()
            self.close()
            # SIGKILL comes from elsewhere: our own watch, or a kernel short of memory.
            if self_check and end.startswith("SIG") and end != "SIGKILL":
                raise SandboxUnusable(
                    f"the self-check of wasmtime's library killed its process ({end}); install the version that "
                    "hookcell asks for"
                ) from error
            raise SandboxError(f"the compile child did not start ({end}): {said}") from error
        except BaseException:
            self.close()
            raise
        if status != Status.READY:
            self.close()
            raise SandboxUnusable(f"the compile child cannot work here: {escape(body, characters=500)}")

    def compile(self, wasm: bytes) -> bytes | Refusal:
        """The artifact of a module, or why it has none.

        Raises:
            ChildLost: The child ended, and not for the module's sake; see `spent`.
        """
        try:
            status, body = self._exchange(wasm, self._limits.wall_seconds)
        except ChildLost:
            refusal = self._blame()
            if refusal is None:
                raise
            return refusal
        if status == Status.ARTIFACT:
            return body
        if status == Status.INVALID:
            return Refusal(finding=_invalid(body))
        if status == Status.TOO_LARGE and body.isdigit():
            return Refusal(
                finding=_too_costly(
                    "the compiled code is too large", value=int(body), limit=self._limits.artifact_bytes
                )
            )
        self._kill()
        if status == Status.NO_MEMORY:
            return Refusal(
                finding=_too_costly("compiling ran out of memory", limit=_bytes(self._limits.address_space_bytes))
            )
        raise ChildLost("the compile child broke its protocol and was ended; load the module again")

    def close(self) -> None:
        """End the child, from any thread, whatever it is doing. Does nothing the second time."""
        self._closed = True
        self._kill()
        # Flushing what is left to a dead child fails, and closes all the same.
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError, ValueError):
                    pipe.close()

    @property
    def alive(self) -> bool:
        """False once the child is known to have ended."""
        return not self.spent and self._process.poll() is None

    def _exchange(self, wasm: bytes | None, seconds: float) -> tuple[bytes, bytes]:
        """Send a module, or nothing while the child starts, and read the reply; the child dies if that takes longer."""
        turn = object()
        watch = threading.Timer(seconds, self._expire, (turn,))
        watch.daemon = True
        try:
            self._turn = turn
            watch.start()
            status, address_space_bytes, body = self._talk(wasm)
        except (OSError, EOFError, ValueError) as error:
            # ValueError: `close` closed the pipe under us.
            self._mourn()
            raise ChildLost(f"the compile child was lost ({self._end()}); load the module again") from error
        except RuntimeError as error:
            self._kill()
            raise ChildLost(f"the compile child cannot be watched ({error}) and was ended") from error
        except BaseException:
            # Interrupted midway: what is in the pipes belongs to nobody.
            self._kill()
            raise
        finally:
            watch.cancel()
            # A watch that rang at the same instant must not ring into the next turn.
            with self._lock:
                self._turn = None
        # A heap that stays this large may fail the next module for the last one's sake.
        if self._overdue or address_space_bytes > self._limits.address_space_bytes // 4:
            self.spent = True
        return status, body

    def _talk(self, wasm: bytes | None) -> tuple[bytes, int, bytes]:
        """Status, address space in use and body of one reply. EOFError: the pipe ended, or holds what no child says."""
        jobs, replies = self._process.stdin, self._process.stdout
        if jobs is None or replies is None:
            raise EOFError
        if wasm is not None:
            jobs.write(JOB.pack(len(wasm)))
            jobs.write(wasm)
            jobs.flush()
        header = replies.read(REPLY.size)
        if len(header) < REPLY.size:
            raise EOFError
        status, address_space_bytes, length = REPLY.unpack(header)
        if length > (self._limits.artifact_bytes if status == Status.ARTIFACT else MESSAGE_BYTES):
            self._broke = True
            self._kill()
            raise EOFError
        body = replies.read(length)
        if len(body) < length:
            raise EOFError
        return status, address_space_bytes, body

    def _expire(self, turn: object) -> None:
        with self._lock:
            if self._turn is turn:
                self._overdue = True
                self._process.kill()

    def _mourn(self) -> None:
        """Wait for the end of a child that closed its pipe, without giving it long."""
        self.spent = True
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._broke = True
            self._kill()

    def _kill(self) -> None:
        self.spent = True
        self._process.kill()
        self._process.wait()

    def _end(self) -> str:
        """How the child ended, in a word."""
        code = self._process.returncode
        if code is None:
            return "still running"
        if code >= 0:
            return f"exit code {code}"
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"

    def _blame(self) -> Refusal | None:
        """The module's share in the child's end; None when it had none."""
        if self._closed or self._broke:
            return None
        limits = self._limits
        if self._overdue:
            return Refusal(finding=_too_costly("compiling took too long", limit=f"{limits.wall_seconds:g} s"))
        end = self._end()
        if end == "SIGXCPU":
            return Refusal(finding=_too_costly("compiling took too much CPU time", limit=f"{limits.cpu_seconds} s"))
        # An abort is how wasmtime meets the end of its memory. Windows shows a crash as an NTSTATUS of severity error.
        if end in _DEADLY or (sys.platform == "win32" and (self._process.returncode or 0) >= 0xC0000000):
            return Refusal(
                finding=_too_costly(
                    f"compiling ended in {end}, most likely for want of memory",
                    limit=_bytes(limits.address_space_bytes),
                )
            )
        return None

    def _last_words(self) -> str:
        """The end of what the child wrote to its error pipe: one line, bounded, escaped."""
        pipe = self._process.stderr
        if pipe is None:
            return "nothing said"
        with contextlib.suppress(OSError, ValueError):
            # All writers are gone with the child, so this ends; a pipe holds 64 KiB.
            lines = pipe.read(256 * 1024).decode("utf-8", "replace").strip().splitlines()
            return escape(lines[-1], characters=300) if lines else "nothing said"
        return "nothing said"


def _start(settings: EngineSettings, limits: CompileLimits, *, self_check: bool) -> subprocess.Popen[bytes]:
    names = ("module_bytes", "artifact_bytes", "cpu_seconds", "address_space_bytes")
    return start_child(
        "compile_child",
        settings=asdict(settings),
        limits={name: getattr(limits, name) for name in names},
        self_check=self_check,
    )


def start_child(module: str, **serve: object) -> subprocess.Popen[bytes]:
    """Start a child of ours whose whole work is ``serve(**serve)`` of one module of this package.

    It has a pipe at each of its standard files, and of the host's environment only what finds shared libraries.

    Raises:
        SandboxError: It did not start.
    """
    shown = module.replace("_", " ")
    if not sys.executable:
        raise SandboxError(f"sys.executable is empty, so no {shown} can start; set it to a Python interpreter")
    given = {
        "path": [os.path.abspath(entry) for entry in sys.path],  # noqa: PTH100 a Path would change what is no path
        "package": __package__,
        "folder": str(Path(__file__).resolve().parent),
        "module": module,
        "serve": serve,
    }
    try:
        # Our own interpreter with our own text, and no shell.
        return subprocess.Popen(  # noqa: S603
            [sys.executable, "-I", "-c", _BOOTSTRAP, json.dumps(given)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # No secret of the host's environment; what finds shared libraries stays.
            env={name: value for name, value in os.environ.items() if name in _KEPT} | {"RUST_BACKTRACE": "0"},
            # Ctrl-C in the host's terminal is the host's to answer.
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise SandboxError(f"the {shown} did not start: {error}") from error


_KEPT = frozenset({"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "SYSTEMROOT", "PATH"})


def _invalid(body: bytes) -> Finding:
    # One line of wasmtime's chain of causes; names in it are the guest's.
    said = " ".join(body.decode("utf-8", "replace").split()).replace(" Caused by: ", ": ")
    return Finding(
        code="invalid_module",
        what=escape(said, characters=400),
        hint=FINDING_CODES["invalid_module"].hint,
    )


def _too_costly(what: str, *, value: int | str | None = None, limit: int | str) -> Finding:
    return Finding(
        code="compile_limit",
        what=what,
        value=value,
        limit=limit,
        hint=FINDING_CODES["compile_limit"].hint,
    )


def _bytes(count: int) -> str:
    return f"{count:_} bytes of memory"
