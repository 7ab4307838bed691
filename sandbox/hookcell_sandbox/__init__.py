"""Runs one untrusted WebAssembly call: bytes in, bytes out, under limits. Knows nothing of hooks.

What needs wasmtime is imported when it is first asked for: looking at a module, or at this package's errors and
limits, costs none of its start-up time.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .admission import AdmissionPolicy, ModuleReport, admit, inspect
from .errors import (
    DeadlineExceeded,
    Finding,
    FuelExhausted,
    GuestError,
    GuestTrap,
    HookcellError,
    InputTooLarge,
    MemoryExceeded,
    ModuleRejected,
    OutputTooLarge,
    ProtocolViolation,
    SandboxBusy,
    SandboxError,
    SandboxUnusable,
    WorkerLost,
)
from .guest_text import GuestLog, escape
from .limits import Limits, ModuleLimits
from .program import Completion, Program

if TYPE_CHECKING:
    from .artifacts import ArtifactCache
    from .compiler import CompileLimits
    from .sandbox import Runner, Sandbox
    from .settings import EngineSettings

__all__ = [
    "AdmissionPolicy",
    "ArtifactCache",
    "CompileLimits",
    "Completion",
    "DeadlineExceeded",
    "EngineSettings",
    "Finding",
    "FuelExhausted",
    "GuestError",
    "GuestLog",
    "GuestTrap",
    "HookcellError",
    "InputTooLarge",
    "Limits",
    "MemoryExceeded",
    "ModuleLimits",
    "ModuleRejected",
    "ModuleReport",
    "OutputTooLarge",
    "Program",
    "ProtocolViolation",
    "Runner",
    "Sandbox",
    "SandboxBusy",
    "SandboxError",
    "SandboxUnusable",
    "WorkerLost",
    "admit",
    "escape",
    "inspect",
]

_WITH_WASMTIME = {
    "ArtifactCache": ".artifacts",
    "CompileLimits": ".compiler",
    "EngineSettings": ".settings",
    "Runner": ".sandbox",
    "Sandbox": ".sandbox",
}


def __getattr__(name: str) -> object:
    module = _WITH_WASMTIME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(module, __name__), name)
    return value
