"""A run: the conversation and what lasts as long as it (SEMANTICS C7). Several turns and agents may share one."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from hookcell.context import RunFacts
from hookcell.crossing import Uncrossable, encode_value
from hookcell.history import History
from hookcell.shapes import is_list, is_map
from hookcell.state import HookState
from hookcell.values import copied

from .errors import RunBusy, RunNotSerialisable

if TYPE_CHECKING:
    from hookcell.history import Message

__all__ = ["RunState", "check_keepable"]


class RunState:
    """One run.

    Attributes:
        history: The conversation, live. The agent's system prompt is not in it.
        metadata: The free bag that pipeline hooks see and write, live; never sent to the model.
        data: The caller's own, for agent-class hooks and tools to read.
        session_id: The session; owner of hooks' storage of scope ``session`` (G3).
        run_id: The run; owner of hooks' storage of scope ``run``.
        tenant: The host's customer; storage never crosses tenants.
        environment: For example ``production``; storage never crosses environments.
    """

    def __init__(
        self,
        *,
        messages: Iterable[Message] = (),
        state: Mapping[str, object] | None = None,
        metadata: Mapping[str, object] | None = None,
        data: object = None,
        session_id: str = "",
        run_id: str = "",
        tenant: str = "",
        environment: str = "",
    ) -> None:
        """
        Args:
            messages: A conversation to go on with.
            state: Free keys for agent-class hooks; ``history`` is the conversation and not given here.
            metadata: The bag's first contents.
            data: The caller's own.
            session_id: Default: one of its own, so that nothing is shared by accident.
            run_id: Default: a fresh one.
            tenant: See above.
            environment: See above.

        Raises:
            ValueError: ``state`` has a ``history``.
        """
        if state is not None and "history" in state:
            raise ValueError("the state's history is the conversation; give it as messages=")
        self.run_id = run_id or uuid4().hex
        self.session_id = session_id or self.run_id
        self.tenant = tenant
        self.environment = environment
        # Copies: what hooks do to this run is not done to the next one that is seeded with the same values.
        self.history = History(cast("list[Message]", copied(list(messages))))
        self.metadata: dict[str, object] = cast("dict[str, object]", copied(dict(metadata or {})))
        self.data = data
        # What the provider wants to see again, by the first call's id of the answer it belongs to; no hook sees it.
        self.notes: dict[str, Mapping[str, object]] = {}
        fields = cast("dict[str, Any]", copied(dict(state or {})))
        self._fields: dict[str, Any] = {**fields, "history": self.history}
        self._turn = threading.Lock()
        self._waits = False

    @property
    def state(self) -> HookState:
        """The state that agent-class hooks see, live: ``history`` is the conversation, any other key is free."""
        return HookState(self._fields)

    def facts(self, *, agent: str, subagent: Mapping[str, object] | None = None) -> RunFacts:
        """What contexts of this run have in common while ``agent`` works on it."""
        return RunFacts(
            messages=self.history,
            metadata=self.metadata,
            agent_id=agent,
            agent_name=agent,
            session_id=self.session_id,
            run_id=self.run_id,
            tenant=self.tenant,
            environment=self.environment,
            subagent=subagent,
            state=self._fields,
            data=self.data,
        )

    def for_sub_agent(self) -> RunState:
        """A run for a sub-agent: a conversation and state of its own, the metadata copied (P17)."""
        return RunState(
            metadata=cast("dict[str, object]", copied(self.metadata)),
            data=self.data,
            session_id=self.session_id,
            run_id=self.run_id,
            tenant=self.tenant,
            environment=self.environment,
        )

    @contextmanager
    def one_turn(self) -> Generator[None]:
        """Hold the run for one turn.

        Raises:
            RunBusy: Another turn is under way, or calls wait for approval.
        """
        if not self._turn.acquire(blocking=False):
            raise RunBusy("the run has another turn under way; await it, or give this one a RunState of its own")
        try:
            # With the lock in hand: the turn that had it may have ended in a pause just now.
            if self._waits:
                raise RunBusy("calls of this run wait for approval; resume it, and go on with the result's state")
            yield
        finally:
            self._turn.release()

    def note(self, call_id: str, notes: Mapping[str, object]) -> None:
        """Keep what the provider left with an answer, and forget what belongs to none that is left."""
        calls = {
            each.get("id")
            for message in self.history
            if is_list(c := message.get("toolCalls"))
            for each in c
            if is_map(each)
        }
        self.notes = {**{call: kept for call, kept in self.notes.items() if call in calls}, call_id: notes}

    def wait(self) -> None:
        """The run went into a pending state: what follows happens to the run that is made from that."""
        self._waits = True

    def kept(self) -> dict[str, object]:
        """It as JSON-like values, to be kept in a pending state.

        Raises:
            RunNotSerialisable: A value in it cannot be.
        """
        kept: dict[str, object] = {
            "messages": list(self.history),
            "state": {key: value for key, value in self._fields.items() if key != "history"},
            "metadata": self.metadata,
            "data": self.data,
            "notes": self.notes,
            "sessionId": self.session_id,
            "runId": self.run_id,
            "tenant": self.tenant,
            "environment": self.environment,
        }
        for key, value in kept.items():
            check_keepable(value, f"/{key}")
        return kept

    @classmethod
    def restored(cls, kept: Mapping[str, Any]) -> RunState:
        """The run that `kept` gave."""
        run = cls(
            messages=kept["messages"],
            state=kept["state"],
            metadata=kept["metadata"],
            data=kept["data"],
            session_id=kept["sessionId"],
            run_id=kept["runId"],
            tenant=kept["tenant"],
            environment=kept["environment"],
        )
        run.notes = kept["notes"]
        return run


def check_keepable(value: object, path: str) -> None:
    """Refuse a value that a pending state cannot keep.

    Args:
        value: Any value.
        path: JSON Pointer of it, for the error.

    Raises:
        RunNotSerialisable: It, or something in it, is no JSON value and no bytes.
    """
    try:
        encode_value(value, path)
    except Uncrossable as error:
        raise RunNotSerialisable(error.path, error.type) from error
