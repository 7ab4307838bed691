"""A tool call, what stands before its execution, and how it was settled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Self

from hookcell_sandbox.guest_text import escape

if TYPE_CHECKING:
    from .errors import HookFailure
    from .schemas import Schema
    from .trace import Decision, TraceEntry

__all__ = ["ErrorKind", "Gate", "Origin", "SettledCall", "ToolCall", "ToolError", "ToolResult"]

ErrorKind = Literal["denied", "validation", "tool", "hook_failed", "refused"]
Origin = Literal["tool", "hook", "denied", "validation", "hook_failed", "refused", "approval"]
"""Who settled the call: the tool, a hook's result, or one of the engine's own ways not to run it (P10)."""

_NO_METADATA: Final[Mapping[str, object]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call as the model made it; it never changes.

    Attributes:
        id: The model's id of the call.
        name: The tool.
        args: The arguments; anything but a map with string keys is a ``validation`` error.
    """

    id: str
    name: str
    args: object

    def wire(self) -> dict[str, object]:
        """``{id, name, args}``."""
        return {"id": self.id, "name": self.name, "args": self.args}


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolError:
    """An error that goes to the model in place of a result.

    Attributes:
        kind: What kind.
        message: For the model. A deny's reason is guest text, and is meant for it.
        hook: The hook that caused it, if one did.
    """

    kind: ErrorKind
    message: str
    hook: str | None = None

    @classmethod
    def of_failure(cls, failure: HookFailure) -> Self:
        """A failure under the policy ``deny`` (P11). It goes to the model, so what the hook wrote stays out of it."""
        message = f"hook '{escape(failure.hook)}' failed at {failure.point} ({failure.code})"
        return cls(kind="hook_failed", message=message, hook=failure.hook)

    def wire(self) -> dict[str, object]:
        """``{kind, message, hook?}``."""
        error: dict[str, object] = {"kind": self.kind, "message": self.message}
        if self.hook is not None:
            error["hook"] = self.hook
        return error


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """How a call was settled.

    Attributes:
        result: The value; None with an error, unless a post-hook put one in its place (P9).
        error: The error mark.
        requires_approval: The call waits for a human.
        origin: Who settled it.
    """

    result: object = None
    error: ToolError | None = None
    requires_approval: bool = False
    origin: Origin = "tool"

    def wire(self) -> dict[str, object]:
        """``{result, error?, requiresApproval?}``."""
        wire: dict[str, object] = {"result": self.result}
        if self.error is not None:
            wire["error"] = self.error.wire()
        if self.requires_approval:
            wire["requiresApproval"] = True
        return wire


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What stands before a call's execution.

    Attributes:
        call: The model's call.
        args: What to execute with: validated, and as hooks left them. The model's own when they never were valid.
        settled: Set when the tool must not run.
        decision: What the pre-hooks came to; None when they were skipped (P3).
        schema: The tool's schema, None when the call goes unvalidated.
        resumed: Whether the call was approved and comes again (P16); None outside approvals.
    """

    call: ToolCall
    args: object
    settled: ToolResult | None = None
    decision: Decision | None = None
    schema: Schema | None = field(default=None, repr=False)
    resumed: bool | None = None

    @property
    def runs(self) -> bool:
        """Whether the tool is to be executed."""
        return self.settled is None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledCall:
    """A call from start to end.

    Attributes:
        gate: What stood before it.
        result: How it was settled, after the post-hooks.
        post: What the post-hooks came to.
    """

    gate: Gate
    result: ToolResult
    post: Decision

    @property
    def content(self) -> object:
        """What the model sees: the result, or the error's message where no hook put a value in its place (P9)."""
        error = self.result.error
        return self.result.result if error is None or self.post.replaced_by is not None else error.message

    @property
    def metadata(self) -> Mapping[str, object]:
        """For the tool message and the ``tool.done`` event: ``replacedByHook`` after a pre-hook's result (P5)."""
        hook = self.gate.decision.replaced_by if self.gate.decision else None
        return {"replacedByHook": hook} if hook is not None else _NO_METADATA

    @property
    def appended(self) -> tuple[dict[str, object], ...]:
        """Messages that hooks added; they stand after the results of the whole batch of calls (P2)."""
        return (*(self.gate.decision.appended if self.gate.decision else ()), *self.post.appended)

    @property
    def trace(self) -> tuple[TraceEntry, ...]:
        """What each hook did, pre-hooks first."""
        return (*(self.gate.decision.trace if self.gate.decision else ()), *self.post.trace)
