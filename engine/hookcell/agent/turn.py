"""One turn: from what was said to the agent's answer, with every hook point fired where the rules say.

```
before_prompt ─► ┌ pre_generate ─► model ─► post_generate ─► tool calls? ──no──► after_response ─► answer
                 └──────────────────── a batch of them ◄───────yes┘        on_error ◄─ any exception
```
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, cast

from hookcell.conversation import assistant_message, close_open_calls
from hookcell.crossing import Uncrossable, encode_value
from hookcell.errors import HookFailure, HookThrew
from hookcell.host_hook import HostHook
from hookcell.outcomes import ABSENT
from hookcell.shapes import is_list, is_map
from hookcell.tool_call import ToolPipeline
from hookcell.tool_result import ToolCall, message_of
from hookcell.values import copied, same

from .arrangement import Arrangement
from .batch import Batch
from .compaction import Compactor
from .errors import DepthExceeded, StepLimitReached
from .events import CompactionDone, CompactionStarted, TextDelta, TurnFailed
from .models import ModelRequest, ModelResponse, OnText, Provider, Usage
from .own_run import StepContext, run_step
from .run_state import check_keepable

if TYPE_CHECKING:
    from hookcell.history import Message
    from hookcell.registry import Registered
    from hookcell.storage import HookStorage
    from hookcell.trace import Decision

    from .agent import Agent
    from .approvals import Answer
    from .entry import Paused
    from .run_state import RunState
    from .watch import Watch

__all__ = ["Ended", "Turn"]

_NOT_RUN: Final = "The turn was cut short before this call had a result. It may have run."
_AROUND_ARGS: Final = 6
"""Containers round a call's arguments: context, state, messages, message, toolCalls and call."""

_COMPACTION_EVENTS: Final = {"compaction.start": CompactionStarted, "compaction.done": CompactionDone}

# How many turns this task is inside of, through sub-agents, tools and hooks; and the least that one of them allows.
_depth: ContextVar[tuple[int, float]] = ContextVar("hookcell_depth", default=(0, math.inf))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A turn that is over. ``error`` is the one that `on_error` made an answer of."""

    output: object
    error: Exception | None = None


class Turn:
    """One agent's turn on one run.

    Attributes:
        agent: The agent.
        run: The run.
        watch: Who watches.
        storage: Where guests keep their values.
        depth: 0 for the agent that was sent to; 1 for its sub-agents.
        path: Ids of the calls that led here, each followed by a slash.
        hooks: The turn's hooks.
        pipeline: The tool calls' way through them.
        decisions: What hooks came to so far, sub-agents' included.
        usage: Tokens so far, likewise.
        meta: Notes so far.
    """

    def __init__(
        self,
        agent: Agent,
        run: RunState,
        watch: Watch,
        storage: HookStorage,
        *,
        lead: Sequence[Registered] = (),
        subagent: Mapping[str, object] | None = None,
        depth: int = 0,
        path: str = "",
    ) -> None:
        self.agent = agent
        self.run = run
        self.watch = watch
        self.storage = storage
        self.depth = depth
        self.path = path
        compaction = Compactor(agent.compaction, self._ask_quietly, self._tell) if agent.compaction else None
        self.hooks = Arrangement(
            agent.hooks,
            lead=lead,
            agent_class=agent.class_hook,
            compaction=HostHook.of(compaction) if compaction else None,
        )
        self.facts = run.facts(agent=agent.name, subagent=subagent)
        # Where no state is, no agent-class hook is asked: none fires round the tool calls of a step of its own (C8).
        facts = self.facts if agent.own_run is None else replace(self.facts, state=None)
        self.pipeline = ToolPipeline(hooks=self.hooks, run=facts, storage=storage, limits=agent.limits)
        self.decisions: list[Decision] = []
        self.usage = Usage()
        self.meta: dict[str, object] = {}
        self._prompt = agent.prompt
        self._steps = 0

    async def begin(self, content: str | list[dict[str, object]]) -> Ended | Paused:
        """The turn from its start.

        Args:
            content: What the user says: a text, or parts of a message.

        Raises:
            HookFailure: A hook failed under ``raise`` (P11), and no `on_error` made an answer of it.
            DepthExceeded: Too many agents inside one another.
            Exception: Whatever else left the turn: the model's errors, the host's own.
        """
        with _deeper(self.agent.max_depth):
            if self.agent.own_run is not None:
                # It owns the step: no agent-class hook fires, `on_error` included (C8).
                step = StepContext(self)
                return Ended(output=await run_step(self.agent, step, content))
            return await self._guarded(self._first, content)

    async def resume(self, kept: Mapping[str, Any], answers: Mapping[str, Answer]) -> Ended | Paused:
        """The turn from where it waited for approvals.

        Args:
            kept: What `kept` gave.
            answers: By the pending calls' ids; every one of them is answered.

        Raises:
            Exception: As `begin`.
        """
        self._prompt = kept["prompt"]
        self._steps = kept["steps"]
        self.meta = dict(kept["meta"])
        if self.depth == 0:
            # What a sub-agent used before it waited is in its lead's figure already.
            self.usage = Usage(input_tokens=kept["usage"]["inputTokens"], output_tokens=kept["usage"]["outputTokens"])
        with _deeper(self.agent.max_depth):
            return await self._guarded(self._again, Batch.restored(self, kept["batch"]), answers)

    def kept(self, batch: list[dict[str, object]]) -> dict[str, object]:
        """The turn as JSON-like values, for the pending state.

        Raises:
            RunNotSerialisable: The run holds something that cannot be kept.
        """
        for key, value in {"prompt": self._prompt, "meta": self.meta}.items():
            check_keepable(value, f"/{key}")
        return {
            "run": self.run.kept(),
            "prompt": self._prompt,
            "steps": self._steps,
            "meta": self.meta,
            "usage": self.usage.wire(),
            "batch": batch,
        }

    def note(self, decisions: Iterable[Decision]) -> None:
        """Keep what hooks came to, where there were any."""
        for decision in decisions:
            if decision.trace:
                self.decisions.append(decision)
            self.meta.update(decision.meta)

    def absorb(self, other: Turn) -> None:
        """Keep what a sub-agent's turn came to as part of this one; its notes stay its own."""
        self.decisions += other.decisions
        self.usage += other.usage

    def cut_short(self) -> None:
        """Leave a conversation that a next turn can go on with: every call has a result."""
        close_open_calls(self.run.history, _NOT_RUN)

    async def _first(self, content: str | list[dict[str, object]]) -> Ended | Paused:
        self.run.history.append({"role": "user", "content": _sayable(content)})
        decision = await self._point("before_prompt", {"prompt": self.agent.prompt})
        self._prompt = cast("str", decision.fields.get("prompt", self.agent.prompt))
        return await self._go_on()

    async def _again(self, batch: Batch, answers: Mapping[str, Answer]) -> Ended | Paused:
        paused = await batch.resume(answers)
        return paused or await self._go_on()

    async def _go_on(self) -> Ended | Paused:
        while True:
            if self._steps >= self.agent.max_steps:
                raise StepLimitReached(
                    f"agent {self.agent.name!r} called its model {self._steps} times in one turn and it still wants "
                    "tools; raise max_steps or see what it is stuck on"
                )
            self._steps += 1
            calls, text = await self._generate()
            if not calls:
                return await self._answer(text)
            paused = await Batch(self, calls).run()
            if paused:
                return paused

    async def _generate(self) -> tuple[list[ToolCall], str]:
        """One model call: the tool calls that are to run, and the text as hooks left it."""
        request = cast("dict[str, object]", copied(self.agent.request))
        own: dict[str, object] = {"request": request, "streaming": self.watch.streaming}
        await self._emitted(await self._point("pre_generate", own))
        system: list[Message] = [{"role": "system", "content": self._prompt}] if self._prompt else []
        response = await self._ask(
            ModelRequest(
                # Copies: what a provider or a middleware does to them is between it and the model.
                messages=[*system, *map(_as_sent, self.run.history)],
                tools=[tool.definition() for tool in self.agent.tools.values()],
                options=request,
                notes=self.run.notes,
            )
        )
        calls = [_crossing(call) for call in _with_ids(response.tool_calls)]
        message = assistant_message(_unicode(response.text), calls)
        if response.notes and calls:
            self.run.note(calls[0].id, response.notes)
        history = self.run.history
        before = list(history)
        history.append(message)
        result: dict[str, object] = {"message": copied(message), "usage": response.usage.wire()}
        if response.finish_reason is not None:
            result["finishReason"] = response.finish_reason
        own = {"request": copied(request), "result": result, "streaming": self.watch.streaming}
        await self._emitted(await self._point("post_generate", own))
        # What a hook took out of the conversation is not run or said: the message stands as hooks left it (P12).
        left = _left_by_hooks(history, before)
        shown = left.get("toolCalls")
        ids = {each.get("id") for each in shown if is_map(each)} if is_list(shown) else set[object]()
        content = left.get("content", "")
        return [call for call in calls if call.id in ids], content if isinstance(content, str) else response.text

    async def _answer(self, text: str) -> Ended:
        decision = await self._point("after_response", {"response": text})
        return Ended(output=decision.fields.get("response", text))

    async def _ask(self, request: ModelRequest) -> ModelResponse:
        """Call the model, inside the app's middleware; in a streamed run its text is told as it comes."""
        told = False

        async def on_text(text: str) -> None:
            nonlocal told
            told = True
            await self.watch.emit(TextDelta(agent=self.agent.name, depth=self.depth, text=text))

        streaming = self.watch.streaming
        response = await self._call(self.agent.provider, request, on_text if streaming else None)
        if streaming and response.text and not told:
            await on_text(response.text)  # as middleware left it, or gave it without asking the model
        return response

    async def _ask_quietly(self, request: ModelRequest, provider: Provider | None) -> ModelResponse:
        """Call a model for the loop's own ends: no hooks, nothing told, its tokens counted."""
        return await self._call(provider or self.agent.provider, request, None)

    async def _call(self, provider: Provider, request: ModelRequest, on_text: OnText | None) -> ModelResponse:
        async def generate() -> ModelResponse:
            response = await provider.generate(request, on_text)
            if not isinstance(cast("object", response), ModelResponse):
                raise TypeError(f"a provider answers with a ModelResponse, not {type(response).__name__}")
            self.usage += response.usage
            return response

        return await self.agent.app.run_chat(request, generate)

    async def _point(self, point: str, own: Mapping[str, object]) -> Decision:
        decision = await self.pipeline.point(point, own)
        self.note((decision,))
        return decision

    async def _emitted(self, decision: Decision) -> None:
        """Tell of the events that hooks emitted (P13)."""
        for event in decision.events:
            details = {key: value for key, value in event.items() if key not in ("type", "hook")}
            await self._told(str(event["type"]), str(event.get("hook", "")), details)

    async def _tell(self, kind: str, details: dict[str, object]) -> None:
        """Tell of the loop's own compaction, as a hook could: in streamed runs only (P13)."""
        if self.watch.streaming:
            await self._told(kind, Compactor.name, details)

    async def _told(self, kind: str, hook: str, details: dict[str, object]) -> None:
        event = _COMPACTION_EVENTS[kind]
        await self.watch.emit(event(agent=self.agent.name, depth=self.depth, hook=hook, details=details))

    async def _guarded(self, steps: Callable[..., Awaitable[Ended | Paused]], *arguments: Any) -> Ended | Paused:
        """Run the steps; whatever leaves them leaves a conversation that a next turn can go on with."""
        try:
            return await steps(*arguments)
        except Exception as error:
            self.cut_short()
            await self.watch.emit(TurnFailed(agent=self.agent.name, depth=self.depth, error=error, state=self.run))
            output = await self._recovered(error)
            if output is ABSENT:
                raise
            if isinstance(output, str):
                self.run.history.append({"role": "assistant", "content": output})
            return Ended(output=output, error=error)
        except BaseException:
            self.cut_short()  # a cancellation: no hook hears of it (C6)
            raise

    async def _recovered(self, error: Exception) -> object:
        """What `on_error` made of it; `ABSENT` when no hook had an answer (C6)."""
        try:
            decision = await self._point("on_error", {"error": _facts_of(error)})
        except HookFailure as second:
            _caused_by(second, error)
            raise
        return decision.value


@contextmanager
def _deeper(most: float) -> Generator[None]:
    depth, least = _depth.get()
    depth, most = depth + 1, min(most, least)
    if depth > most:
        raise DepthExceeded(
            f"agents run inside one another {depth} deep (limit {most}); end the recursion or raise max_depth"
        )
    token = _depth.set((depth, most))
    try:
        yield
    finally:
        _depth.reset(token)


def _left_by_hooks(history: Sequence[Message], before: Sequence[Message]) -> Message:
    """The model's message as hooks left it, after ``before``; others may follow it. Empty when they took it out."""
    start = len(before) if same(history[: len(before)], before) else 0
    new = takewhile(lambda message: message.get("role") != "tool", reversed(history[start:]))
    answers = [message for message in new if message.get("role") == "assistant"]
    return next((message for message in answers if message.get("toolCalls")), answers[0] if answers else {})


def _as_sent(message: Message) -> Message:
    return {key: copied(value) for key, value in message.items() if key != "metadata"}


def _unicode(text: str) -> str:
    """The text without lone surrogates, which no guest could be shown: one would fail every turn from here on."""
    return text.encode("utf-8", "replace").decode()


def _sayable(content: str | list[dict[str, object]]) -> object:
    """What the user says, as it can stand in a context.

    Raises:
        ValueError: A part holds a value that cannot.
    """
    if isinstance(content, str):
        return _unicode(content)
    encode_value(content, "/content")
    return copied(content)


def _crossing(call: ToolCall) -> ToolCall:
    """The call as it can stand in a context. Arguments that cannot become what is wrong with them: they never fit."""
    try:
        encode_value(call.args, "/args", enclosing=_AROUND_ARGS)
    except Uncrossable as error:
        call = replace(call, args=str(error))
    return replace(call, name=_unicode(call.name))


def _with_ids(calls: Iterable[ToolCall]) -> list[ToolCall]:
    """The calls with ids that are not empty and their own, without the slash that parts pending calls' paths."""
    seen: set[str] = set()
    named: list[ToolCall] = []
    for index, call in enumerate(calls):
        name = call.id
        if not name or "/" in name or name in seen or name != _unicode(name):
            name = next(free for n in range(index, index + len(seen) + 2) if (free := f"call_{n}") not in seen)
            call = ToolCall(id=name, name=call.name, args=call.args)  # noqa: PLW2901 the call as it goes on
        seen.add(name)
        named.append(call)
    return named


def _facts_of(error: Exception) -> dict[str, object]:
    """``{name, message, hook?}``: a hook that threw is told by what it threw (C6)."""
    if isinstance(error, HookThrew):
        return {"name": error.name, "message": error.message, "hook": error.hook}
    facts: dict[str, object] = {"name": type(error).__name__, "message": message_of(error)}
    return {**facts, "hook": error.hook} if isinstance(error, HookFailure) else facts


def _caused_by(error: BaseException, first: Exception) -> None:
    """Put the first error at the end of the new one's causes, so that neither hides the other (C6)."""
    last, seen = error, {id(error)}
    while last.__cause__ is not None and id(last.__cause__) not in seen:
        last = last.__cause__
        seen.add(id(last))
    if last is not first:
        last.__cause__ = first
