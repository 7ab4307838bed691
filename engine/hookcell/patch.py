"""JSON Patch (RFC 6902) on a context, confined to what a point lets a hook write (SEMANTICS P2).

Only ``add``, ``remove`` and ``replace``. Nothing is edited in place: the containers along a path are copied once and
the rest is shared, so that a patch of one message in a megabyte of them costs that message's spine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from hookcell_sandbox.guest_text import escape

from .crossing import CONTEXT_DEPTH, OUTCOME_DEPTH
from .history import History
from .malformed import Malformed
from .shapes import is_list, is_map

__all__ = ["apply_patch", "written_paths"]

# RFC 6901: no leading zero, ASCII digits. Ten digits index anything that can exist, and bound what int() is given.
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_BAD_ESCAPE: Final = re.compile(r"~(?![01])")


def apply_patch(
    context: Mapping[str, object],
    patch: Sequence[Mapping[str, object]],
    *,
    roots: frozenset[str],
    received: frozenset[str],
) -> dict[str, object]:
    """The top-level fields that the patch changes, with their new values.

    Whole or not at all: the context is never touched, and what is not along a path is shared with it. A `History` stays
    one and keeps the bytes of every message the patch leaves alone.

    Args:
        context: What the point hands over; fields are maps or lists of JSON values.
        patch: Operations of the shape that `outcomes` checked: ``op`` one of add, remove, replace; ``path``; ``value``.
        roots: Fields the point lets a patch write to.
        received: Fields the hook was given (G4); ``state.history`` is one with ``messages``.

    Raises:
        Malformed: A path leaves ``roots`` or ``received``, is no JSON Pointer, or names nothing; an index is out of
            range; a field would go or change its type; what it writes would nest over `OUTCOME_DEPTH`, the context
            included: no deeper than an outcome, so that the host may move it as deep as it moves one's parts.
    """
    changed: dict[str, object] = {}
    ours: dict[int, object] = {}  # copies made here, by id: these may be edited in place
    for number, operation in enumerate(patch):
        fault = _Fault(number, str(operation["path"]))
        tokens = _tokens(fault)
        _confine(tokens, context, roots, received, fault)
        value = operation.get("value")
        depth = _depth(value)
        if depth and len(tokens) + depth > OUTCOME_DEPTH:
            raise fault.with_reason(f"the context would nest more than {OUTCOME_DEPTH} deep", "flatten the value")
        root = changed.get(tokens[0], context[tokens[0]])
        if len(tokens) == 1:
            changed[tokens[0]] = _whole_field(root, str(operation["op"]), value, fault)
            continue
        target = changed[tokens[0]] = _own(root, ours)
        for token in tokens[1:-1]:
            target = _step_down(target, token, ours, fault)
        _write(target, str(operation["op"]), tokens[-1], value, fault)
    return changed


def written_paths(patch: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    """The paths a patch wrote to, in its order and each once, escaped: the trace's provenance."""
    return tuple(dict.fromkeys(escape(str(operation["path"])) for operation in patch))


class _Fault:
    """Where in the outcome an operation stands, for its error."""

    __slots__ = ("number", "path")

    def __init__(self, number: int, path: str) -> None:
        self.number = number
        self.path = path

    def with_reason(self, reason: str, hint: str | None = None) -> Malformed:
        return Malformed(f"/patch/{self.number}", f"path '{escape(self.path)}': {reason}", hint)


def _tokens(fault: _Fault) -> list[str]:
    """The pointer's tokens, at least one, unescaped."""
    path = fault.path
    if not path.startswith("/"):
        raise fault.with_reason("a path starts with '/' and a field of the context", "e.g. /args/command")
    if _BAD_ESCAPE.search(path):
        raise fault.with_reason("'~' stands only in '~0' and '~1'", "write '~' as '~0' and '/' as '~1'")
    if path.count("/") > CONTEXT_DEPTH:
        raise fault.with_reason(f"it goes more than {CONTEXT_DEPTH} levels down")
    return [token.replace("~1", "/").replace("~0", "~") for token in path[1:].split("/")]


def _confine(
    tokens: Sequence[str], context: Mapping[str, object], roots: frozenset[str], received: frozenset[str], fault: _Fault
) -> None:
    root = tokens[0]
    if root not in roots:
        allowed = ", ".join(f"/{name}" for name in sorted(roots)) or "nothing"
        raise fault.with_reason("a hook may not write there at this point", f"it may write to {allowed}")
    if root not in received:
        raise fault.with_reason("the hook did not receive that field", f"add '{root}' to the manifest's needs")
    if tokens[:2] == ["state", "history"] and "messages" not in received:
        raise fault.with_reason("the hook did not receive that field", "add 'messages' to the manifest's needs")
    if root not in context:
        raise fault.with_reason("the context has no such field here")


def _whole_field(old: object, op: str, value: object, fault: _Fault) -> object:
    """A field's new value, of the old one's type."""
    if op == "remove":
        raise fault.with_reason("a field of the context cannot be removed", "replace it by an empty value")
    if isinstance(old, Mapping) and not is_map(value):
        raise fault.with_reason("the field is a map and must stay one")
    if isinstance(old, list) and not is_list(value):
        raise fault.with_reason("the field is a list and must stay one")
    return History(cast("list[dict[str, object]]", value)) if isinstance(old, History) else value


def _own(container: Any, ours: dict[int, object]) -> Any:
    """The container itself if this patch copied it already, else a copy of its first level."""
    if id(container) in ours:
        return container
    copied: object
    if isinstance(container, History):
        copied = container.copy()
    elif isinstance(container, Mapping):
        copied = dict(cast("Mapping[str, object]", container))
    elif isinstance(container, list | tuple):
        copied = list(cast("Sequence[object]", container))
    else:
        return container
    ours[id(copied)] = copied
    return copied


def _step_down(target: Any, token: str, ours: dict[int, object], fault: _Fault) -> Any:
    """The child at ``token``, made this patch's own and put back in its place."""
    key = _existing(target, token, fault)
    child = _own(target[key], ours)
    if child is not target[key]:
        target[key] = child
    return child


def _write(target: Any, op: str, token: str, value: object, fault: _Fault) -> None:
    if op == "add" and is_list(target):
        target.insert(len(target) if token == "-" else _index(token, len(target), fault), value)  # noqa: S105 no secret
    elif op == "add" and is_map(target):
        target[token] = value
    elif op == "remove":
        del target[_existing(target, token, fault)]
    else:
        target[_existing(target, token, fault)] = value


def _existing(target: object, token: str, fault: _Fault) -> Any:
    """The key or index of what must be there."""
    if is_map(target):
        if token not in target:
            raise fault.with_reason(f"nothing is at '{escape(token)}'", "add makes a new key; its parent must exist")
        return token
    if is_list(target):
        return _index(token, len(target) - 1, fault)
    raise fault.with_reason(f"'{escape(token)}' is looked for in a value that is neither map nor list")


def _index(token: str, most: int, fault: _Fault) -> int:
    if not _INDEX.fullmatch(token):
        hint = "digits without a leading zero; '-' adds at the end"
        raise fault.with_reason(f"'{escape(token)}' is no index of a list", hint)
    if int(token) > most:
        raise fault.with_reason(f"index {token} is past the end", f"the last one here is {most}" if most >= 0 else None)
    return int(token)


def _depth(value: object) -> int:
    """Containers inside one another, the value's own included; counting stops above `OUTCOME_DEPTH`."""
    level: list[object] = [value] if is_map(value) or is_list(value) else []
    depth = 0
    while level and depth <= OUTCOME_DEPTH:
        depth += 1
        level = [child for parent in level for child in _children(parent) if is_map(child) or is_list(child)]
    return depth


def _children(container: object) -> Iterable[object]:
    return container.values() if is_map(container) else cast("list[object]", container)
