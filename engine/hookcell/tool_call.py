"""One tool call's way through the hooks, usable from any host loop (SEMANTICS P3-P6, P9, P10, C3, C4, C10).

```
validate → before_tool → pre_tool_call → rules (permission, guardrail, approval) → execute → after_tool → post_tool_call
└──────────────────── before_execution ────────────────────────────────────────┘           └─── after_execution ─────┘
```

The two halves stand alone: a loop runs them one call after the other and the executions between them in parallel, and a
replayer of recorded runs has no executor at all. Nothing here raises for a denied or failed call; a hook's failure
under the policy ``raise`` does, and so rejects the run (P11).

The order is written once, in generators that ask for a chain or a rule and are handed the answer; one driver answers on
an event loop and one in a plain thread.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from hookcell_sandbox.guest_text import escape

from .budget import ChainLimits
from .chain import run_point, run_point_sync
from .errors import HookFailure, exceptions_in
from .outcomes import ABSENT
from .schemas import Schema, SchemaMismatch
from .shapes import is_map, is_object
from .tool_result import Gate, SettledCall, ToolCall, ToolError, ToolResult, text_of
from .values import copied

if TYPE_CHECKING:
    from .context import RunFacts
    from .registry import HookSource, Snapshot
    from .storage import HookStorage
    from .trace import Decision, Moment

__all__ = ["Gate", "Rules", "SettledCall", "ToolCall", "ToolError", "ToolPipeline", "ToolResult"]

Rules = Callable[[ToolCall, dict[str, object]], "ToolResult | Awaitable[ToolResult | None] | None"]
"""The host's permission rules, guardrails and approval: None lets the call run, a result settles it (``denied``,
``refused`` or ``approval``). It is asked about the arguments as hooks left them (P15)."""

_Settled = TypeVar("_Settled", Gate, SettledCall)


class _Chain(NamedTuple):
    """Asks the driver for what the hooks of a point come to."""

    hooks: Snapshot
    point: str
    context: Mapping[str, object]
    moment: Moment | None
    schema: Schema | None = None


class _Ask(NamedTuple):
    """Asks the driver for the verdict of the host's rules."""

    rules: Rules
    call: ToolCall
    args: dict[str, object]


_Steps = Generator[_Chain | _Ask, Any, _Settled]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPipeline:
    """The tool calls of one run.

    Attributes:
        hooks: The hooks; each call takes them as they are when it begins (P18).
        run: What the run's contexts have in common. Agent-class hooks are asked where it has a ``state``.
        storage: Where guests keep their values (G3).
        limits: Ceilings of each chain (G8).
    """

    hooks: HookSource
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
        """Everything before the execution: first validation, hooks, rules (P3, C10).

        Args:
            call: The model's call.
            schema: The tool's, as `tool_schema` makes it; without it the arguments go unvalidated.
            rules: Asked last, and only if the tool is about to run (P5).
            resumed: True when an approved call comes again (P16).
            moment: The recorded time and seed of a call that comes again or is replayed (G1).

        Raises:
            HookFailure: As `run_point`.
        """
        return await self._drive(self._before(call, schema, rules, resumed, moment))

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
        return self._drive_sync(self._before(call, schema, rules, resumed, moment))

    async def after_execution(
        self, gate: Gate, result: ToolResult | None = None, *, moment: Moment | None = None
    ) -> SettledCall:
        """Run the hooks after a call, however it was settled (P10).

        Args:
            gate: What `before_execution` gave.
            result: What the execution gave; not for a call that was settled before it.
            moment: As in `before_execution`.

        Raises:
            HookFailure: As `run_point`.
            TypeError: Both the gate and ``result`` settle the call, or neither.
        """
        return await self._drive(self._after(gate, result, moment))

    def after_execution_sync(
        self, gate: Gate, result: ToolResult | None = None, *, moment: Moment | None = None
    ) -> SettledCall:
        """`after_execution` for a plain thread."""
        return self._drive_sync(self._after(gate, result, moment))

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
            except Exception as error:
                if any(isinstance(each, HookFailure) for each in exceptions_in(error)):
                    raise  # a hook inside the tool, as in a sub-agent, rejects the run too (P11)
                result = ToolResult(error=ToolError.of_exception(error))
            else:
                result = value if isinstance(value, ToolResult) else ToolResult(result=value)
        return await self.after_execution(gate, result)

    async def point(self, point: str, own: Mapping[str, object], *, moment: Moment | None = None) -> Decision:
        """The hooks of any other point of this run: `run_point` with what the pipeline knows already.

        Args:
            point: Which one.
            own: The point's own fields, by the wire's names.
            moment: As in `before_execution`.

        Raises:
            HookFailure: As `run_point`.
        """
        context = self.run.at(point, own)
        return await run_point(
            self.hooks, point, context, run=self.run, limits=self.limits, storage=self.storage, moment=moment
        )

    def point_sync(self, point: str, own: Mapping[str, object], *, moment: Moment | None = None) -> Decision:
        """`point` for a plain thread."""
        context = self.run.at(point, own)
        return run_point_sync(
            self.hooks, point, context, run=self.run, limits=self.limits, storage=self.storage, moment=moment
        )

    def _before(
        self,
        call: ToolCall,
        schema: Schema | None,
        rules: Rules | None,
        resumed: bool | None,
        moment: Moment | None,
    ) -> _Steps[Gate]:
        hooks = self.hooks.snapshot()
        gate = _first_validation(Gate(call=call, args=call.args, schema=schema, resumed=resumed, hooks=hooks))
        if gate.runs and self.run.state is not None and hooks.at("before_tool"):
            context = self.run.at("before_tool", {"call": {**call.wire(), "args": gate.args}})
            decision: Decision = yield _Chain(hooks, "before_tool", context, moment, schema)
            gate = replace(_decided(gate, decision), before_tool=decision)
        if gate.runs:
            decision = yield _Chain(hooks, "pre_tool_call", self._context(gate, {}), moment, schema)
            gate = replace(_decided(gate, decision), decision=decision)
        if gate.runs and rules is not None:
            verdict = yield _Ask(rules, call, cast("dict[str, object]", gate.args))
            gate = replace(gate, settled=verdict)
        return gate

    def _after(self, gate: Gate, result: ToolResult | None, moment: Moment | None) -> _Steps[SettledCall]:
        settled = _settled(gate, result)
        hooks = gate.hooks if gate.hooks is not None else self.hooks.snapshot()
        after_tool: Decision | None = None
        # Only where something answered: the engine's own errors and a hook's result are no tool output (C4).
        if settled.origin == "tool" and self.run.state is not None and hooks.at("after_tool"):
            output = settled.result if settled.error is None else settled.error.message
            own = {"name": gate.call.name, "args": gate.args, "output": text_of(output)}
            context = self.run.at("after_tool", {"result": {**own, "isError": settled.error is not None}})
            decision: Decision = yield _Chain(hooks, "after_tool", context, moment)
            after_tool, settled = decision, _answered(settled, decision)
        context = self._context(gate, {"result": settled.wire(), "origin": settled.origin})
        post = yield _Chain(hooks, "post_tool_call", context, moment)
        return SettledCall(gate=gate, result=_replaced(settled, post), after_tool=after_tool, post=post)

    async def _drive(self, steps: _Steps[_Settled]) -> _Settled:
        try:
            request = next(steps)
            while True:
                if type(request) is _Ask:
                    answer: Any = request.rules(request.call, request.args)
                    if inspect.isawaitable(answer):
                        answer = await answer
                else:
                    chain = cast("_Chain", request)
                    answer = await run_point(
                        chain.hooks,
                        chain.point,
                        chain.context,
                        run=self.run,
                        limits=self.limits,
                        storage=self.storage,
                        moment=chain.moment,
                        validate_args=chain.schema.validate if chain.schema else None,
                    )
                request = steps.send(answer)
        except StopIteration as done:
            return done.value

    def _drive_sync(self, steps: _Steps[_Settled]) -> _Settled:
        try:
            request = next(steps)
            while True:
                if type(request) is _Ask:
                    answer: Any = request.rules(request.call, request.args)
                    if inspect.isawaitable(answer):
                        raise TypeError("the rules are async and cannot run in a plain thread; use before_execution")
                else:
                    chain = cast("_Chain", request)
                    answer = run_point_sync(
                        chain.hooks,
                        chain.point,
                        chain.context,
                        run=self.run,
                        limits=self.limits,
                        storage=self.storage,
                        moment=chain.moment,
                        validate_args=chain.schema.validate if chain.schema else None,
                    )
                request = steps.send(answer)
        except StopIteration as done:
            return done.value

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


def _first_validation(gate: Gate) -> Gate:
    """The gate before any hook; settled when the model's own arguments do not fit (P3)."""
    call, schema = gate.call, gate.schema
    args, problem = call.args, None
    if not is_object(args):
        problem = f"the arguments are a {type(args).__name__}, not an object with text keys"
    elif schema is not None:
        try:
            args = schema.validate(args)
            problem = None if is_object(args) else f"the schema makes a {type(args).__name__} of the arguments"
        except SchemaMismatch as error:
            problem = f"the arguments do not fit the schema of '{escape(call.name)}'{_at(error.path)}: {error.reason}"
    settled = None
    if problem is not None:
        settled = ToolResult(error=ToolError(kind="validation", message=problem), origin="validation")
    # A copy where the schema made none: the tool may edit what it is given, and the model's own call never changes.
    return replace(gate, args=copied(args) if args is call.args else args, settled=settled)


def _decided(gate: Gate, decision: Decision) -> Gate:
    """The gate after the hooks of one point."""
    settled: ToolResult | None = None
    if decision.kind == "denied":
        error = ToolError(kind="denied", message=decision.reason or "", hook=decision.hook)
        settled = ToolResult(error=error, origin="denied")
    elif decision.kind == "replaced" and decision.point == "pre_tool_call":
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
    args = gate.args if decision.args is ABSENT else decision.args
    return replace(gate, args=args, settled=settled)


def _settled(gate: Gate, result: ToolResult | None) -> ToolResult:
    if gate.settled is not None and result is not None:
        raise TypeError(f"the call was settled before execution ({gate.settled.origin}) and has a result besides")
    settled = gate.settled or result
    if settled is None:
        raise TypeError("the call was to be executed; give its result")
    return settled


def _answered(settled: ToolResult, decision: Decision) -> ToolResult:
    """The tool's answer after the agent-class hooks, which may change its error mark (C4)."""
    if decision.kind == "hook_failed":
        return ToolResult(error=_hook_failed(decision), origin="hook_failed")
    answer = decision.fields.get("result")
    if not is_map(answer):
        return settled
    if not answer["isError"]:
        return ToolResult(result=answer["output"])
    return ToolResult(error=ToolError(kind="tool", message=text_of(answer["output"])))


def _replaced(settled: ToolResult, decision: Decision) -> ToolResult:
    """The result after the post-hooks: one they replaced keeps its error mark (P9), a failure takes its place (P11)."""
    if decision.kind == "hook_failed":
        return ToolResult(error=_hook_failed(decision), origin="hook_failed")
    if decision.kind == "replaced":
        return replace(settled, result=decision.value)
    return settled


def _hook_failed(decision: Decision) -> ToolError:
    return ToolError.of_failure(next(failure for failure in decision.failures if failure.hook == decision.hook))


def _at(path: str) -> str:
    return f" at {path}" if path else ""
