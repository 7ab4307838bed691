"""The reference host loop: an agent that fires every hook point, offline or with real models.

`create_agent` makes one; `Agent.send` is a turn, `Agent.stream` the same as events, `Agent.resume` goes on after a
human approved. Other loops use `hookcell.ToolPipeline` and `hookcell.run_point` and can be compared with this one.
"""

from .agent import Agent, create_agent
from .agent_class import StateSlice, state_slice
from .approvals import Answer, Approvals, ApprovalStore, Deny, InMemoryApprovals, PendingApproval, PendingCall
from .compaction import Compaction
from .errors import (
    AgentError,
    ApprovalInvalid,
    ApprovalUsed,
    DepthExceeded,
    RunBusy,
    RunNotSerialisable,
    StepLimitReached,
)
from .events import (
    ApprovalRequired,
    CompactionDone,
    CompactionStarted,
    Event,
    PermissionDecision,
    TextDelta,
    ToolDone,
    ToolFailed,
    ToolStarted,
    TurnDone,
    TurnFailed,
)
from .middleware import App, ToolRun
from .models import MockModel, ModelRequest, ModelResponse, Provider, ScriptedTurn, ToolDefinition, Usage, mock_model
from .own_run import StepContext
from .permissions import Permissions, Rule, allow, ask, deny
from .result import TurnResult
from .run_state import RunState
from .stream import TurnStream
from .tools import Tool, ToolContext, ToolOutput, define_tool

__all__ = [
    "Agent",
    "AgentError",
    "Answer",
    "App",
    "ApprovalInvalid",
    "ApprovalRequired",
    "ApprovalStore",
    "ApprovalUsed",
    "Approvals",
    "Compaction",
    "CompactionDone",
    "CompactionStarted",
    "Deny",
    "DepthExceeded",
    "Event",
    "InMemoryApprovals",
    "MockModel",
    "ModelRequest",
    "ModelResponse",
    "PendingApproval",
    "PendingCall",
    "PermissionDecision",
    "Permissions",
    "Provider",
    "Rule",
    "RunBusy",
    "RunNotSerialisable",
    "RunState",
    "ScriptedTurn",
    "StateSlice",
    "StepContext",
    "StepLimitReached",
    "TextDelta",
    "Tool",
    "ToolContext",
    "ToolDefinition",
    "ToolDone",
    "ToolFailed",
    "ToolOutput",
    "ToolRun",
    "ToolStarted",
    "TurnDone",
    "TurnFailed",
    "TurnResult",
    "TurnStream",
    "Usage",
    "allow",
    "ask",
    "create_agent",
    "define_tool",
    "deny",
    "mock_model",
    "state_slice",
]
