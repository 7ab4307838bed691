"""The rules on the conversation: what a hook may add at a tool point, and edit at a generate point (SEMANTICS P2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, cast

from hookcell_sandbox.guest_text import escape

from .crossing import pointer
from .malformed import Malformed
from .outcomes import ABSENT
from .shapes import is_list, is_map
from .values import same

__all__ = ["ROLES", "check_appended", "check_edited", "check_message"]

ROLES: Final = ("system", "user", "assistant", "tool")
"""Who may say a message."""

_KEYS: Final = frozenset({"role", "content", "toolCalls", "toolCallId", "name", "metadata"})
_MARKS: Final = ("replacedByHook", "modelArgs")
"""What the engine writes into a message's metadata: whose result a tool message holds (P5), and under the id of each
call that hooks rewrote the arguments that the model gave (P6)."""


def check_message(message: object, path: str = "", *, known: frozenset[str] = frozenset()) -> None:
    """Check that a value is a message: ``{role, content, toolCalls?, toolCallId?, name?, metadata?}``.

    Args:
        message: Any value.
        path: JSON Pointer of it, for the error.
        known: Further keys that may stand in it, because the host's own messages have them.

    Raises:
        Malformed: It is none; the first fault only.
    """
    if not is_map(message):
        raise Malformed(path, "a message is a map", 'e.g. {"role": "user", "content": "text"}')
    for key in message:
        if key not in _KEYS and key not in known:
            raise Malformed(path + pointer(key), "a message has no such key", f"it has {', '.join(sorted(_KEYS))}")
    role = message.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise Malformed(f"{path}/role", f"a role is one of {', '.join(sorted(ROLES))}")
    _check_content(message, role, path)
    if "toolCalls" in message:
        _check_calls(message["toolCalls"], role, f"{path}/toolCalls")
    if role == "tool" and not isinstance(message.get("toolCallId"), str):
        raise Malformed(f"{path}/toolCallId", "a tool message names the call it answers")
    if role != "tool" and "toolCallId" in message:
        raise Malformed(f"{path}/toolCallId", f"only a tool message answers a call, not one of role {role}")
    if "name" in message and not isinstance(message["name"], str):
        raise Malformed(f"{path}/name", "a name is a string")
    if "metadata" in message and not is_map(message["metadata"]):
        raise Malformed(f"{path}/metadata", "metadata is a map")


def check_appended(
    before: Sequence[object],
    after: Sequence[object],
    path: str = "/messages",
    *,
    system_messages: bool = False,
    marks: bool = False,
) -> list[dict[str, object]]:
    """What a tool point's hook added to the conversation: it may add at the end, and nothing else.

    It cannot add a tool message or one with tool calls: the calls and results of this batch are the engine's to write.

    Args:
        before: The messages the hook was given.
        after: The messages it left.
        path: JSON Pointer of the list, for the error.
        system_messages: Whether the host lets this hook write system messages.
        marks: Whether this hook may write the engine's own marks in a message's metadata.

    Raises:
        Malformed: A message that was there is gone or changed, or an added one is no message or not allowed.
    """
    for index, old in enumerate(before):
        if index >= len(after) or not (same(old, after[index])):
            hint = "edit the conversation in pre_generate or post_generate"
            raise Malformed(path + pointer(index), "at a tool point messages can only be added at the end", hint)
    known = _keys_in_use(before)
    for index in range(len(before), len(after)):
        at = path + pointer(index)
        message = after[index]
        check_message(message, at, known=known)
        role = cast("dict[str, object]", message)["role"]
        if role == "tool" or cast("dict[str, object]", message).get("toolCalls"):
            raise Malformed(at, "a hook cannot add a tool call or the result of one", "add a user or assistant message")
        if role == "system" and not system_messages:
            raise Malformed(f"{at}/role", "the host has not granted system messages", "add a user message")
        for mark in () if marks else _MARKS:
            if mark in _metadata(cast("dict[str, object]", message)):
                raise Malformed(f"{at}/metadata/{mark}", "a hook cannot add a mark of the engine's", "leave it out")
    return cast("list[dict[str, object]]", list(after[len(before) :]))


def check_edited(
    before: Sequence[object],
    after: Sequence[object],
    path: str = "/messages",
    *,
    system_messages: bool = False,
    marks: bool = False,
    calls_stay: bool = False,
) -> None:
    """Check a conversation that a generate point's hook edited.

    Args:
        before: The messages the hook was given.
        after: The messages it left.
        path: JSON Pointer of the list, for the error.
        system_messages: Whether the host lets this hook write system messages.
        marks: Whether this hook may write the engine's own marks in a message's metadata.
        calls_stay: Whether the latest calls are running, so that they cannot be taken out any more.

    Raises:
        Malformed: A changed message is none; the edit broke the pairing of calls and results where it was whole, or
            gave a call that is about to run its result; or, without a grant, a system message changed, or a mark of the
            engine's is not what it was.
    """
    untouched = {id(message) for message in before}
    known: frozenset[str] | None = None
    for index, message in enumerate(after):
        if id(message) not in untouched and not (index < len(before) and same(before[index], message)):
            known = _keys_in_use(before) if known is None else known
            check_message(message, path + pointer(index), known=known)
    if not system_messages:
        _check_system(before, after, path)
    if not marks:
        _check_marks(before, after, path)
    _check_pairing(before, after, path, calls_stay=calls_stay)


def _check_pairing(before: Sequence[object], after: Sequence[object], path: str, *, calls_stay: bool) -> None:
    """Calls and results pair as well as before, and only the engine answers the latest calls (P3, P10).

    Those are still to pass every gate. A hook may take one of them out, so that it does not run, but not answer it, nor
    put another in its place; and where they are running already (``calls_stay``) they stay.
    """
    (_, open_before), (last, open_after) = _latest_calls(before), _latest_calls(after)
    # Where a provider gives each answer's calls the same ids, older ones have results: as many as before, and no more.
    answers = Counter(map(_answered, before))
    for index, message in enumerate(after if open_before else ()):
        answers[_answered(message)] -= 1
        if _answered(message) in open_before and answers[_answered(message)] < 0:
            reason = "a hook cannot give a call that is about to run its result"
            raise Malformed(path + pointer(index), reason, "return a result in pre_tool_call")
    if calls_stay and (gone := open_before - open_after):
        reason = f"the call '{escape(min(gone), characters=60)}' is running"
        raise Malformed(path, reason, "leave the message that makes it where it is")
    faults = Counter(fault for fault, _ in _older_faults(before))
    # The latest calls have no results yet; which of them a hook may not have made itself.
    added = [(("a call without a result", call), last) for call in sorted(open_after - open_before)]
    for fault, index in (*_older_faults(after), *added):
        faults[fault] -= 1
        if faults[fault] < 0:
            what, call = fault
            reason = f"{what} '{escape(call, characters=60)}'"
            raise Malformed(path + pointer(index), reason, "keep a call and its result together")


def _older_faults(messages: Sequence[object]) -> list[tuple[tuple[str, str], int]]:
    """The faults of pairing, the latest calls' own lack of results aside."""
    last, open_calls = _latest_calls(messages)
    return [
        (fault, index)
        for fault, index in _pairing_faults(messages)
        if not (fault[0] == "a call without a result" and index == last and fault[1] in open_calls)
    ]


def _latest_calls(messages: Sequence[object]) -> tuple[int, set[str]]:
    """Where the latest message with calls stands, -1 without one, and the ids of those without a result behind it."""
    answered: set[str | None] = set()
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        answered.add(_answered(message))
        calls = message.get("toolCalls") if is_map(message) else None
        if is_list(calls) and calls:
            return index, {str(call.get("id")) for call in calls if is_map(call)} - answered
    return -1, set()


def _answered(message: object) -> str | None:
    """The id of the call that a tool message answers; None for any other message."""
    return str(message.get("toolCallId")) if is_map(message) and message.get("role") == "tool" else None


def _check_content(message: dict[str, object], role: str, path: str) -> None:
    if "content" not in message and not message.get("toolCalls"):
        raise Malformed(path, "a message lacks content")
    content = message.get("content")
    if content is None and not (role == "assistant" and message.get("toolCalls")):
        raise Malformed(f"{path}/content", "only an assistant message with tool calls goes without content")
    if is_list(content):
        for index, part in enumerate(content):
            if not is_map(part) or not isinstance(part.get("type"), str):
                raise Malformed(f"{path}/content/{index}", "a part of the content is a map with a type")
    elif not (content is None or isinstance(content, str)):
        raise Malformed(f"{path}/content", "content is a string, or a list of parts")


def _check_calls(calls: object, role: str, path: str) -> None:
    if role != "assistant":
        raise Malformed(path, f"only an assistant message calls tools, not one of role {role}")
    if not is_list(calls):
        raise Malformed(path, "tool calls are a list")
    ids: set[str] = set()
    for index, call in enumerate(calls):
        at = f"{path}/{index}"
        if not is_map(call) or call.keys() != {"id", "name", "args"}:
            raise Malformed(at, "a tool call is a map of id, name and args")
        if not isinstance(call["id"], str) or not isinstance(call["name"], str) or not is_map(call["args"]):
            raise Malformed(at, "a tool call's id and name are strings and its args a map")
        if call["id"] in ids:
            raise Malformed(f"{at}/id", f"two calls of one message have the id '{escape(call['id'], characters=60)}'")
        ids.add(call["id"])


def _keys_in_use(messages: Iterable[object]) -> frozenset[str]:
    """Keys of the host's own messages: one it put there may stay in a message that a hook edits."""
    return frozenset[str]().union(*(message.keys() for message in messages if is_map(message)))


def _check_system(before: Sequence[object], after: Sequence[object], path: str) -> None:
    """The same system messages, in their order, and those at the head still there."""
    old, new = _system(before), _system(after)
    for place, (index, message) in enumerate(new):
        if place >= len(old) or not same(old[place][1], message) or (old[place][0] == place) != (index == place):
            raise Malformed(path + pointer(index), "the host has not granted system messages", "leave them as they are")
    if len(new) < len(old):
        raise Malformed(path, "the host has not granted system messages: one is gone", "leave them as they are")


def _system(messages: Sequence[object]) -> list[tuple[int, dict[str, object]]]:
    return [(index, each) for index, each in enumerate(messages) if is_map(each) and each.get("role") == "system"]


def _check_marks(before: Sequence[object], after: Sequence[object], path: str) -> None:
    """Each call and each result has the mark it had, or none if it had none or is new; both may go together.

    Where an id is used again, as some models do, its marks stay in their order.
    """
    had: dict[tuple[str, str | None], list[object]] = {}
    for key, _, mark in _marks(before):
        had.setdefault(key, []).append(mark)
    left = {key: iter(marks) for key, marks in had.items() if any(mark is not ABSENT for mark in marks)}
    for key, index, mark in _marks(after):
        # A search in an iterator goes on behind what it found.
        if not (any(same(mark, old) for old in left[key]) if key in left else mark is ABSENT):
            kind, call = key
            of_call = "" if call is None else f" of call '{escape(call, characters=60)}'"
            at = path + pointer(index, "metadata", kind)
            raise Malformed(at, f"the mark{of_call} is not what it was", "it is the engine's; leave it as it is")


def _marks(messages: Sequence[object]) -> Iterator[tuple[tuple[str, str | None], int, object]]:
    """For each call and each result which mark of which call it has, perhaps `ABSENT`, and the message's index.

    Marks that stand elsewhere come too: a guest puts none there either.
    """
    for index, message in enumerate(messages):
        if not is_map(message):
            continue
        metadata = _metadata(message)
        if message.get("role") == "tool" or "replacedByHook" in metadata:
            yield ("replacedByHook", _text(message.get("toolCallId"))), index, metadata.get("replacedByHook", ABSENT)
        own = metadata.get("modelArgs", {})
        if not is_map(own):
            yield ("modelArgs", None), index, own
            own = {}
        calls = message.get("toolCalls")
        ids = [_text(call.get("id")) for call in calls if is_map(call)] if is_list(calls) else []
        for call in dict.fromkeys((*ids, *own)):
            yield ("modelArgs", call), index, own.get(cast("str", call), ABSENT)


def _metadata(message: dict[str, object]) -> dict[str, object]:
    metadata = message.get("metadata")
    return metadata if is_map(metadata) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


# Stands behind the last message, so that calls still open there are found where they end.
_END: Final[dict[str, object]] = {}


def _pairing_faults(messages: Sequence[object]) -> list[tuple[tuple[str, str], int]]:
    """Where calls and results do not pair: what is wrong, the call's id, and the message's index.

    The results of an assistant message's calls follow it at once, one each, with no other message between.
    """
    faults: list[tuple[tuple[str, str], int]] = []
    open_calls: set[str] = set()
    made_at = 0
    for index, message in enumerate((*messages, _END)):
        if not is_map(message):
            continue
        if message.get("role") == "tool":
            call = str(message.get("toolCallId"))
            if call in open_calls:
                open_calls.remove(call)
            else:
                faults.append((("a result without an open call", call), index))
            continue
        faults += [(("a call without a result", call), made_at) for call in sorted(open_calls)]
        calls = message.get("toolCalls")
        open_calls = {str(call.get("id")) for call in calls if is_map(call)} if is_list(calls) else set()
        made_at = index
    return faults
