"""OpenAI's chat history, made the messages and tool calls of SEMANTICS ("Shapes"). The one place that knows it.

A record is ``{messages, runId?, model?, …}``. Roles are system (or developer), user, assistant with ``tool_calls``, and
tool with ``tool_call_id``, right after the calls that it answers. A call's ``arguments`` are JSON as text; text that is
no JSON object stays the text that the model wrote, and so becomes a validation error (P3); none at all means no
arguments. Keys of a message that have no place in ours are counted, not kept.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NoReturn

from hookcell.shapes import is_list, is_map
from hookcell.tool_call import ToolCall
from hookcell_sandbox.guest_text import escape

__all__ = ["RecordInvalid", "RecordedCall", "RecordedRun", "Turn", "recorded_run"]

_ROLES: Final = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_READ: Final = {
    "system": frozenset({"role", "content", "name"}),
    "user": frozenset({"role", "content", "name"}),
    "assistant": frozenset({"role", "content", "name", "tool_calls"}),
    "tool": frozenset({"role", "content", "name", "tool_call_id"}),
}
# What of a request a record may hold; the rest of a request never crosses (SEMANTICS, "Shapes").
_REQUEST: Final = {"model": "model", "temperature": "temperature", "top_p": "topP", "max_tokens": "maxTokens"}

Message = dict[str, object]


class RecordInvalid(ValueError):
    """The record is not of this dialect; says where (a JSON Pointer), why and what to do, escaped."""

    def __init__(self, path: str, reason: str, hint: str) -> None:
        self.path = path
        super().__init__(f"{path or 'the record'}: {reason}; {hint}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """A tool call and the tool message that answers it; None where the record ends before an answer."""

    call: ToolCall
    answer: Message | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One answer of the model.

    Attributes:
        index: Its message's index in the record.
        before: Messages that came since the last one: the system's and the user's.
        message: The assistant message.
        calls: Its tool calls, in order.
    """

    index: int
    before: tuple[Message, ...]
    message: Message
    calls: tuple[RecordedCall, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """A recorded run.

    Attributes:
        run_id: The record's ``runId``, else the fallback.
        request: What the record says of the model requests, by the wire's names.
        turns: The model's answers, in order.
        messages: How many messages there are.
        unread: Keys that were not carried over, as ``role.key``, and how often.
    """

    run_id: str
    request: Mapping[str, object]
    turns: tuple[Turn, ...]
    messages: int
    unread: Mapping[str, int]


def recorded_run(record: dict[str, object], *, fallback_id: str) -> RecordedRun:
    """The run in a record.

    Raises:
        RecordInvalid: It is not of this dialect.
    """
    messages = record.get("messages")
    if not is_list(messages):
        hint = "give OpenAI's chat history as a list under 'messages'"
        raise RecordInvalid("", "it has no list 'messages'", hint)
    return _Reader(messages).run(_run_id(record, fallback_id), _request(record))


def _run_id(record: Mapping[str, object], fallback: str) -> str:
    named = record.get("runId")
    return str(named) if isinstance(named, str | int) and named != "" else fallback


def _request(record: Mapping[str, object]) -> dict[str, object]:
    return {
        ours: value
        for theirs, ours in _REQUEST.items()
        if isinstance(value := record.get(theirs), str | int | float) and not isinstance(value, bool)
    }


class _Reader:
    """Goes through the messages once."""

    def __init__(self, messages: list[object]) -> None:
        self._messages = messages
        self._unread: Counter[str] = Counter()

    def run(self, run_id: str, request: dict[str, object]) -> RecordedRun:
        turns: list[Turn] = []
        before: list[Message] = []
        index = 0
        while index < len(self._messages):
            message, source = self._message(index)
            if message["role"] == "tool":
                self._stray_result(index, source)
            if message["role"] == "assistant":
                calls, end = self._calls(index, message, source)
                turns.append(Turn(index=index, before=tuple(before), message=message, calls=calls))
                before = []
                index = end
            else:
                before.append(message)
                index += 1
        return RecordedRun(
            run_id=run_id,
            request=request,
            turns=tuple(turns),
            messages=len(self._messages),
            unread=dict(self._unread),
        )

    def _message(self, index: int) -> tuple[Message, Mapping[str, object]]:
        source, path = self._messages[index], f"/messages/{index}"
        if not is_map(source):
            raise RecordInvalid(path, "a message is an object", "give OpenAI's chat history")
        theirs = source.get("role")
        role = _ROLES.get(theirs) if isinstance(theirs, str) else None
        if role is None:
            hint = "it is one of system, developer, user, assistant, tool"
            if theirs == "function" or "function_call" in source:
                hint = "that is the old form of tool calls; write tool_calls and role tool"
            raise RecordInvalid(f"{path}/role", f"no role {_shown(theirs)} is known", hint)
        self._unread.update(
            f"{role}.{escape(key, characters=40)}"
            for key, value in source.items()
            if key not in _READ[role] and value is not None
        )
        message: Message = {"role": role, "content": _content(source, role, f"{path}/content")}
        if isinstance(name := source.get("name"), str):
            message["name"] = name
        return message, source

    def _calls(
        self, index: int, message: Message, source: Mapping[str, object]
    ) -> tuple[tuple[RecordedCall, ...], int]:
        """The assistant message's calls with their answers, and the index of the first message after those."""
        path = f"/messages/{index}/tool_calls"
        listed = source.get("tool_calls")
        if listed is None or listed == []:
            if message["content"] is None:
                message["content"] = ""  # only a message with calls goes without content
            return (), index + 1
        if not is_list(listed):
            raise RecordInvalid(path, "tool calls are a list", "give OpenAI's chat history")
        calls: dict[str, ToolCall] = {}
        for place, each in enumerate(listed):
            call = _call(each, f"{path}/{place}")
            if call.id in calls:
                raise RecordInvalid(f"{path}/{place}/id", f"a second call {_shown(call.id)}", "give each its own id")
            calls[call.id] = call
        message["toolCalls"] = [call.wire() for call in calls.values()]
        answers, end = self._answers(index + 1, calls)
        return tuple(RecordedCall(call=call, answer=answers.get(call.id)) for call in calls.values()), end

    def _answers(self, index: int, calls: Mapping[str, ToolCall]) -> tuple[dict[str, Message], int]:
        answers: dict[str, Message] = {}
        while index < len(self._messages):
            message, source = self._message(index)
            if message["role"] != "tool":
                break
            call = source.get("tool_call_id")
            if not isinstance(call, str) or call not in calls:
                self._stray_result(index, source)
            if call in answers:
                raise RecordInvalid(f"/messages/{index}", f"a second result of call {_shown(call)}", "keep one")
            message["toolCallId"] = call
            answers[call] = message
            index += 1
        return answers, index

    def _stray_result(self, index: int, source: Mapping[str, object]) -> NoReturn:
        raise RecordInvalid(
            f"/messages/{index}",
            f"a tool message without a call: tool_call_id is {_shown(source.get('tool_call_id'))}",
            "put it right after the assistant message whose tool_calls have that id",
        )


def _content(source: Mapping[str, object], role: str, path: str) -> object:
    content = source.get("content")
    if content is None and role in ("assistant", "tool"):
        return None
    if isinstance(content, str):
        return content
    if is_list(content) and all(is_map(part) and isinstance(part.get("type"), str) for part in content):
        return content
    raise RecordInvalid(path, "content is a string or a list of typed parts", f"this is {_shown(content)}")


def _call(source: object, path: str) -> ToolCall:
    hint = "a call is {id, type: 'function', function: {name, arguments}}"
    if not is_map(source):
        raise RecordInvalid(path, "a tool call is an object", hint)
    kind = source.get("type", "function")
    if kind != "function":
        raise RecordInvalid(f"{path}/type", f"calls of type {_shown(kind)} are not known", hint)
    function = source.get("function")
    if not is_map(function) or not isinstance(name := function.get("name"), str):
        raise RecordInvalid(f"{path}/function", "the call has no function with a name", hint)
    if not isinstance(call_id := source.get("id"), str):
        raise RecordInvalid(f"{path}/id", "the call's id is no string", hint)
    return ToolCall(id=call_id, name=name, args=_arguments(function.get("arguments")))


def _arguments(source: object) -> object:
    if source is None or source == "":
        return {}
    if not isinstance(source, str):
        return source
    try:
        parsed: object = json.loads(source, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return source
    return parsed if is_map(parsed) else source


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _shown(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        text = type(value).__name__
    return escape(text, characters=60)
