"""What the engine itself writes into a conversation around a batch of tool calls (SEMANTICS P2, P6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .shapes import is_list, is_map, is_object
from .values import copied, same

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .history import Message
    from .tool_result import Gate, SettledCall, ToolCall

__all__ = ["add_results", "assistant_message", "close_open_calls", "show_final_args"]


def assistant_message(text: str, calls: Iterable[ToolCall]) -> dict[str, object]:
    """The model's message, sharing nothing with the calls: they never change, and a message may be edited.

    Arguments that are no map cannot stand in a message; they stay in its metadata (P6).
    """
    message: dict[str, object] = {"role": "assistant", "content": text}
    shown: list[dict[str, object]] = [
        {**call.wire(), "args": copied(call.args) if is_object(call.args) else {}} for call in calls
    ]
    if shown:
        message["toolCalls"] = shown
    own = {call.id: call.args for call in calls if not is_object(call.args)}
    if own:
        message["metadata"] = {"modelArgs": own}
    return message


def show_final_args(history: list[Message], gate: Gate) -> None:
    """Make the assistant message that made a call show it as it runs (P6).

    The model's own arguments, where they differ, stay in that message's metadata, under ``modelArgs`` and the call's
    id. What a hook wrote there itself in the meantime gives way, so that every copy of the call agrees.
    """
    call = gate.call
    if not is_object(gate.args):
        return  # they never were valid, and are in the metadata already
    for index in range(len(history) - 1, -1, -1):
        message = history[index]
        calls = message.get("toolCalls")
        if not is_list(calls) or not any(is_map(each) and each.get("id") == call.id for each in calls):
            continue
        shown = [
            {**call.wire(), "args": copied(gate.args)} if is_map(each) and each.get("id") == call.id else each
            for each in calls
        ]
        if same(shown, calls):
            return
        history[index] = {**message, "toolCalls": shown}
        if not same(gate.args, call.args):
            metadata = _map(message.get("metadata"))
            own = {**_map(metadata.get("modelArgs")), call.id: copied(call.args)}
            history[index]["metadata"] = {**metadata, "modelArgs": own}
        return


def add_results(history: list[Message], batch: Iterable[SettledCall]) -> None:
    """Add a batch's results in call order, then what hooks added during it (P2)."""
    settled = list(batch)
    history.extend(each.message() for each in settled)
    history.extend(message for each in settled for message in each.appended)


def close_open_calls(history: list[Message], reason: str) -> None:
    """Give each call of the last assistant message that has no result one that says why.

    A turn that ended in the middle of a batch leaves such calls, and no model takes a conversation with them.
    """
    answered: set[object] = set()
    for index in range(len(history) - 1, -1, -1):
        message = history[index]
        if message.get("role") == "tool":
            answered.add(message.get("toolCallId"))
            continue
        calls = message.get("toolCalls")
        made = [each for each in calls if is_map(each)] if is_list(calls) else []
        if not made:
            continue  # a hook's note behind the calls
        missing = [each for each in made if each.get("id") not in answered]
        end = index + 1 + len(made) - len(missing)
        history[end:end] = [
            {"role": "tool", "toolCallId": each["id"], "name": each["name"], "content": reason} for each in missing
        ]
        return


def _map(value: object) -> dict[str, object]:
    return value if is_map(value) else {}
