"""OpenAI's chat history as messages and calls of the engine."""

from __future__ import annotations

from typing import Any

import pytest

from hookcell import ToolCall
from hookcell.cli.openai_dialect import RecordInvalid, recorded_run
from hookcell.messages import check_message

from .small_guests import answer, asked, call, one_call, record, user


def _run(messages: list[Any], **more: object) -> Any:
    return recorded_run(record(messages, **more), fallback_id="line 7")


def test_a_turn_holds_what_came_before_it_its_message_and_its_calls_with_their_results() -> None:
    messages = [
        {"role": "developer", "content": "rules"},
        user("hi"),
        asked(call("c1", "find", '{"q": 1}'), call("c2", "look")),
        answer("c2", "two"),
        answer("c1", "one"),
        asked(content="done"),
        user("thanks"),
    ]
    run = _run(messages)
    first, second = run.turns
    assert run.messages == 7
    assert [message["role"] for message in first.before] == ["system", "user"]
    assert first.message["toolCalls"] == [
        {"id": "c1", "name": "find", "args": {"q": 1}},
        {"id": "c2", "name": "look", "args": {}},
    ]
    assert [each.answer["content"] for each in first.calls] == ["one", "two"]
    assert second.index == 5
    assert (second.before, second.calls) == ((), ())
    for message in (*first.before, first.message, *(each.answer for each in first.calls), second.message):
        check_message(message)


@pytest.mark.parametrize(
    ("arguments", "args"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        (None, {}),
        ("not json", "not json"),
        ("[1]", "[1]"),
        ('{"a": NaN}', '{"a": NaN}'),
        ({"a": 1}, {"a": 1}),
    ],
)
def test_arguments_are_the_object_or_else_the_text_that_the_model_wrote(arguments: object, args: object) -> None:
    run = _run(one_call(arguments=arguments))
    assert run.turns[0].calls[0].call == ToolCall(id="c1", name="find", args=args)


def test_a_call_whose_result_was_not_recorded_has_none() -> None:
    run = _run([asked(call("c1"), call("c2")), answer("c2")])
    assert [each.answer is None for each in run.turns[0].calls] == [True, False]


def test_the_run_is_called_by_its_id_or_else_by_the_fallback() -> None:
    assert recorded_run(record([], "abc"), fallback_id="line 7").run_id == "abc"
    assert recorded_run(record([], None, runId=12), fallback_id="line 7").run_id == "12"
    for nothing in (None, "", {"x": 1}):
        assert recorded_run(record([], None, runId=nothing), fallback_id="line 7").run_id == "line 7"


def test_the_request_holds_what_is_on_the_list_and_nothing_else() -> None:
    run = _run([], model="m", temperature=0, top_p=True, api_key="secret", max_tokens=5)
    assert run.request == {"model": "m", "temperature": 0, "maxTokens": 5}


def test_keys_that_have_no_place_are_counted_unless_they_hold_nothing() -> None:
    messages = [{**user(), "refusal": None, "audio": {}}, {**user(), "audio": {}}, {**asked(content="x"), "x\x1b": 1}]
    assert _run(messages).unread == {"user.audio": 2, "assistant.x\\x1b": 1}


@pytest.mark.parametrize(
    ("messages", "path"),
    [
        ([1], "/messages/0"),
        ([{"role": "nobody", "content": "x"}], "/messages/0/role"),
        ([{"role": ["user"], "content": "x"}], "/messages/0/role"),
        ([{"content": "x"}], "/messages/0/role"),
        ([{"role": "function", "content": "x"}], "/messages/0/role"),
        ([{"role": "user", "content": None}], "/messages/0/content"),
        ([{"role": "user", "content": [{"text": "x"}]}], "/messages/0/content"),
        ([answer("c1")], "/messages/0"),
        ([asked(call("c1")), answer("c2")], "/messages/1"),
        ([asked(call("c1")), user(), answer("c1")], "/messages/2"),
        ([asked(call("c1")), answer("c1"), answer("c1")], "/messages/2"),
        ([asked(call("c1"), call("c1"))], "/messages/0/tool_calls/1/id"),
        ([asked(call("c1")), {"role": "tool", "content": "x"}], "/messages/1"),
        ([{**asked(), "tool_calls": {}}], "/messages/0/tool_calls"),
        ([{**asked(), "tool_calls": [1]}], "/messages/0/tool_calls/0"),
        ([{**asked(), "tool_calls": [{"type": "custom"}]}], "/messages/0/tool_calls/0/type"),
        ([{**asked(), "tool_calls": [{"id": "c"}]}], "/messages/0/tool_calls/0/function"),
        ([{**asked(), "tool_calls": [{"function": {"name": "f"}}]}], "/messages/0/tool_calls/0/id"),
    ],
)
def test_what_is_not_of_the_dialect_is_refused_with_its_place(messages: list[Any], path: str) -> None:
    with pytest.raises(RecordInvalid) as caught:
        _run(messages)
    assert caught.value.path == path
    assert str(caught.value).startswith(path)


def test_a_record_without_messages_says_what_is_wanted() -> None:
    with pytest.raises(RecordInvalid, match="OpenAI's chat history as a list under 'messages'"):
        recorded_run({"conversation": []}, fallback_id="line 7")


def test_an_id_that_moves_the_cursor_is_escaped_in_the_error() -> None:
    with pytest.raises(RecordInvalid) as caught:
        _run([answer("\x1b[2J\u202e")])
    assert "\x1b" not in str(caught.value)
    assert "\u202e" not in str(caught.value)
