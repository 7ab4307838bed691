"""Runs one untrusted WebAssembly call: bytes in, bytes out, under limits. Knows nothing of hooks."""

from .admission import AdmissionPolicy, ModuleReport, admit, inspect
from .artifacts import ArtifactCache
from .compiler import CompileLimits
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
