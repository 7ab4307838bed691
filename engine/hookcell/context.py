"""What a host hook sees of its context, and what a run's contexts have in common.

A context is a dict with the wire's names (``toolName``), which is what guests get. Host hooks see the same through
`HookContext`, with Python's names (``tool_name``) and live values where the rules let a hook change them (P2).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

from .history import History, Message
from .points import ON_REQUEST_FIELDS, POINTS, Point
from .state import HookState, adopt
from .values import copied, same

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .trace import Moment

__all__ = ["HookContext", "RunFacts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What all contexts of one run have in common.

    Attributes:
        messages: The conversation, live: hooks at generate points edit this very list. Any list is right; a `History`
            is also fast, for it encodes each message once.
        metadata: The run's free bag, live.
        agent_id: The agent that is running.
        agent_name: Its name.
        session_id: The session; owner of hooks' storage of scope ``session`` (G3).
        run_id: The run; owner of hooks' storage of scope ``run``.
        tenant: The host's customer; storage never crosses tenants.
        environment: For example ``production``; storage never crosses environments.
        subagent: ``{agentId, agentName, depth, parent}`` inside a sub-agent, else None (P17).
        state: The run's state, live, with the conversation under ``history`` (C7); None where no agent-class hooks run.
        data: The caller's own, for agent-class hooks to read (C7).
    """

    messages: list[Message] = field(default_factory=History)
    metadata: dict[str, object] = field(default_factory=dict[str, object])
    agent_id: str = ""
    agent_name: str = ""
    session_id: str = ""
    run_id: str = field(default_factory=lambda: uuid4().hex)
    tenant: str = ""
    environment: str = ""
    subagent: Mapping[str, object] | None = None
    state: dict[str, object] | None = None
    data: object = None

    def context(self, own: Mapping[str, object]) -> dict[str, object]:
        """The context of one point: the common fields and the point's ``own``, under the wire's names."""
        context: dict[str, object] = {
            "agentId": self.agent_id,
            "agentName": self.agent_name,
            "sessionId": self.session_id,
            "messages": self.messages,
            "metadata": self.metadata,
        }
        if self.subagent is not None:
            context["subagent"] = self.subagent
        context.update(own)
        return context

    def at(self, point: str, own: Mapping[str, object]) -> dict[str, object]:
        """`context` for a point by its name: agent-class points have ``state`` and ``data`` too.

        Raises:
            KeyError: There is no such point.
        """
        context = self.context(own)
        if POINTS[point].family == "agent_class":
            context["state"] = {} if self.state is None else self.state
            context["data"] = self.data
        return context


def _attribute(wire: str) -> str:
    return re.sub(r"([A-Z])", r"_\1", wire).lower()


def _attributes(point: Point) -> dict[str, str]:
    return {_attribute(name): name for name in (*point.fields, *ON_REQUEST_FIELDS)}


_WIRE_NAMES: Final = {name: _attributes(point) for name, point in POINTS.items()}
_LIVE_DICTS: Final = ("metadata", "request", "state")


class HookContext:
    """One host hook's context at one point.

    Fields of the point that a run does not have are None (``subagent`` outside a sub-agent). What a hook may change in
    place is live under the failure policy ``raise`` and a copy, adopted when the hook succeeds, under ``deny`` and
    ``skip`` (P11): ``messages``, ``metadata``, ``request`` and ``state`` by the point's rule. Maps are adopted key by
    key, so that what others did to the run meanwhile stands. ``args`` is a copy under every policy, since a mismatch
    drops what the hook did to it (P6); the difference cannot be seen by a hook that returns. At tool points
    ``messages`` is a list of its own: what is appended stands after the batch's results (P2).
    Everything else is read only: a hook gets a copy, and what it does to the copy is lost.

    How deep the append-only rule is watched: the messages before the new ones must be the same objects. A trusted hook
    that edits inside one of them is not caught; a guest, which works on bytes, is.
    """

    __slots__ = ("_before", "_context", "_copies", "_events", "_handed", "_meta", "_moment", "_point")
    _before: dict[str, Any]
    _context: dict[str, Any]
    _copies: bool
    _events: list[dict[str, object]]
    _handed: dict[str, Any]
    _meta: dict[str, object]
    _moment: Callable[[], Moment]
    _point: Point

    # The fields as attributes, for readers and type checkers; `__getattr__` serves them.
    agent_id: str
    agent_name: str
    session_id: str
    messages: list[dict[str, Any]]
    metadata: dict[str, Any]
    subagent: dict[str, Any] | None
    now: int
    seed: int
    tool_call_id: str
    tool_name: str
    args: dict[str, Any]
    tool_call: dict[str, Any]
    tool_schema: dict[str, Any] | None
    resumed: bool | None
    origin: str
    request: dict[str, Any]
    streaming: bool | None
    result: Any
    data: Any
    state: HookState

    def __init__(self, point: Point, context: dict[str, object], *, copies: bool, moment: Callable[[], Moment]) -> None:
        put = object.__setattr__
        put(self, "_point", point)
        put(self, "_context", context)
        put(self, "_copies", copies)
        put(self, "_moment", moment)
        put(self, "_handed", {})
        put(self, "_before", {})
        put(self, "_events", [])
        put(self, "_meta", {})

    @property
    def point(self) -> str:
        """The hook point's name."""
        return self._point.name

    @property
    def emit(self) -> Callable[[Mapping[str, object]], None] | None:
        """Adds an event to the stream; None where the run is not streamed or the point has no events (P13)."""
        if "events" in self._point.keys and self._context.get("streaming") is True:
            return lambda event: self._events.append(dict(event))
        return None

    def meta(self, notes: Mapping[str, object]) -> None:
        """Leave notes on the turn's result, merged shallowly (C7)."""
        if "meta" not in self._point.keys:
            raise AttributeError(f"{self._point.name} has no meta; agent-class points do")
        self._meta.update(notes)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in HookContext.__slots__:
            raise AttributeError(name)  # asked of a context that copy or pickle is making
        wire = _WIRE_NAMES[self._point.name].get(name)
        if wire is None:
            if self._point.family == "agent_class" and name in HookState(self._hand("state")):
                return self._hand("state")[name]
            raise AttributeError(f"the context of {self._point.name} has no field {name!r}")
        if wire in ON_REQUEST_FIELDS and wire not in self._context:
            return getattr(self._moment(), wire)
        return HookState(self._hand("state")) if wire == "state" else self._hand(wire)

    def __setattr__(self, name: str, value: object) -> None:
        wire = _WIRE_NAMES[self._point.name].get(name)
        if wire in self._point.patch_roots and wire != "state":
            self._hand(wire)
            self._handed[wire] = value
        elif wire is None and self._point.family == "agent_class":
            HookState(self._hand("state")).set(name, value)  # C7: a value stored on the context is kept in the state
        else:
            raise AttributeError(f"{name!r} cannot be set at {self._point.name}")

    def subject(self, wire: str) -> Any:
        """The value that a method gets as its own parameter, e.g. ``result``."""
        return self._hand(wire)

    def _hand(self, wire: str) -> Any:
        if wire not in self._handed:
            self._handed[wire], self._before[wire] = self._first(wire, self._context.get(wire))
        return self._handed[wire]

    def _first(self, wire: str, value: Any) -> tuple[Any, Any]:
        """What to hand to the hook, and what to remember to see whether it changed."""
        if wire == "messages":
            return self._first_messages(value if value is not None else [])
        if wire == "args":
            return copied(value), value
        if wire not in self._point.patch_roots:
            return copied(value), None
        if self._copies:
            return copied(value), copied(value)  # the run may go on changing the one that is shared
        return value, _remembered(value) if wire == "state" else copied(value)

    def _first_messages(self, history: list[Any]) -> tuple[list[Any], list[Any]]:
        edits = self._point.message_edits
        if edits == "append":
            return list(history), list(history)
        if edits == "none" and isinstance(self._context.get("state"), dict) and "history" in self._hand("state"):
            return self._hand("state")["history"], []  # C7: the same list
        if self._copies:
            return cast("list[Any]", copied(history)), cast("list[Any]", copied(history))
        # A system message is remembered by value, for a hook may not edit one in place either (P2).
        return history, [copied(item) if _is_system(item) else item for item in history]

    # What the chain asks once the hook has returned.

    def changes(self) -> dict[str, Any]:
        """New values of the fields that the hook changed; ``messages`` is the list as the hook left it."""
        changed: dict[str, Any] = {}
        for wire in self._point.patch_roots:
            if wire in self._handed:
                after, before = self._handed[wire], self._before[wire]
                if not self._unchanged(wire, before, after):
                    shared = self._copies and wire in _LIVE_DICTS
                    changed[wire] = _merged(self._context.get(wire), before, after) if shared else after
        return changed

    def _unchanged(self, wire: str, before: Any, after: Any) -> bool:
        if wire == "messages" and (not self._copies or self._point.message_edits == "append"):
            return _same_items(before, after)
        return _same_state(before, after) if wire == "state" and not self._copies else same(before, after)

    def before(self, wire: str) -> Any:
        """The field as it was when the hook first looked at it; None if it never did."""
        return self._before.get(wire)

    def restore(self) -> None:
        """Put back what was changed in place at a tool point: the hook's outcome is dropped (P6)."""
        if self._copies:
            return
        for wire in self._point.patch_roots.intersection(_LIVE_DICTS):
            if wire in self._before and wire in self._context:
                adopt(cast("dict[str, object]", self._context[wire]), self._before[wire])

    @property
    def emitted(self) -> list[dict[str, object]]:
        """Events that the hook emitted."""
        return self._events

    @property
    def noted(self) -> dict[str, object]:
        """Notes that the hook left."""
        return self._meta


def _merged(live: object, before: object, after: object) -> object:
    """What the hook did to its copy, done to the shared map as it is by now: key by key, so that both changes stand."""
    if not (isinstance(live, dict) and isinstance(before, dict) and isinstance(after, dict)):
        return after
    now, old, new = cast("tuple[dict[str, object], dict[str, object], dict[str, object]]", (live, before, after))
    kept = {key: value for key, value in now.items() if key in new or key not in old}
    return kept | {key: value for key, value in new.items() if key not in old or not same(old[key], value)}


def _is_system(message: object) -> bool:
    return isinstance(message, dict) and cast("dict[str, object]", message).get("role") == "system"


def _same_items(before: Sequence[object], after: object) -> bool:
    """Whether ``after`` holds the same message objects; system messages are compared by value."""
    if not isinstance(after, list):
        return False
    items = cast("list[object]", after)
    return len(before) == len(items) and all(
        x is y or (_is_system(x) and same(x, y)) for x, y in zip(before, items, strict=True)
    )


def _remembered(state: Mapping[str, object] | None) -> dict[str, object] | None:
    if state is None:
        return None
    # The history is remembered by its messages' identity: copying a long one would cost more than the hook.
    return {key: list(cast("list[object]", v)) if key == "history" else copied(v) for key, v in state.items()}


def _same_state(before: object, after: object) -> bool:
    if isinstance(before, dict) and isinstance(after, dict):
        old, new = cast("tuple[dict[str, object], dict[str, object]]", (before, after))
        return old.keys() == new.keys() and all(
            _same_items(cast("list[object]", item), new[key]) if key == "history" else same(item, new[key])
            for key, item in old.items()
        )
    return before is after
