"""What one hook returned, once it is known to keep the rules (P8).

The checks are strict and by hand: a guest may return twenty thousand wrong items, and an error about them is one short
line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Final, cast

from hookcell_sandbox.guest_text import escape

from .codec import decode, pointer
from .hints import foreign_key, kind_of
from .malformed import Malformed
from .points import DECIDING_KEYS, Point
from .shapes import is_list, is_map

__all__ = [
    "ABSENT",
    "EVENTS",
    "EVENT_TYPES",
    "PATCH_OPERATIONS",
    "Absent",
    "Outcome",
    "ThrownError",
    "check_outcome",
    "read_outcome",
]

PATCH_OPERATIONS: Final = 1_000
"""Operations of one patch."""

EVENTS: Final = 100
"""Events of one outcome."""

EVENT_TYPES: Final = frozenset({"compaction.start", "compaction.done"})
"""What a hook may emit (P13)."""


class Absent(Enum):
    """The key is not there. ``None`` is a value (P5, C2), so absence needs a mark of its own."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrownError:
    """The outcome's ``error``: the hook threw. Guest text."""

    name: str
    message: str
    stack: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One hook's outcome. Every attribute is `ABSENT`, or empty, when its key was not there.

    ``storage`` present and ``None`` empties the storage.
    """

    deny: str | Absent = ABSENT
    result: object = ABSENT
    input: dict[str, object] | Absent = ABSENT
    replace: object = ABSENT
    error: ThrownError | Absent = ABSENT
    storage: object = ABSENT
    patch: tuple[dict[str, object], ...] = ()
    events: tuple[dict[str, object], ...] = ()
    meta: dict[str, object] = field(default_factory=dict[str, object])


def read_outcome(raw: bytes, point: Point, *, streaming: bool = False) -> Outcome:
    """The outcome in a guest's bytes.

    Args:
        raw: What the guest returned; untrusted, at most ``limits.output_bytes``. Empty is malformed: a guest that has
            nothing to say returns 0, and that never gets here.
        point: Where the hook ran.
        streaming: Whether the run is streamed, so that events may be emitted (P13).

    Raises:
        Malformed: The bytes are no bounded msgpack map, or the map breaks a rule (P2, P4-P6, P8, P12, P13, C2-C4).
    """
    return check_outcome(decode(raw), point, streaming=streaming)


def check_outcome(value: object, point: Point, *, streaming: bool = False) -> Outcome:
    """The outcome in a value: a guest's decoded map, a host hook's map or its `Outcome`, by the same rules.

    Raises:
        Malformed: It breaks a rule (P2, P4-P6, P8, P12, P13, C2-C4).
    """
    given = _as_map(value)
    _check_keys(given, point, streaming=streaming)
    if "error" in given:
        return Outcome(error=_thrown(given["error"]))  # nothing else of it counts
    kept: dict[str, object] = {key: given[key] for key in ("result", "storage") if key in given}
    if "deny" in given:
        kept["deny"] = _text(given["deny"], "/deny")
    if "input" in given:
        kept["input"] = _map(given["input"], "/input")
    if "replace" in given:
        kept["replace"] = _replacement(given["replace"], point)
    if "patch" in given:
        kept["patch"] = _patch(given["patch"])
    if "events" in given:
        kept["events"] = _events(given["events"])
    if "meta" in given:
        kept["meta"] = _map(given["meta"], "/meta")
    return Outcome(**kept)  # type: ignore[arg-type]  # each value was checked under its key


def _as_map(value: object) -> Mapping[str, object]:
    if type(value) is dict:
        return cast("dict[str, object]", value)
    if isinstance(value, Outcome):
        return _from_outcome(value)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Malformed("", f"it is {kind_of(value)}, not a map", 'return a map such as {"deny": "reason"}')
    return cast("Mapping[str, object]", value)


def _from_outcome(outcome: Outcome) -> dict[str, object]:
    given = {each.name: cast("object", getattr(outcome, each.name)) for each in fields(outcome)}
    given = {key: value for key, value in given.items() if value is not ABSENT}
    for key in ("patch", "events", "meta"):
        if not given[key]:
            del given[key]
        elif isinstance(given[key], tuple):
            given[key] = list(cast("tuple[object, ...]", given[key]))
    if isinstance(thrown := given.get("error"), ThrownError):
        given["error"] = {"name": thrown.name, "message": thrown.message, "stack": thrown.stack}
    return given


def _check_keys(given: Mapping[str, object], point: Point, *, streaming: bool) -> None:
    """Only keys that the point allows, and at most one that decides."""
    if not given.keys() <= point.keys or ("events" in given and not streaming):
        for key, value in given.items():
            if key not in point.keys:
                raise foreign_key(key, value, point)
        hint = "the context's `streaming` says whether events may be emitted"
        raise Malformed("/events", "only a streamed run takes events", hint)
    deciding = DECIDING_KEYS & given.keys()
    if len(deciding) > 1:
        raise Malformed("", f"it holds {' and '.join(sorted(deciding))} at once", "return one of them")


def _text(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise Malformed(path, f"it is {kind_of(value)}, not a string")
    return value


def _map(value: object, path: str) -> dict[str, object]:
    if is_map(value):
        return value
    raise Malformed(path, f"it is {kind_of(value)}, not a map")


def _list(value: object, path: str, most: int) -> list[object]:
    if isinstance(value, tuple):
        value = list(cast("tuple[object, ...]", value))
    if not is_list(value):
        raise Malformed(path, f"it is {kind_of(value)}, not a list")
    if len(value) > most:
        raise Malformed(path, f"it holds {len(value):_} items (limit {most:_})", "return fewer")
    return value


def _thrown(value: object) -> ThrownError:
    given = _map(value, "/error")
    _only(given, {"name", "message", "stack"}, "/error")
    stack = given.get("stack")
    return ThrownError(
        name=_text(_needed(given, "name", "/error"), "/error/name"),
        message=_text(_needed(given, "message", "/error"), "/error/message"),
        stack=None if stack is None else _text(stack, "/error/stack"),
    )


def _replacement(value: object, point: Point) -> object:
    """A value of the type that the point replaces; null only where the type admits it (C2)."""
    if point.name == "on_error":
        return value  # the turn's output: any value
    if point.name == "before_tool":
        return _call(value)
    if point.name == "after_tool" and is_map(value):
        return _tool_output(value)
    if isinstance(value, str):
        return value
    wanted = "a string or {output, isError}" if point.name == "after_tool" else "a string"
    hint = "return no value to keep it" if value is None else None
    raise Malformed("/replace", f"it is {kind_of(value)}, where {point.name} takes {wanted}", hint)


def _call(value: object) -> dict[str, object]:
    """A tool call (C3). That ``id`` and ``name`` stay is checked where the call is known."""
    given = _map(value, "/replace")
    _only(given, {"id", "name", "args"}, "/replace")
    _text(_needed(given, "id", "/replace"), "/replace/id")
    _text(_needed(given, "name", "/replace"), "/replace/name")
    _map(_needed(given, "args", "/replace"), "/replace/args")
    return given


def _tool_output(given: dict[str, object]) -> dict[str, object]:
    """A whole tool output (C4); without ``isError`` the mark stays."""
    _only(given, {"output", "isError"}, "/replace")
    _needed(given, "output", "/replace")
    if "isError" in given and not isinstance(given["isError"], bool):
        raise Malformed("/replace/isError", f"it is {kind_of(given['isError'])}, not true or false")
    return given


def _patch(value: object) -> tuple[dict[str, object], ...]:
    """The operations, each with its own members alone: RFC 6902, section 4, has others ignored."""
    operations: list[dict[str, object]] = []
    for index, each in enumerate(_list(value, "/patch", PATCH_OPERATIONS)):
        path = f"/patch/{index}"
        given = _map(each, path)
        op = _text(_needed(given, "op", path), f"{path}/op")
        if op not in ("add", "remove", "replace"):
            hint = "move and copy are a remove and an add; test has no meaning here"
            raise Malformed(f"{path}/op", f"'{escape(op, characters=40)}' is not add, remove or replace", hint)
        operation: dict[str, object] = {"op": op, "path": _text(_needed(given, "path", path), f"{path}/path")}
        if op != "remove":
            operation["value"] = _needed(given, "value", path)
        operations.append(operation)
    return tuple(operations)


def _events(value: object) -> tuple[dict[str, object], ...]:
    events: list[dict[str, object]] = []
    for index, each in enumerate(_list(value, "/events", EVENTS)):
        event = _map(each, f"/events/{index}")
        kind = _needed(event, "type", f"/events/{index}")
        if not isinstance(kind, str) or kind not in EVENT_TYPES:
            name = escape(kind, characters=40) if isinstance(kind, str) else kind_of(kind)
            hint = f"a hook emits {' and '.join(sorted(EVENT_TYPES))} alone"
            raise Malformed(f"/events/{index}/type", f"'{name}' is no event that a hook may emit", hint)
        events.append(event)
    return tuple(events)


def _needed(given: Mapping[str, object], key: str, path: str) -> object:
    if key not in given:
        raise Malformed(path, f"it lacks '{key}'")
    return given[key]


def _only(given: Mapping[str, object], keys: set[str], path: str) -> None:
    for key in given:
        if key not in keys:
            raise Malformed(path + pointer(key), f"no such key here (allowed: {', '.join(sorted(keys))})")
