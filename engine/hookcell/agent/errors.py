"""What can go wrong with a run of the loop itself, under the same root as the hooks' failures.

```
HookcellError
├─ SandboxError · HookFailure   see hookcell_sandbox.errors and hookcell.errors
└─ AgentError                   the loop's
   ├─ StepLimitReached          the model went on calling tools
   ├─ DepthExceeded             agents called agents without end
   ├─ RunBusy                   the run has another turn under way, or waits for approvals
   ├─ ApprovalInvalid           the pending state was not made here, or the answers do not fit it
   ├─ ApprovalUsed              the pending state was used before, or its store never knew it
   └─ RunNotSerialisable        the run holds a value that a pending state cannot keep: path, type
```
"""

from __future__ import annotations

from hookcell_sandbox.errors import HookcellError

__all__ = [
    "AgentError",
    "ApprovalInvalid",
    "ApprovalUsed",
    "DepthExceeded",
    "RunBusy",
    "RunNotSerialisable",
    "StepLimitReached",
]


class AgentError(HookcellError):
    """The loop cannot go on with a run."""

    code = "agent"


class StepLimitReached(AgentError):
    """The model was called as often as one turn may call it and still wants tools."""

    code = "step_limit"


class DepthExceeded(AgentError):
    """An agent inside an agent inside an agent, over the limit: sub-agents, or tools and hooks that run agents."""

    code = "depth"


class RunBusy(AgentError):
    """A `RunState` takes one turn at a time, and none while calls of its last one wait for approval."""

    code = "run_busy"


class ApprovalInvalid(AgentError):
    """The pending state is not one that this agent gave out, or the answers are not for its calls. Nothing was used."""

    code = "approval_invalid"


class ApprovalUsed(AgentError):
    """The approval store has no such pending state open: it was used, expired, or is kept elsewhere (P16)."""

    code = "approval_used"


class RunNotSerialisable(AgentError):
    """The run cannot be kept while it waits for approval. ``path`` is a JSON Pointer into it, e.g. ``/metadata/db``."""

    code = "run_not_serialisable"

    def __init__(self, path: str, type: str) -> None:  # noqa: A002 the same word as in ContextInvalid
        self.path = path
        self.type = type
        super().__init__(
            f"the run waits for approval and cannot be kept: {path} is a {type}; keep JSON values and bytes there"
        )
