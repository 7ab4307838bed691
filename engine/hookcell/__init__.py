"""Runs untrusted user hooks of LLM agents by exact rules. The rules are numbered in SEMANTICS.md (P1, C2, G4…).

Load a guest or write a host hook, put both in a `HookRegistry`, and let a `ToolPipeline`, or `run_point` itself, say
what they come to.
"""

from hookcell_sandbox.errors import HookcellError

from .budget import ChainLimits
from .chain import run_point, run_point_sync
from .codec import History
from .context import HookContext, RunFacts
from .conversation import add_results, assistant_message, close_open_calls, show_final_args
from .errors import (
    ChainExhausted,
    ConfigInvalid,
    ContextInvalid,
    HookCrashed,
    HookFailure,
    HookRecursion,
    HookThrew,
    OutcomeInvalid,
    StorageConflict,
    StorageFailed,
)
from .hook import FailurePolicy, GuestHook, admission_policy
from .host_hook import AgentHook, HostHook, Replace
from .outcomes import ABSENT, Outcome
from .points import POINTS, Point
from .registry import HookRegistry, HookSource, Snapshot
from .schemas import Schema, SchemaInvalid, SchemaMismatch, compile_schema, tool_schema
from .state import HookState
from .storage import HookStorage, InMemoryStorage, StorageFull, StorageKey, Stored
from .tool_call import ToolPipeline
from .tool_result import Gate, SettledCall, ToolCall, ToolError, ToolResult
from .trace import ArgumentsMismatch, Decision, Moment, TraceEntry

__all__ = [
    "ABSENT",
    "POINTS",
    "AgentHook",
    "ArgumentsMismatch",
    "ChainExhausted",
    "ChainLimits",
    "ConfigInvalid",
    "ContextInvalid",
    "Decision",
    "FailurePolicy",
    "Gate",
    "GuestHook",
    "History",
    "HookContext",
    "HookCrashed",
    "HookFailure",
    "HookRecursion",
    "HookRegistry",
    "HookSource",
    "HookState",
    "HookStorage",
    "HookThrew",
    "HookcellError",
    "HostHook",
    "InMemoryStorage",
    "Moment",
    "Outcome",
    "OutcomeInvalid",
    "Point",
    "Replace",
    "RunFacts",
    "Schema",
    "SchemaInvalid",
    "SchemaMismatch",
    "SettledCall",
    "Snapshot",
    "StorageConflict",
    "StorageFailed",
    "StorageFull",
    "StorageKey",
    "Stored",
    "ToolCall",
    "ToolError",
    "ToolPipeline",
    "ToolResult",
    "TraceEntry",
    "add_results",
    "admission_policy",
    "assistant_message",
    "close_open_calls",
    "compile_schema",
    "run_point",
    "run_point_sync",
    "show_final_args",
    "tool_schema",
]
