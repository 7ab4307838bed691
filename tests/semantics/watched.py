"""A loop of which everything told is kept, that can be streamed, paused and resumed; and one list of what happened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio

from hookcell.agent import Answer, Event, PendingApproval, PermissionDecision, TurnDone, TurnResult, TurnStream

from .looping import Loop
from .scripting import ScriptedGuest

__all__ = ["Story", "Watched", "answered", "results", "shapes"]


class Watched(Loop):
    """A loop with the permission decisions it came to, resumed and streamed on an event loop of its own each time."""

    def __init__(self, *hooks: Any, **options: Any) -> None:
        self.decisions: list[PermissionDecision] = []
        super().__init__(*hooks, **{"on_permission_decision": self.decisions.append, **options})

    def resume(
        self, pending: PendingApproval | str | None, answers: Mapping[str, Answer] | Answer, *, backend: str = "asyncio"
    ) -> TurnResult:
        """Go on with a turn; one answer is for every call that waits."""
        assert pending is not None

        async def main() -> TurnResult:
            return await self.agent.resume(pending, answered(pending, answers))

        return anyio.run(main, backend=backend)

    def stream(
        self, content: str = "hi", *, backend: str = "asyncio", **options: Any
    ) -> tuple[list[Event], TurnResult]:
        """One streamed turn: its events, and what it came to."""
        return _drained(lambda: self.agent.stream(content, **options), backend)

    def resume_stream(
        self, pending: PendingApproval | None, answers: Mapping[str, Answer] | Answer, *, backend: str = "asyncio"
    ) -> tuple[list[Event], TurnResult]:
        """The same for a resume."""
        assert pending is not None
        return _drained(lambda: self.agent.resume_stream(pending, answered(pending, answers)), backend)


def answered(pending: PendingApproval | str, answers: Mapping[str, Answer] | Answer) -> Mapping[str, Answer]:
    """The same answer for every call that waits, unless each has its own."""
    if isinstance(answers, Mapping):
        return answers
    assert isinstance(pending, PendingApproval), "a token does not say which calls wait"
    return {call.id: answers for call in pending.calls}


def results(result: TurnResult) -> list[tuple[object, object]]:
    """Each tool message of the conversation: its call's id and its content."""
    return [(message["toolCallId"], message["content"]) for message in result.messages if message["role"] == "tool"]


def shapes(messages: Any) -> list[str]:
    """The conversation at a glance: each message's role, a tool's with the call it answers."""
    return [f"tool {each['toolCallId']}" if each["role"] == "tool" else str(each["role"]) for each in messages]


def _drained(start: Any, backend: str) -> tuple[list[Event], TurnResult]:
    events: list[Event] = []

    async def main() -> TurnResult:
        stream: TurnStream = start()
        async for event in stream:
            events.append(event)  # noqa: PERF401 what came before an error is kept
        last = events[-1]
        assert isinstance(last, TurnDone)
        assert last.result is stream.result
        return stream.result

    return events, anyio.run(main, backend=backend)


class Story:
    """One list of all that happened: hooks of both kinds and the host's own code write into it."""

    def __init__(self, *hooks: Any) -> None:
        """Have these scripted hooks write here what they see, each under its name."""
        self._happened: list[Any] = []
        for hook in hooks:
            told = _Teller(hook.name, self._happened)
            if isinstance(hook, ScriptedGuest):
                hook.sandbox.crossed = told  # type: ignore[attr-defined]  # a RecordingSandbox
            else:
                hook.implementation.seen = told

    def told(self, what: str, value: Any = None) -> Any:
        """Note that something happened; gives ``value``."""
        self._happened.append(what)
        return value

    @property
    def lines(self) -> list[str]:
        """What happened, in order: notes, and ``"<hook> <point>"`` with the call's id at a tool point."""
        return list(self._happened)


class _Teller(list[Any]):
    """What one hook saw, told to the story as well."""

    def __init__(self, name: str, happened: list[Any]) -> None:
        super().__init__()
        self._name = name
        self._happened = happened

    def append(self, seen: Any, /) -> None:
        point, context = (seen["point"], seen) if isinstance(seen, dict) else seen
        call = context.get("toolCallId") or (context.get("call") or {}).get("id")
        self._happened.append(" ".join(part for part in (self._name, point, call) if part))
        super().append(seen)
