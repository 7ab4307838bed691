"""What to tell the author of an outcome with a key that has no place in it.

A deny at the wrong nesting, or in another hook system's words, must fail and not be taken for an allow (P8). It is
never taken for what it seems to mean either: the hint says what to write.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from hookcell_sandbox.guest_text import escape

from .crossing import pointer
from .malformed import Malformed
from .points import DECIDING_KEYS, POINTS, Point
from .shapes import is_map

__all__ = ["foreign_key", "kind_of"]

OUTCOME_KEYS: Final = frozenset[str]().union(*(point.keys for point in POINTS.values()))


def foreign_key(key: object, value: object, point: Point) -> Malformed:
    """The fault of a key that the point does not allow, with what its author most likely meant."""
    if not isinstance(key, str):
        return Malformed("", f"a key of it is {kind_of(key)}, not a string")
    name = escape(key, characters=60)
    allowed = ", ".join(sorted(point.keys))
    if key in OUTCOME_KEYS:
        return Malformed(pointer(key), f"'{name}' may not stand in an outcome of {point.name}", f"allowed: {allowed}")
    hint = _hint(key, value, point) or f"allowed: {allowed}"
    return Malformed(pointer(key), f"an outcome has no key '{name}'", hint)


def _hint(key: str, value: object, point: Point) -> str | None:
    """What the author most likely meant by an unknown key: said, never done (P8)."""
    inner = _allowed_key_within(value, point)
    if inner:
        return f"put '{inner}' at the top of the outcome"
    folded = key[:40].casefold().replace("_", "").replace("-", "")
    for words, meant in _OTHER_WORDS:
        if folded in words and meant in point.keys:
            return _SAID_HERE[meant]
    close = get_close_matches(folded, sorted(point.keys), n=1, cutoff=0.75)
    return f"did you mean '{close[0]}'?" if close else None


def _allowed_key_within(value: object, point: Point) -> str | None:
    """An outcome key inside the map that stands under an unknown key, at most three maps down."""
    level = [value]
    for _ in range(3):
        maps = [each for each in level if is_map(each)][:20]
        for each in maps:
            for key in sorted(DECIDING_KEYS - {"error"} | {"patch"}):
                if key in each and key in point.keys:
                    return key
        level = [child for each in maps for child in list(each.values())[:20]]
    return None


# Words of other hook systems for what an outcome says here.
_OTHER_WORDS: Final = (
    (frozenset({"decision", "permissiondecision", "permission", "behavior", "action", "verdict"}), "deny"),
    (frozenset({"block", "blocked", "denied", "reject", "refuse", "allow", "approve", "continue", "reason"}), "deny"),
    (frozenset({"args", "arguments", "updatedinput", "toolinput", "modifiedinput", "params"}), "input"),
    (frozenset({"output", "updatedoutput", "toolresult", "tooloutput", "value"}), "result"),
    (frozenset({"output", "value", "prompt", "call", "response", "systemprompt"}), "replace"),
    (frozenset({"messages", "metadata", "request", "state"}), "patch"),
    (frozenset({"emit", "event"}), "events"),
)
_SAID_HERE: Final = {
    "deny": 'return {"deny": reason} to stop the call and nothing to let it go on',
    "input": 'return {"input": args} to change the arguments',
    "result": 'return {"result": value} to give the result',
    "replace": 'return {"replace": value} to replace the value',
    "patch": "change it by a patch",
    "events": "return them as 'events'",
}


_KINDS: Final[Mapping[type, str]] = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    bytes: "bytes",
    list: "a list",
}


def kind_of(value: object) -> str:
    """What kind of value it is, in the words of JSON where it has one."""
    if value is None:
        return "null"
    return "a map" if is_map(value) else _KINDS.get(type(value)) or f"a Python {escape(type(value).__qualname__)}"
