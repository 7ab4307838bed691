"""The tool calls of one model answer (SEMANTICS P3): gates one by one, executions in parallel, then hooks one by one.

A batch whose calls wait for approval is kept with what is known of each of its calls, and goes on from there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import anyio

from hookcell.conversation import show_final_args
from hookcell.errors import HookFailure
from hookcell.shapes import is_list, is_map
from hookcell.tool_result import Gate, ToolCall, ToolError, ToolResult, text_of
from hookcell.trace import Moment
from hookcell.values import copied, same
from hookcell_sandbox.guest_text import escape

from .approvals import Answer, Deny, PendingCall
from .events import ApprovalRequired, PermissionDecision, ToolDone, ToolFailed, ToolStarted
from .middleware import ToolRun
from .run_state import RunState, check_keepable
from .tools import Tool, ToolContext, ToolOutput, call_host_code, json_value, run_tool

if TYPE_CHECKING:
    from hookcell.history import Message
    from hookcell.tool_result import SettledCall

    from .turn import Turn

__all__ = ["Batch", "Paused", "run_all"]

_DENIED_BY_HUMAN: Final = "The user denied this call."
_CANNOT_WAIT: Final = "the call needs approval, and an agent with a run of its own cannot wait for it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """A turn that waits for approvals.

    Attributes:
        kept: Everything that `Turn.resume` needs, JSON-like.
        calls: What is to be answered.
    """

    kept: dict[str, object]
    calls: tuple[PendingCall, ...]


class _SubAgentPaused(BaseException):
    """Carries a sub-agent's pause past middleware that catches exceptions: it is none (C6)."""

    def __init__(self, paused: Paused) -> None:
        self.paused = paused


class _Entry:
    """One call of the batch, as far as it is."""

    __slots__ = (
        "added",
        "answer",
        "approved_args",
        "call",
        "gate",
        "message",
        "moment",
        "paused",
        "reason",
        "result",
        "turn_kept",
    )

    def __init__(self, call: ToolCall, moment: Moment) -> None:
        self.call = call
        self.moment = moment
        self.gate: Gate | None = None
        self.result: ToolResult | None = None
        self.reason = ""
        # Of a call that waited: what the human said, about which arguments.
        self.answer: Answer | None = None
        self.approved_args: object = None
        # Of a call of a sub-agent that waits: where its turn stands.
        self.paused: Paused | None = None
        self.turn_kept: Mapping[str, Any] | None = None
        # Of a settled call: its tool message, and what hooks added during it.
        self.message: dict[str, object] | None = None
        self.added: list[dict[str, object]] = []


class Batch:
    """The tool calls of one model answer.

    Args:
        turn: The turn that they belong to.
        calls: The calls, in the model's order.
        can_wait: Whether a call may wait for a human; otherwise one that would is refused.
    """

    def __init__(self, turn: Turn, calls: Iterable[ToolCall], *, can_wait: bool = True) -> None:
        self._turn = turn
        self._can_wait = can_wait
        self._entries = [_Entry(call, Moment.of_now()) for call in calls]

    async def run(self) -> Paused | None:
        """Gate, execute and settle every call; None when all are in the conversation.

        Raises:
            HookFailure: A hook failed under ``raise`` (P11).
            Exception: The host's own code threw: a middleware, a rule, a guardrail.
        """
        for entry in self._entries:
            await self._gate(entry)
        return await self._go_on()

    async def resume(self, answers: Mapping[str, Answer]) -> Paused | None:
        """Go on with a restored batch once a human answered (P16).

        Raises:
            Exception: As `run`.
        """
        for entry in self._entries:
            if entry.message is not None:
                continue
            if entry.turn_kept is not None:
                entry.answer = "approve"
                entry.gate = self._trusted_gate(entry)
                continue
            entry.answer = answers[self._turn.path + entry.call.id]
            if entry.answer == "approve":
                entry.added.clear()  # the pre-hooks run again, and add again
                await self._gate(entry)
            else:
                reason = entry.answer.reason if isinstance(entry.answer, Deny) else ""
                error = ToolError(kind="denied", message=reason or _DENIED_BY_HUMAN)
                entry.gate = self._trusted_gate(entry, ToolResult(error=error, origin="denied"))
                await self._decided(entry, entry.approved_args, "deny", "human", reason=reason)
        return await self._go_on(answers)

    async def run_alone(self) -> ToolOutput:
        """The one call of a batch that no model asked for: what it came to, and nothing in the conversation.

        Raises:
            Exception: As `run`.
        """
        (entry,) = self._entries
        await self._gate(entry)
        if cast("Gate", entry.gate).runs:
            await self._start(entry)
            await self._execute(entry, {})
        settled = await self._settle(entry)
        self._turn.run.history.extend(entry.added)
        return ToolOutput(content=settled.content, is_error=settled.result.error is not None)

    @classmethod
    def restored(cls, turn: Turn, kept: Sequence[Mapping[str, Any]]) -> Batch:
        """The batch that was kept in a pending state."""
        batch = cls(turn, ())
        for each in kept:
            entry = _Entry(ToolCall(**each["call"]), Moment(**each["moment"]))
            entry.message = each.get("message")
            entry.added = list(each["added"])
            entry.approved_args = each.get("args")
            entry.turn_kept = each.get("turn")
            batch._entries.append(entry)
        return batch

    async def _go_on(self, answers: Mapping[str, Answer] | None = None) -> Paused | None:
        running = [entry for entry in self._entries if entry.gate is not None and entry.gate.runs]
        for entry in running:
            if entry.turn_kept is None:
                await self._start(entry)
        await run_all([partial(self._execute, entry, answers or {}) for entry in running])
        for entry in self._entries:
            if entry.message is None:
                await self._settle(entry)
        if any(entry.message is None for entry in self._entries):
            return self._pause()
        history = self._turn.run.history
        place = _after_call(history, self._entries[0].call.id)
        history[place:place] = [cast("dict[str, object]", entry.message) for entry in self._entries]
        history.extend(message for entry in self._entries for message in entry.added)  # after the whole batch (P2)
        return None

    async def _start(self, entry: _Entry) -> None:
        args = cast("dict[str, object]", copied(cast("Gate", entry.gate).args))
        await self._turn.watch.emit(ToolStarted(**self._about(entry), args=args))

    async def _gate(self, entry: _Entry) -> None:
        turn, call = self._turn, entry.call
        tool = turn.agent.tools.get(call.name)
        if tool is None:
            known = ", ".join(sorted(turn.agent.tools)) or "none"
            error = ToolError(kind="validation", message=f"there is no tool '{escape(call.name)}'; there is {known}")
            entry.gate = self._trusted_gate(entry, ToolResult(error=error, origin="validation"))
            return
        gate = await turn.pipeline.before_execution(
            call,
            schema=tool.schema,
            rules=partial(self._rules, entry, tool),
            resumed=entry.answer is not None,
            moment=entry.moment,
        )
        entry.gate = gate
        turn.note(gate.decisions)
        show_final_args(turn.run.history, gate)
        if gate.decision is not None and gate.decision.denied_by is not None:
            hook, reason = gate.decision.denied_by, gate.decision.reason or ""
            await self._decided(entry, gate.args, "deny", "hook", hook=hook, reason=reason)

    async def _rules(self, entry: _Entry, tool: Tool, call: ToolCall, args: dict[str, object]) -> ToolResult | None:
        """Permission rules, guardrails and approval, in that order, on the arguments as hooks left them (P3, P15)."""
        agent = self._turn.agent
        rule = agent.permissions.judge(call.name, args)
        if rule.effect == "deny":
            await self._decided(entry, args, "deny", "rule", reason=rule.reason)
            message = rule.reason or f"permission rules deny '{call.name}'"
            return ToolResult(error=ToolError(kind="denied", message=message), origin="denied")
        for guardrail in (*agent.guardrails, *tool.guardrails):
            reason = await call_host_code(guardrail, call, copied(args))
            if reason is not None:
                if not isinstance(reason, str):
                    raise TypeError(f"a guardrail returns a reason or None, not {type(reason).__name__}")
                return await self._refused(entry, args, "guardrail", reason)
        if entry.answer is not None:
            # Whatever the rules say by now, what runs is what the human saw (P16).
            if not same(args, entry.approved_args):
                return await self._refused(entry, args, "human", "the arguments are not those that were approved")
            await self._decided(entry, args, "allow", "human")
            return None
        asks = tool.needs_approval
        if not isinstance(asks, bool):
            asks = bool(await call_host_code(asks, tool.given(args)))
        if (rule.effect == "ask" or asks) and not self._can_wait:
            return await self._refused(entry, args, "rule" if rule.effect == "ask" else "tool", _CANNOT_WAIT)
        if rule.effect == "ask" or asks:
            entry.reason = rule.reason
            await self._decided(entry, args, "ask", "rule" if rule.effect == "ask" else "tool", reason=rule.reason)
            return ToolResult(requires_approval=True, origin="approval")
        await self._decided(entry, args, "allow", "rule")
        return None

    async def _refused(self, entry: _Entry, args: object, source: Any, reason: str) -> ToolResult:
        await self._decided(entry, args, "deny", source, reason=reason)
        return ToolResult(error=ToolError(kind="refused", message=reason), origin="refused")

    async def _execute(self, entry: _Entry, answers: Mapping[str, Answer]) -> None:
        turn, gate = self._turn, cast("Gate", entry.gate)
        args = cast("dict[str, object]", gate.args)
        run = ToolRun(
            call_id=entry.call.id,
            name=entry.call.name,
            args=args,
            agent_name=turn.agent.name,
            session_id=turn.run.session_id,
        )
        try:
            output = await turn.agent.app.run_tool(run, partial(self._run_tool, entry, args, answers))
        except (_SubAgentPaused, BaseExceptionGroup) as error:
            paused = _pause_in(error)
            if paused is None:
                raise
            if not self._can_wait:
                entry.result = ToolResult(error=ToolError(kind="refused", message=_CANNOT_WAIT), origin="refused")
                return
            entry.paused = paused
            entry.result = ToolResult(requires_approval=True, origin="approval")
            return
        if output.is_error:
            entry.result = ToolResult(error=ToolError(kind="tool", message=text_of(output.content)))
        else:
            entry.result = ToolResult(result=output.content)

    async def _run_tool(self, entry: _Entry, args: Mapping[str, object], answers: Mapping[str, Answer]) -> ToolOutput:
        """The innermost layer: what the tool throws is an answer to the model, and only that."""
        turn = self._turn
        try:
            sub_agent = turn.agent.sub_agents.get(entry.call.name)
            if sub_agent is not None:
                return ToolOutput(content=json_value(await self._run_sub_agent(entry, args, answers)))
            context = ToolContext(
                call_id=entry.call.id,
                agent_name=turn.agent.name,
                session_id=turn.run.session_id,
                metadata=turn.run.metadata,
                data=turn.run.data,
            )
            return await run_tool(turn.agent.tools[entry.call.name], args, context)
        except Exception as error:
            if any(isinstance(each, HookFailure) for each in _alone(error)):
                raise  # a hook inside a sub-agent, or an agent that the tool runs, rejects the run too (P11)
            return ToolOutput(content=ToolError.of_exception(error).message, is_error=True)

    async def _run_sub_agent(self, entry: _Entry, args: Mapping[str, object], answers: Mapping[str, Answer]) -> object:
        """A turn of a sub-agent, under this agent's pipeline hooks as they were when the call began (P17, P18)."""
        from .turn import Turn

        turn = self._turn
        kept = entry.turn_kept
        hooks = cast("Gate", entry.gate).hooks or turn.hooks.snapshot()
        agent = turn.agent.sub_agents[entry.call.name]
        depth = turn.depth + 1
        sub = Turn(
            agent,
            turn.run.for_sub_agent() if kept is None else RunState.restored(kept["run"]),
            turn.watch,
            turn.storage,
            lead=turn.hooks.inherited(hooks),
            subagent={"agentId": agent.name, "agentName": agent.name, "depth": depth, "parent": turn.agent.name},
            depth=depth,
            path=f"{turn.path}{entry.call.id}/",
        )
        try:
            ended = await (sub.begin(str(args["task"])) if kept is None else sub.resume(kept, answers))
        finally:
            turn.absorb(sub)
        if isinstance(ended, Paused):
            raise _SubAgentPaused(ended)
        return ended.output

    async def _settle(self, entry: _Entry) -> SettledCall:
        turn, gate = self._turn, cast("Gate", entry.gate)
        settled = await turn.pipeline.after_execution(gate, entry.result, moment=entry.moment)
        turn.note(settled.decisions[len(gate.decisions) :])
        if settled.result.requires_approval:
            entry.added += settled.appended
            if entry.paused is None:
                entry.approved_args = gate.args
                args = cast("dict[str, object]", copied(gate.args))
                await turn.watch.emit(ApprovalRequired(**self._about(entry), args=args, reason=entry.reason))
            return settled
        entry.message = settled.message()
        entry.added += settled.appended
        await self._told(entry, settled)
        return settled

    async def _told(self, entry: _Entry, settled: SettledCall) -> None:
        content, error = copied(settled.content), settled.result.error
        if error is not None:
            await self._turn.watch.emit(ToolFailed(**self._about(entry), error=error, content=content))
        else:
            hook = cast("str | None", settled.metadata.get("replacedByHook"))
            await self._turn.watch.emit(ToolDone(**self._about(entry), content=content, replaced_by_hook=hook))

    def _pause(self) -> Paused:
        """Keep the batch as it stands."""
        kept: list[dict[str, object]] = []
        calls: list[PendingCall] = []
        for entry in self._entries:
            each: dict[str, object] = {
                "call": entry.call.wire(),
                "moment": {"now": entry.moment.now, "seed": entry.moment.seed},
                "added": entry.added,
            }
            if entry.message is not None:
                each["message"] = entry.message
            elif entry.paused is not None:
                each |= {"args": cast("Gate", entry.gate).args, "turn": entry.paused.kept}
                calls += entry.paused.calls
            else:
                each["args"] = entry.approved_args
                calls.append(self._pending(entry))
            kept.append(each)
            check_keepable({key: value for key, value in each.items() if key != "turn"}, f"/calls/{len(kept) - 1}")
        return Paused(kept=self._turn.kept(kept), calls=tuple(calls))

    def _pending(self, entry: _Entry) -> PendingCall:
        turn = self._turn
        return PendingCall(
            id=turn.path + entry.call.id,
            tool=entry.call.name,
            args=cast("dict[str, object]", copied(entry.approved_args)),
            agent=turn.agent.name,
            reason=entry.reason,
        )

    def _trusted_gate(self, entry: _Entry, settled: ToolResult | None = None) -> Gate:
        """A gate without hooks: for a call that passed them before, or that there is no tool for."""
        turn = self._turn
        tool = turn.agent.tools.get(entry.call.name)
        args = entry.call.args if entry.answer is None else entry.approved_args
        return Gate(
            call=entry.call,
            args=copied(args),
            settled=settled,
            schema=tool.schema if tool else None,
            resumed=entry.answer is not None,
            hooks=turn.hooks.snapshot(),
        )

    def _about(self, entry: _Entry) -> dict[str, Any]:
        turn = self._turn
        return {
            "agent": turn.agent.name,
            "depth": turn.depth,
            "call_id": turn.path + entry.call.id,
            "tool": entry.call.name,
        }

    async def _decided(
        self, entry: _Entry, args: object, decision: Any, source: Any, *, hook: str | None = None, reason: str = ""
    ) -> None:
        await self._turn.watch.decided(
            PermissionDecision(
                agent=self._turn.agent.name,
                call_id=self._turn.path + entry.call.id,
                tool=entry.call.name,
                args=cast("dict[str, object]", copied(args)),
                decision=decision,
                source=source,
                hook=hook,
                reason=reason,
            )
        )


def _after_call(history: Sequence[Message], call_id: str) -> int:
    """Where a batch's results go: right after the message that made the calls, which a hook's own may follow (P12)."""
    for index in range(len(history) - 1, -1, -1):
        calls = history[index].get("toolCalls")
        if is_list(calls) and any(is_map(each) and each.get("id") == call_id for each in calls):
            return index + 1
    return len(history)


def _pause_in(error: BaseException) -> Paused | None:
    """The pause that comes out of middleware: as it is, or in the groups of task groups that were open round it."""
    raised = _alone(error)
    paused = raised[0]
    return paused.paused if len(raised) == 1 and isinstance(paused, _SubAgentPaused) else None


def _alone(error: BaseException) -> list[BaseException]:
    """The exceptions that groups hold, at any depth."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [each for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions for each in _alone(inner)]


async def run_all(jobs: Sequence[Callable[[], Awaitable[None]]]) -> None:
    """Run jobs at the same time; the first exception cancels the others and is raised as it is, in no group."""
    if len(jobs) == 1:
        await jobs[0]()
        return
    failed: list[BaseException] = []

    async def guarded(job: Callable[[], Awaitable[None]], group: anyio.abc.TaskGroup) -> None:
        try:
            await job()
        except BaseException as error:
            failed.append(error)
            group.cancel_scope.cancel()
            if isinstance(error, anyio.get_cancelled_exc_class()):
                raise  # the group is to know; one that a tool raised by itself would end here, and its call with it

    async with anyio.create_task_group() as group:
        for job in jobs:
            group.start_soon(guarded, job, group)
    if failed:
        raise failed[0]
