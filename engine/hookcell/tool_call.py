"""One tool call's way through the hooks, usable from any host loop (SEMANTICS P3-P6, P9, P10).

```
validate arguments → pre_tool_call hooks → rules (permissions, guardrails, approval) → execute → post_tool_call hooks
└──────────────── before_execution ──────────────────────────────────────────────┘           └─ after_execution ─┘
```

The two halves stand alone: a loop runs them one call after the other and the executions between them in parallel, and a
replayer of recorded runs has no executor at all. Nothing here raises for a denied or failed call; a hook's failure
under the policy ``raise`` does, and so rejects the run (P11).
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from hookcell_sandbox.guest_text import escape

from .budget import ChainLimits
from .chain import run_point, run_point_sync
from .errors import HookFailure
from .outcomes import ABSENT
from .schemas import Schema, SchemaMismatch
from .tool_result import Gate, SettledCall, ToolCall, ToolError, ToolResult
from .values import copied

if TYPE_CHECKING:
    from .context import RunFacts
    from .registry import HookRegistry, Snapshot
    from .storage import HookStorage
    from .trace import Decision, Moment

__all__ = ["Gate", "Rules", "SettledCall", "ToolCall", "ToolError", "ToolPipeline", "ToolResult"]

Rules = Callable[[ToolCall, dict[str, object]], "ToolResult | Awaitable[ToolResult | None] | None"]
"""The host's permission rules, guardrails and approval: None lets the call run, a result settles it (``denied``,
``refused`` or ``approval``). It is asked about the arguments as hooks left them (P15)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPipeline:
    """The tool calls of one run.

    Attributes:
        hooks: The hooks; each chain takes a registry as it is at that moment (P18).
        run: What the run's contexts have in common.
        storage: Where guests keep their values (G3).
        limits: Ceilings of each chain (G8).
    """

    hooks: HookRegistry | Snapshot
    run: RunFacts
    storage: HookStorage | None = None
    limits: ChainLimits = field(default_factory=ChainLimits)

    async def before_execution(
        self,
        call: ToolCall,
        *,
        schema: Schema | None = None,
        rules: Rules | None = None,
        resumed: bool | None = None,
        moment: Moment | None = None,
    ) -> Gate:
        """Everything before the execution: first validation, pre-hooks, rules (P3).

        Args:
            call: The model's call.
            schema: The tool's, as `tool_schema` makes it; without it the arguments go unvalidated.
            rules: Asked last, and only if the tool is about to run (P5).
            resumed: True when an approved call comes again (P16).
            moment: The recorded time and seed of a call that comes again or is replayed (G1).

        Raises:
            HookFailure: As `run_point`.
        """
        gate = _first_validation(call, schema, resumed)
        if gate.settled is not None:
            return gate
        context = self._context(gate, {})
        decision = await run_point(
            self.hooks,
            "pre_tool_call",
            context,
            run=self.run,
            limits=self.limits,
            storage=self.storage,
            moment=moment,
            validate_args=schema.validate if schema else None,
        )
        gate = _decided(gate, decision)
        if gate.settled is None and rules is not None:
            verdict = rules(call, cast("dict[str, object]", gate.args))
            gate = _ruled(gate, (await verdict) if inspect.isawaitable(verdict) else verdict)
        return gate

    def before_execution_sync(
        self,
        call: ToolCall,
        *,
        schema: Schema | None = None,
        rules: Rules | None = None,
        resumed: bool | None = None,
        moment: Moment | None = None,
    ) -> Gate:
        """`before_execution` for a plain thread; ``rules`` must be a plain function there."""
        gate = _first_validation(call, schema, resumed)
        if gate.settled is not None:
            return gate
        decision = run_point_sync(
            self.hooks,
            "pre_tool_call",
            self._context(gate, {}),
            run=self.run,
            limits=self.limits,
            storage=self.storage,
            moment=moment,
            validate_args=schema.validate if schema else None,
        )
        gate = _decided(gate, decision)
        if gate.settled is None and rules is not None:
            verdict = rules(call, cast("dict[str, object]", gate.args))
            if inspect.isawaitable(verdict):
                raise TypeError("the rules are async and cannot run in before_execution_sync; use before_execution")
            gate = _ruled(gate, verdict)
        return gate

    async def after_execution(
        self, gate: Gate, result: ToolResult | None = None, *, moment: Moment | None = None
    ) -> SettledCall:
        """Run the post-hooks, however the call was settled (P10).

        Args:
            gate: What `before_execution` gave.
            result: What the execution gave; not for a call that was settled before it.
            moment: As in `before_execution`.

        Raises:
            HookFailure: As `run_point`.
            TypeError: Both the gate and ``result`` settle the call, or neither.
        """
        settled = _settled(gate, result)
        context = self._context(gate, {"result": settled.wire(), "origin": settled.origin})
        decision = await run_point(
            self.hooks,
            "post_tool_call",
            context,
            run=self.run,
            limits=self.limits,
            storage=self.storage,
            moment=moment,
        )
        return SettledCall(gate=gate, result=_after(settled, decision), post=decision)

    def after_execution_sync(
        self, gate: Gate, result: ToolResult | None = None, *, moment: Moment | None = None
    ) -> SettledCall:
        """`after_execution` for a plain thread."""
        settled = _settled(gate, result)
        decision = run_point_sync(
            self.hooks,
            "post_tool_call",
            self._context(gate, {"result": settled.wire(), "origin": settled.origin}),
            run=self.run,
            limits=self.limits,
            storage=self.storage,
            moment=moment,
        )
        return SettledCall(gate=gate, result=_after(settled, decision), post=decision)

    async def call(
        self,
        call: ToolCall,
        execute: Callable[[dict[str, object]], Any],
        *,
        schema: Schema | None = None,
        rules: Rules | None = None,
    ) -> SettledCall:
        """One call from start to end.

        Args:
            call: The model's call.
            execute: Runs the tool with the final arguments, plain or ``async``; gives its value, or a `ToolResult`.
                What it raises becomes a tool error of kind ``tool``; a cancellation and a `HookFailure` pass.
            schema: As in `before_execution`.
            rules: As in `before_execution`.

        Raises:
            HookFailure: As `run_point`.
        """
        gate = await self.before_execution(call, schema=schema, rules=rules)
        result: ToolResult | None = None
        if gate.runs:
            try:
                # A copy: what the tool does to it is not what post-hooks see and the decision records.
                value = execute(cast("dict[str, object]", copied(gate.args)))
                value = (await value) if inspect.isawaitable(value) else value
            except HookFailure:
                raise  # a hook inside the tool, as in a sub-agent, rejects the run too (P11)
            except Exception as error:
                result = ToolResult(error=ToolError(kind="tool", message=f"{type(error).__name__}: {error}"))
            else:
                result = value if isinstance(value, ToolResult) else ToolResult(result=value)
        return await self.after_execution(gate, result)

    def _context(self, gate: Gate, own: Mapping[str, object]) -> dict[str, object]:
        call = gate.call
        fields: dict[str, object] = {
            "toolCallId": call.id,
            "toolName": call.name,
            "args": gate.args,
            "toolCall": call.wire(),
        }
        if gate.schema is not None:
            fields["toolSchema"] = gate.schema.document
        if gate.resumed is not None:
            fields["resumed"] = gate.resumed
        fields.update(own)
        return self.run.context(fields)


def _first_validation(call: ToolCall, schema: Schema | None, resumed: bool | None) -> Gate:
    """The gate before any hook; settled when the model's own arguments do not fit (P3)."""
    args, problem = call.args, None
    if not _is_object(args):
        problem = f"the arguments are a {type(args).__name__}, not an object with text keys"
    elif schema is not None:
        try:
            args = schema.validate(args)
            problem = None if _is_object(args) else f"the schema makes a {type(args).__name__} of the arguments"
        except SchemaMismatch as error:
            problem = f"the arguments do not fit the schema of '{escape(call.name)}'{_at(error.path)}: {error.reason}"
    settled = None
    if problem is not None:
        settled = ToolResult(error=ToolError(kind="validation", message=problem), origin="validation")
    # A copy where the schema made none: the tool may edit what it is given, and the model's own call never changes.
    args = copied(args) if args is call.args else args
    return Gate(call=call, args=args, settled=settled, schema=schema, resumed=resumed)


def _decided(gate: Gate, decision: Decision) -> Gate:
    """The gate after its pre-hooks."""
    settled: ToolResult | None = None
    if decision.kind == "denied":
        error = ToolError(kind="denied", message=decision.reason or "", hook=decision.hook)
        settled = ToolResult(error=error, origin="denied")
    elif decision.kind == "replaced":
        settled = ToolResult(result=decision.value, origin="hook")
    elif decision.kind == "validation" and decision.mismatch is not None:
        mismatch = decision.mismatch
        message = (
            f"hook '{escape(mismatch.hook)}' gave arguments that do not fit the schema of '{escape(gate.call.name)}'"
            f"{_at(mismatch.path)}: {mismatch.reason}"
        )
        settled = ToolResult(
            error=ToolError(kind="validation", message=message, hook=mismatch.hook), origin="validation"
        )
    elif decision.kind == "hook_failed":
        settled = ToolResult(error=_hook_failed(decision), origin="hook_failed")
    return Gate(
        call=gate.call,
        args=gate.args if decision.args is ABSENT else decision.args,
        settled=settled,
        decision=decision,
        schema=gate.schema,
        resumed=gate.resumed,
    )


def _ruled(gate: Gate, verdict: ToolResult | None) -> Gate:
    return Gate(
        call=gate.call,
        args=gate.args,
        settled=verdict,
        decision=gate.decision,
        schema=gate.schema,
        resumed=gate.resumed,
    )


def _settled(gate: Gate, result: ToolResult | None) -> ToolResult:
    if gate.settled is not None and result is not None:
        raise TypeError(f"the call was settled before execution ({gate.settled.origin}) and has a result besides")
    settled = gate.settled or result
    if settled is None:
        raise TypeError("the call was to be executed; give its result")
    return settled


def _after(settled: ToolResult, decision: Decision) -> ToolResult:
    """The result after the post-hooks: one they replaced keeps its error mark (P9), a failure takes its place (P11)."""
    if decision.kind == "hook_failed":
        return ToolResult(error=_hook_failed(decision), origin="hook_failed")
    if decision.kind == "replaced":
        return ToolResult(
            result=decision.value,
            error=settled.error,
            requires_approval=settled.requires_approval,
            origin=settled.origin,
        )
    return settled


def _hook_failed(decision: Decision) -> ToolError:
    return ToolError.of_failure(next(failure for failure in decision.failures if failure.hook == decision.hook))


def _is_object(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(key, str) for key in cast("dict[object, object]", value))


def _at(path: str) -> str:
    return f" at {path}" if path else ""
