"""A call that an author writes down: a context, what else the hook is given, and perhaps what should come of it.

A file is a case, ``{"point", "context", "config", "storage", "expect", "fuel"}``, or the context alone with ``point``,
``config`` and ``storage`` among its fields. What every agent gives is filled in where it is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, cast

from hookcell.crossing import Uncrossable, encode_value
from hookcell.outcomes import ABSENT
from hookcell.points import ON_REQUEST_FIELDS, POINTS, Point
from hookcell.schemas import Schema, SchemaMismatch, compile_schema
from hookcell.shapes import is_map
from hookcell.trace import Moment
from hookcell.wire_schemas import context_schema
from hookcell_sandbox.guest_text import escape

from .errors import Misused

if TYPE_CHECKING:
    from hookcell.hook import GuestHook

__all__ = ["Case", "config_in", "read_case"]

_CASE_KEYS: Final = frozenset({"point", "context", "config", "storage", "expect", "fuel", "description"})
_OPTIONAL: Final = frozenset({"toolCallId", "toolCall", "toolSchema", "resumed", "origin", "streaming"})
_NOW: Final = 1_767_225_600_000
"""2026-01-01T00:00:00Z: the time of a case that names none, the same on every day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One call of one hook.

    Attributes:
        point: The hook point.
        context: Its fields, complete.
        storage: The hook's value; `ABSENT` where there is none.
        moment: What ``now`` and ``seed`` are.
        expect: What the file says should come of it; `ABSENT` where it says nothing.
        fuel: The most that the call may use; None where the file sets none.
    """

    point: str
    context: dict[str, object]
    storage: object
    moment: Moment
    expect: object
    fuel: int | None


def read_case(document: object, hook: GuestHook, *, shown: str, point: str | None = None) -> Case:
    """The case in a file's document.

    Args:
        document: The file's JSON.
        hook: Whose call it is; a hook of one point needs no ``point``.
        shown: The file's name, escaped.
        point: The point that the command line names; goes before the file's own.

    Raises:
        Misused: The document is no case of this hook; the text says where and why.
    """
    if not is_map(document):
        raise _wrong(shown, "it is no JSON object", 'e.g. {"point": "pre_tool_call", "toolName": "find", "args": {}}')
    if "context" in document:
        for key in document.keys() - _CASE_KEYS:
            raise _wrong(shown, f"a case has no '{escape(key)}'", f"it may have {', '.join(sorted(_CASE_KEYS))}")
        given = document["context"]
        if not is_map(given):
            raise _wrong(f"{shown} at /context", "it is no JSON object", "give the context's fields")
        where, rest = "/context", document
    else:
        given = {key: value for key, value in document.items() if key not in ("point", "config", "storage")}
        where, rest = "", {key: value for key, value in document.items() if key not in given}
    row = POINTS[_point(point or rest.get("point", given.get("point")), hook, shown)]
    moment = _moment(given, f"{shown} at {where}")
    fields = {key: value for key, value in given.items() if key not in ("point", *ON_REQUEST_FIELDS)}
    fuel = rest.get("fuel")
    if fuel is not None and (type(fuel) is not int or fuel < 0):
        raise _wrong(f"{shown} at /fuel", "it is no whole number from 0", "give the most fuel that the call may use")
    storage = rest.get("storage", ABSENT)
    if storage is not ABSENT and hook.manifest.storage is None:
        hint = 'ask for it in the manifest ("storage": "run"), or leave it out'
        raise _wrong(f"{shown} at /storage", f"the hook '{hook.name}' has no storage", hint)
    case = Case(
        point=row.name,
        context=_filled(row, fields),
        storage=storage,
        moment=moment,
        expect=rest.get("expect", ABSENT),
        fuel=fuel,
    )
    _check(case, row, shown=shown, where=where)
    return case


def config_in(document: object) -> object:
    """The config that a file's document gives the hook; None where it gives none."""
    return document.get("config") if is_map(document) else None


def _point(named: object, hook: GuestHook, shown: str) -> str:
    points = sorted(hook.points, key=list(POINTS).index)
    has = f"the hook '{hook.name}' has {', '.join(points)}"
    if named is None:
        if len(points) == 1:
            return points[0]
        raise _wrong(shown, f"it names no point, and {has}", 'add "point" to the file')
    if not isinstance(named, str) or named not in POINTS:
        name = escape(named, characters=60) if isinstance(named, str) else "that"
        raise _wrong(shown, f"'{name}' is no hook point", f"{has}; name one of them as the point")
    if named not in hook.points:
        raise _wrong(shown, f"the hook does not implement {named}", f"{has}; name one of them as the point")
    return named


def _moment(given: Mapping[str, object], where: str) -> Moment:
    values: dict[str, int] = {"now": _NOW, "seed": 0}
    for name in ON_REQUEST_FIELDS:
        value = given.get(name, values[name])
        if type(value) is not int or not 0 <= value <= 2**53:
            raise _wrong(f"{where}/{name}", "it is no whole number from 0 to 2^53", "leave it out for a fixed one")
        values[name] = value
    return Moment(**values)


def _filled(row: Point, fields: Mapping[str, object]) -> dict[str, object]:
    """The fields with what every agent gives."""
    filled: dict[str, object] = {"agentId": "", "agentName": "", "sessionId": "", "messages": [], "metadata": {}}
    filled |= fields
    if row.family == "agent_class":
        state = dict[str, object]() if fields.get("state") is None else fields["state"]
        # The conversation is one list under two names (C7).
        filled["state"] = {"history": filled["messages"], **state} if is_map(state) else state
        filled.setdefault("data", None)
    elif row.tool_point:
        filled.setdefault("toolCallId", "call_1")
        if "toolName" in fields and "args" in fields:
            own = {"id": filled["toolCallId"], "name": fields["toolName"], "args": fields["args"]}
            filled.setdefault("toolCall", own)
        if row.name == "post_tool_call":
            filled.setdefault("origin", "tool")
    else:
        filled.setdefault("streaming", False)
    return filled


def _check(case: Case, row: Point, *, shown: str, where: str) -> None:
    """Refuse a context that no agent could give."""
    for name in case.context.keys() - set(row.fields):
        hint = f"fields: {', '.join((*row.fields, *ON_REQUEST_FIELDS))}"
        raise _wrong(f"{shown} at {where}/{escape(name)}", f"{row.name} has no such field", hint)
    for name in row.own_fields:
        if name not in case.context and name not in _OPTIONAL:
            raise _wrong(f"{shown} at {where or '/'}", f"it lacks '{name}', which {row.name} always has", "add it")
    try:
        encode_value(case.context, enclosing=1)
        encode_value(None if case.storage is ABSENT else case.storage, "/storage")
        _schema(row.name).validate({**case.context, "point": row.name})
        if (schema := case.context.get("toolSchema")) is not None:
            compile_schema(schema, hostile=False)
    except Uncrossable as error:
        at = error.path if error.path.startswith("/storage") else where + error.path
        raise _wrong(
            f"{shown} at {at}", f"a {error.type} cannot cross to a guest", error.hint or "change it"
        ) from error
    except SchemaMismatch as error:
        hint = f"see guest_sdk/schema/{row.name}.context.json"
        raise _wrong(f"{shown} at {where}{error.path}", error.reason, hint) from error
    except ValueError as error:
        raise _wrong(f"{shown} at {where}/toolSchema", escape(str(error)), "give a JSON Schema") from error


@cache
def _schema(point: str) -> Schema:
    return compile_schema(cast("dict[str, object]", context_schema(POINTS[point])), hostile=False)


def _wrong(place: str, reason: str, hint: str) -> Misused:
    return Misused(reason, code="case_invalid", place=place, hint=hint)
