"""Real models through pydantic-ai, with that library's own test models: nothing here needs a network."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import anyio
import pytest

pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")

from pydantic_ai import messages as theirs
from pydantic_ai.exceptions import UnexpectedModelBehavior, UserError
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RequestUsage

from hookcell.agent import ModelRequest, ModelResponse, ToolDefinition, TurnResult, Usage, create_agent, define_tool
from hookcell.agent.pydantic_ai import PydanticAIModel

HELLO: dict[str, object] = {"role": "user", "content": "hello"}
WEATHER = ToolDefinition(
    name="weather",
    description="The weather of a city.",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
SHOUT: dict[str, object] = {"id": "c1", "name": "weather", "args": {"city": "Oslo"}}


class Scripted:
    """A model that keeps what it was sent, and answers with the parts it was given."""

    def __init__(self, *parts: theirs.ModelResponsePart, settings: Any = None, **fields: Any) -> None:
        self.answer = theirs.ModelResponse(parts=list(parts) or [theirs.TextPart("hi")], **fields)
        self.model = FunctionModel(self._answer, model_name="scripted", settings=settings)
        self.messages: list[theirs.ModelMessage] = []
        self.info: AgentInfo | None = None

    @property
    def settings(self) -> dict[str, object]:
        assert self.info is not None
        return dict(self.info.model_settings or {})

    def _answer(self, messages: list[theirs.ModelMessage], info: AgentInfo) -> theirs.ModelResponse:
        self.messages, self.info = messages, info
        return self.answer


def asked(model: Any = None, /, *messages: dict[str, object], **options: object) -> ModelResponse:
    """What a model answers; ``options`` are the request's."""
    return ask(PydanticAIModel(model), ModelRequest(messages=messages or [HELLO], options=options))


def ask(provider: PydanticAIModel, request: ModelRequest) -> ModelResponse:
    return anyio.run(provider.generate, request, None)


def sent(*messages: dict[str, object]) -> list[tuple[str, list[dict[str, object]]]]:
    """What becomes of messages: the kind of each of theirs, and its parts without times and defaults."""
    scripted = Scripted()
    asked(scripted.model, *messages)
    return [(message.kind, [plain(part) for part in message.parts]) for message in scripted.messages]


def plain(part: Any) -> dict[str, object]:
    keys = ("part_kind", "content", "tool_name", "tool_call_id", "args")
    return {key: getattr(part, key) for key in keys if hasattr(part, key)}


def streamed(
    function: Callable[..., AsyncIterator[Any]], backend: str = "asyncio", request: ModelRequest | None = None
) -> tuple[list[str], ModelResponse]:
    told: list[str] = []

    async def on_text(text: str) -> None:
        await anyio.lowlevel.checkpoint()
        told.append(text)

    provider = PydanticAIModel(FunctionModel(stream_function=function))
    answer = anyio.run(provider.generate, request or ModelRequest(messages=[HELLO]), on_text, backend=backend)
    return told, answer


# Messages


def test_a_whole_conversation_goes_over_in_its_order() -> None:
    assert sent(
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "how is it in Oslo?"},
        {"role": "assistant", "content": "let me see", "toolCalls": [SHOUT]},
        {"role": "tool", "toolCallId": "c1", "name": "weather", "content": "rain"},
        {"role": "user", "content": "and now?"},
        {"role": "assistant", "content": "dry"},
        HELLO,
    ) == [
        (
            "request",
            [
                {"part_kind": "system-prompt", "content": "be brief"},
                {"part_kind": "user-prompt", "content": "how is it in Oslo?"},
            ],
        ),
        (
            "response",
            [
                {"part_kind": "text", "content": "let me see"},
                {"part_kind": "tool-call", "tool_name": "weather", "tool_call_id": "c1", "args": {"city": "Oslo"}},
            ],
        ),
        (
            "request",
            [
                {"part_kind": "tool-return", "content": "rain", "tool_name": "weather", "tool_call_id": "c1"},
                {"part_kind": "user-prompt", "content": "and now?"},
            ],
        ),
        ("response", [{"part_kind": "text", "content": "dry"}]),
        ("request", [{"part_kind": "user-prompt", "content": "hello"}]),
    ]


def test_text_parts_stay_apart() -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert sent(
        {"role": "system", "content": parts},
        {"role": "user", "content": parts},
        {"role": "assistant", "content": parts},
    ) == [
        (
            "request",
            [
                {"part_kind": "system-prompt", "content": "one"},
                {"part_kind": "system-prompt", "content": "two"},
                {"part_kind": "user-prompt", "content": ["one", "two"]},
            ],
        ),
        ("response", [{"part_kind": "text", "content": "one"}, {"part_kind": "text", "content": "two"}]),
    ]


@pytest.mark.parametrize("content", [None, "", []])
def test_calls_go_without_a_text_where_there_is_none(content: object) -> None:
    ((_, parts),) = sent({"role": "assistant", "content": content, "toolCalls": [SHOUT]})
    assert [part["part_kind"] for part in parts] == ["tool-call"]


def test_an_assistant_that_said_nothing_says_nothing() -> None:
    assert sent({"role": "assistant", "content": ""}) == [("response", [{"part_kind": "text", "content": ""}])]


def test_a_result_without_a_name_has_that_of_its_call() -> None:
    (_, (_, (result,))) = sent(
        {"role": "assistant", "content": "", "toolCalls": [SHOUT]},
        {"role": "tool", "toolCallId": "c1", "content": "rain"},
    )
    assert result["tool_name"] == "weather"


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("rain", "rain"),
        ([{"type": "text", "text": "rain"}], "rain"),
        ([{"type": "text", "text": "rain"}, {"type": "text", "text": "wind"}], ["rain", "wind"]),
        ([{"type": "bill", "total": 3}], '[{"type": "bill", "total": 3}]'),
        ([{"type": "text", "text": "a", "lang": "é"}], '[{"type": "text", "text": "a", "lang": "é"}]'),
        ([], "[]"),
    ],
)
def test_a_tools_list_of_other_things_than_text_goes_as_json(content: object, wanted: object) -> None:
    """A tool's value may look like parts of a message; it is the tool's all the same."""
    ((_, (result,)),) = sent({"role": "tool", "toolCallId": "c1", "name": "weather", "content": content})
    assert result["content"] == wanted


def test_metadata_never_goes_to_the_model() -> None:
    """SEMANTICS, "Points": `metadata`."""
    assert sent({**HELLO, "metadata": {"secret": 1}}) == sent(HELLO)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"role": "user", "content": [{"type": "image", "url": "x"}]}, "message 0 has a part of type 'image'"),
        ({"role": "user", "content": [{"type": "text", "text": "a", "lang": "en"}]}, "with no more"),
        ({"role": "user", "content": [{"type": "text", "text": 1}]}, "part of type 'text'"),
        ({"role": "user", "content": ["a"]}, "part of type 'a'"),
        ({"role": "assistant", "content": [{"type": "thinking", "text": "x"}]}, "part of type 'thinking'"),
        ({"role": "system", "content": [{"type": "image"}]}, "part of type 'image'"),
        ({"role": "user", "content": None}, "is a string or a list of parts, not NoneType"),
        ({"role": "assistant", "content": None}, "is a string or a list of parts, not NoneType"),
        ({"role": "tool", "toolCallId": "c1", "name": "x", "content": {"a": 1}}, "not dict"),
        ({"role": "developer", "content": "a"}, "role 'developer'"),
        ({"content": "a"}, "role 'NoneType'"),
        ({"role": "user", "content": "a", "name": "Ann"}, "'name', which cannot be sent with a message of role user"),
        ({"role": "user", "content": "a", "toolCalls": [SHOUT]}, "'toolCalls', which cannot be sent"),
        ({"role": "tool", "content": "a", "name": "x"}, "names no call"),
        ({"role": "tool", "content": "a", "toolCallId": "c9"}, "'c9', which no message before it makes"),
        ({"role": "assistant", "content": "a", "toolCalls": {}}, "toolCalls of message 0 are a list"),
        ({"role": "assistant", "content": "a", "toolCalls": [{**SHOUT, "args": "{"}]}, "with a map as args"),
        ({"role": "assistant", "content": "a", "toolCalls": [{**SHOUT, "more": 1}]}, "is not {id, name, args}"),
        ({"role": "user\n", "content": "a"}, r"role 'user\\x0a'"),
    ],
)
def test_what_would_be_lost_is_refused(message: dict[str, object], reason: str) -> None:
    scripted = Scripted()
    with pytest.raises(ValueError, match=reason):
        asked(scripted.model, message)
    assert scripted.info is None


# Options and tools


def test_options_become_settings() -> None:
    scripted = Scripted()
    asked(
        scripted.model,
        temperature=0.5,
        topP=0.9,
        maxTokens=7,
        stop=["a", "b"],
        toolChoice="required",
        headers={"x-team": "blue"},
    )
    assert scripted.settings == {
        "temperature": 0.5,
        "top_p": 0.9,
        "max_tokens": 7,
        "stop_sequences": ["a", "b"],
        "tool_choice": "required",
        "extra_headers": {"x-team": "blue"},
    }


def test_one_stop_is_a_list_of_one_and_a_named_tool_is_the_only_choice() -> None:
    scripted = Scripted()
    request = ModelRequest(
        messages=[HELLO], tools=[WEATHER], options={"stop": "a", "toolChoice": {"type": "tool", "name": "weather"}}
    )
    ask(PydanticAIModel(scripted.model), request)
    assert scripted.settings == {"stop_sequences": ["a"], "tool_choice": ["weather"]}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"seed": 1}, "option 'seed', which cannot be sent; these: model, temperature, topP"),
        ({"stop": 1}, "'stop' is a string or a list of them, not int"),
        ({"stop": ["a", 1]}, "'stop' is a string or a list of them"),
        ({"toolChoice": "any"}, "'toolChoice' is"),
        ({"toolChoice": ["weather"]}, "'toolChoice' is"),
        ({"toolChoice": {"type": "function", "function": {"name": "x"}}}, "'toolChoice' is"),
        ({"toolChoice": {"type": "tool", "name": 1}}, "'toolChoice' is"),
        ({"headers": {"x": 1}}, "'headers' is a map"),
        ({"headers": [("x", "y")]}, "'headers' is a map"),
    ],
)
def test_an_option_that_cannot_be_sent_is_refused(options: dict[str, object], reason: str) -> None:
    scripted = Scripted()
    with pytest.raises(ValueError, match=reason):
        asked(scripted.model, **options)
    assert scripted.info is None


def test_an_option_that_the_model_would_ignore_is_refused() -> None:
    class Deaf(FunctionModel):
        unsupported_settings = frozenset({"stop_sequences"})

    scripted = Scripted()
    with pytest.raises(ValueError, match="would ignore the request's option 'stop'"):
        asked(Deaf(scripted._answer), stop="a")
    asked(Deaf(scripted._answer), temperature=0)
    assert scripted.settings == {"temperature": 0}


def test_options_come_on_top_of_the_settings_and_leave_them_as_they_were() -> None:
    scripted = Scripted()
    settings: Any = {"temperature": 1.0, "seed": 3, "extra_headers": {"X-Key": "k"}}
    provider = PydanticAIModel(scripted.model, settings=settings)
    ask(provider, ModelRequest(messages=[HELLO], options={"temperature": 0.0, "headers": {"x-team": "blue"}}))
    assert scripted.settings == {"temperature": 0.0, "seed": 3, "extra_headers": {"X-Key": "k", "x-team": "blue"}}
    ask(provider, ModelRequest(messages=[HELLO]))
    assert scripted.settings == {"temperature": 1.0, "seed": 3, "extra_headers": {"X-Key": "k"}}


@pytest.mark.parametrize("where", ["the provider's", "the model's"])
def test_a_request_adds_headers_and_never_replaces_the_hosts_own(where: str) -> None:
    """A hook may write a request's headers (SEMANTICS G7)."""
    settings: Any = {"extra_headers": {"X-Tenant": "t"}}
    scripted = Scripted(settings=settings if where == "the model's" else None)
    provider = PydanticAIModel(scripted.model, settings=settings if where == "the provider's" else None)
    with pytest.raises(ValueError, match="'x-tenant' is in the model's own settings"):
        ask(provider, ModelRequest(messages=[HELLO], options={"headers": {"x-tenant": "other"}}))
    assert scripted.info is None
    ask(provider, ModelRequest(messages=[HELLO], options={"headers": {"x-team": "blue"}}))
    assert scripted.settings["extra_headers"] == {"X-Tenant": "t", "x-team": "blue"}


def test_tools_are_told_with_their_schemas() -> None:
    scripted = Scripted()
    ask(PydanticAIModel(scripted.model), ModelRequest(messages=[HELLO], tools=[WEATHER]))
    assert scripted.info is not None
    (tool,) = scripted.info.function_tools
    assert (tool.name, tool.description) == (WEATHER.name, WEATHER.description)
    assert tool.parameters_json_schema == WEATHER.parameters
    assert scripted.info.allow_text_output


# Which model


@pytest.mark.parametrize("name", ["scripted", "function:scripted"])
def test_the_option_model_may_name_the_model_that_it_is(name: str) -> None:
    scripted = Scripted()
    assert asked(scripted.model, model=name).text == "hi"
    assert scripted.settings == {}


@pytest.mark.parametrize("name", ["other", "", None, 1])
def test_the_option_model_cannot_name_another(name: object) -> None:
    scripted = Scripted()
    with pytest.raises(ValueError, match=r"asks for model .* this is 'function:scripted'"):
        asked(scripted.model, model=name)
    assert scripted.info is None


def test_a_model_goes_by_its_name() -> None:
    wanted = asked(TestModel()).text
    assert asked("test").text == wanted
    assert asked("test", model="test").text == wanted
    assert asked(None, model="test").text == wanted


@pytest.mark.parametrize("options", [{}, {"model": None}])
def test_without_any_name_there_is_no_model(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="no model is named"):
        asked(None, **options)


def test_an_unknown_name_is_the_librarys_error() -> None:
    with pytest.raises(UserError, match="Unknown model"):
        asked("nowhere:to-be-found")


class Counted(FunctionModel):
    """Counts who holds it open."""

    opened = closed = 0

    async def __aenter__(self) -> Counted:
        self.opened += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        self.closed += 1


def test_a_named_models_connections_are_closed_and_a_given_ones_are_not_touched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Counted(Scripted()._answer)
    asked(model)
    assert (model.opened, model.closed) == (0, 0)
    monkeypatch.setattr("hookcell.agent.pydantic_ai.infer_model", lambda _: model)
    asked("some:name")
    assert (model.opened, model.closed) == (1, 1)
    with pytest.raises(ValueError, match="seed"):
        asked("some:name", seed=1)
    assert (model.opened, model.closed) == (2, 2)


# Answers


def test_text_calls_usage_and_the_reason_come_back() -> None:
    scripted = Scripted(
        theirs.TextPart("let me "),
        theirs.TextPart("see"),
        theirs.ToolCallPart("weather", {"city": "Oslo"}, "c1"),
        theirs.ToolCallPart("weather", '{"city": "Rome"}', "c2"),
        usage=RequestUsage(input_tokens=11, output_tokens=5),
        finish_reason="tool_call",
    )
    answer = asked(scripted.model)
    assert answer.text == "let me see"
    assert [call.wire() for call in answer.tool_calls] == [
        {"id": "c1", "name": "weather", "args": {"city": "Oslo"}},
        {"id": "c2", "name": "weather", "args": {"city": "Rome"}},
    ]
    assert answer.usage == Usage(input_tokens=11, output_tokens=5)
    assert answer.finish_reason == "tool_call"
    assert answer.notes == {}


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        (None, {}),
        ("", {}),
        ({}, {}),
        ("{}", {}),
        ('{"a": [1, 2.5, null, "é"]}', {"a": [1, 2.5, None, "é"]}),
        ('{"a": 1', '{"a": 1'),
        ("[1]", "[1]"),
        ("null", "null"),
        ('"a"', '"a"'),
        (" ", " "),
        ('{"a": NaN}', '{"a": NaN}'),
        ("[" * 10_000, "[" * 10_000),
    ],
)
def test_arguments_that_are_no_json_object_stay_the_text_they_are(args: Any, wanted: object) -> None:
    (call,) = asked(Scripted(theirs.ToolCallPart("weather", args, "c1")).model).tool_calls
    assert call.args == wanted


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        (theirs.FilePart(theirs.BinaryContent(b"x", media_type="image/png")), "file"),
        (theirs.NativeToolCallPart("web_search", {"q": "x"}, "n1"), "builtin-tool-call"),
        (theirs.NativeToolReturnPart("web_search", "x", "n1"), "builtin-tool-return"),
        (theirs.CompactionPart("x"), "compaction"),
    ],
)
def test_an_answer_that_no_message_can_hold_is_refused(part: Any, kind: str) -> None:
    with pytest.raises(UnexpectedModelBehavior, match=f"answered with a {kind}"):
        asked(Scripted(theirs.TextPart("a"), part).model)


@pytest.mark.parametrize("state", ["suspended", "incomplete", "interrupted"])
def test_half_an_answer_is_none(state: str) -> None:
    with pytest.raises(UnexpectedModelBehavior, match=f"answer is {state}"):
        asked(Scripted(state=state).model)


def test_what_a_provider_may_want_back_is_kept_as_json_and_repeats_no_text() -> None:
    scripted = Scripted(
        theirs.ThinkingPart("hm", id="t1", signature="sig", provider_name="p"),
        theirs.TextPart("the secret", id="m1", provider_name="p"),
        theirs.ToolCallPart("weather", {"city": "Oslo"}, "c1", provider_name="p", provider_details={"raw": b"\xff"}),
        theirs.ToolCallPart("weather", {}, "c2"),
        provider_name="p",
        provider_url="https://p.example",
    )
    kept = asked(scripted.model).notes
    assert kept == {
        "provider_name": "p",
        "provider_url": "https://p.example",
        "parts": [
            {"part_kind": "thinking", "content": "hm", "id": "t1", "signature": "sig", "provider_name": "p"},
            {"part_kind": "text", "id": "m1", "provider_name": "p"},
            {"part_kind": "tool-call", "provider_name": "p", "provider_details": {"raw": "_w=="}},
            {"part_kind": "tool-call"},
        ],
    }
    assert json.loads(json.dumps(kept)) == kept


def test_thinking_is_no_text() -> None:
    answer = asked(Scripted(theirs.ThinkingPart("hm"), theirs.TextPart("yes")).model)
    assert answer.text == "yes"
    assert answer.notes == {"parts": [{"part_kind": "thinking", "content": "hm"}, {"part_kind": "text"}]}


def test_the_models_own_error_comes_through() -> None:
    def fails(*_: object) -> theirs.ModelResponse:
        raise RuntimeError("the model is down")

    with pytest.raises(RuntimeError, match="the model is down"):
        asked(FunctionModel(fails))


# Streams and event loops

BACKENDS = pytest.mark.parametrize("backend", ["asyncio", "trio"])


@BACKENDS
def test_text_is_told_as_it_comes_and_the_answer_is_whole(backend: str) -> None:
    async def says(messages: Sequence[object], info: AgentInfo) -> AsyncIterator[Any]:
        yield {0: DeltaThinkingPart(content="hm", signature="sig")}
        yield "let "
        yield "me "
        yield "see"
        yield {1: DeltaToolCall(name="weather", json_args='{"city":', tool_call_id="c1")}
        yield {1: DeltaToolCall(json_args=' "Oslo"}')}
        yield {2: DeltaToolCall(name="weather", json_args='{"city":', tool_call_id="c2")}

    told, answer = streamed(says, backend)
    assert told == ["let ", "me ", "see"]
    assert answer.text == "let me see"
    assert [call.wire() for call in answer.tool_calls] == [SHOUT, {"id": "c2", "name": "weather", "args": '{"city":'}]
    assert answer.usage.output_tokens > 0
    kept: Any = answer.notes
    assert kept["parts"][0] == {
        "part_kind": "thinking",
        "content": "hm",
        "signature": "sig",
        "provider_name": "function",
    }


def test_a_streamed_request_is_sent_like_any_other() -> None:
    seen: list[tuple[list[theirs.ModelMessage], AgentInfo]] = []

    async def says(messages: list[theirs.ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        seen.append((messages, info))
        yield "hi"

    streamed(says, request=ModelRequest(messages=[HELLO], tools=[WEATHER], options={"temperature": 0.5}))
    ((messages, info),) = seen
    assert [plain(part) for part in messages[0].parts] == [{"part_kind": "user-prompt", "content": "hello"}]
    assert info.model_settings == {"temperature": 0.5}
    assert [tool.name for tool in info.function_tools] == ["weather"]


def test_an_error_amid_a_stream_comes_through_after_what_was_told() -> None:
    told: list[str] = []

    async def on_text(text: str) -> None:
        told.append(text)

    async def says(messages: Sequence[object], info: AgentInfo) -> AsyncIterator[Any]:
        yield "let me "
        raise RuntimeError("cut off")

    provider = PydanticAIModel(FunctionModel(stream_function=says))
    with pytest.raises(RuntimeError, match="cut off"):
        anyio.run(provider.generate, ModelRequest(messages=[HELLO]), on_text)
    assert told == ["let me "]


@BACKENDS
def test_a_listener_that_throws_ends_the_stream(backend: str) -> None:
    closed: list[bool] = []

    async def on_text(text: str) -> None:
        raise RuntimeError(f"no more after {text}")

    async def says(messages: Sequence[object], info: AgentInfo) -> AsyncIterator[Any]:
        try:
            yield "one"
            yield "two"
        finally:
            closed.append(True)

    provider = PydanticAIModel(FunctionModel(stream_function=says))
    with pytest.raises(RuntimeError, match="no more after one"):
        anyio.run(provider.generate, ModelRequest(messages=[HELLO]), on_text, backend=backend)
    assert closed == [True]


@BACKENDS
def test_it_drives_the_loop_through_a_tool_and_back(backend: str) -> None:
    """SEMANTICS P3: the library's test model calls each tool once with made-up arguments, then answers."""
    cities: list[object] = []

    def execute(args: dict[str, object]) -> str:
        cities.append(args["city"])
        return "rain"

    tool = define_tool("weather", input=WEATHER.parameters, execute=execute)
    agent = create_agent(provider=PydanticAIModel(TestModel()), tools=[tool])
    result = anyio.run(agent.send, "how is it?", backend=backend)
    assert len(cities) == 1
    assert json.loads(result.text) == {"weather": "rain"}
    assert [message["role"] for message in result.messages] == ["user", "assistant", "tool", "assistant"]


def test_arguments_that_are_no_json_come_back_to_the_model_as_its_error() -> None:
    """SEMANTICS P3: they fail the validation, and the tool does not run."""
    rounds: list[list[theirs.ModelMessage]] = []

    def says(messages: list[theirs.ModelMessage], info: AgentInfo) -> theirs.ModelResponse:
        rounds.append(messages)
        first = len(rounds) == 1
        return theirs.ModelResponse([theirs.ToolCallPart("weather", "{", "c1") if first else theirs.TextPart("sorry")])

    def execute(args: dict[str, object]) -> str:
        raise AssertionError(args)

    tool = define_tool("weather", input=WEATHER.parameters, execute=execute)
    agent = create_agent(provider=PydanticAIModel(FunctionModel(says)), tools=[tool])
    assert anyio.run(agent.send, "how is it?").text == "sorry"
    (answered,) = rounds[1][-1].parts
    assert isinstance(answered, theirs.ToolReturnPart)
    assert (answered.tool_name, answered.tool_call_id) == ("weather", "c1")
    assert "arguments" in str(answered.content)


# The extra


def in_a_fresh_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_loop_alone_does_not_import_it() -> None:
    assert in_a_fresh_process("import sys, hookcell.agent; print('pydantic_ai' in sys.modules)") == "False"


MISSING = """
import sys
sys.modules["{name}"] = None
try:
    import hookcell.agent.pydantic_ai
except ImportError as error:
    print(type(error).__name__, error)
"""


def test_without_the_library_the_error_says_what_to_install() -> None:
    said = in_a_fresh_process(MISSING.format(name="pydantic_ai"))
    assert said == "ImportError real models need pydantic-ai: pip install 'hookcell[models]'"


def test_a_library_that_lacks_a_part_of_its_own_says_so_itself() -> None:
    said = in_a_fresh_process(MISSING.format(name="pydantic_graph"))
    assert "pydantic_graph" in said
    assert "hookcell[models]" not in said


def test_what_the_model_thought_goes_back_to_it_and_to_no_hook() -> None:
    """Between tool calls some providers refuse a request without their own reasoning. Texts go back without ids."""
    requests: list[list[theirs.ModelMessage]] = []

    def says(messages: list[theirs.ModelMessage], _: AgentInfo) -> theirs.ModelResponse:
        requests.append(messages)
        if len(requests) > 1:
            return theirs.ModelResponse(parts=[theirs.TextPart("done")])
        call = theirs.ToolCallPart("weather", {"city": "Oslo"}, "c1", id="fc1", provider_name="function")
        return theirs.ModelResponse(
            parts=[
                theirs.ThinkingPart("hm, a secret", id="t1", signature="sig", provider_name="function"),
                theirs.TextPart("let me see", id="m1"),
                call,
            ]
        )

    seen: list[str] = []

    class Watch:
        name = "watch"

        def pre_generate(self, ctx: Any) -> None:
            seen.append(repr((ctx.messages, ctx.request, ctx.metadata)))

        def post_generate(self, ctx: Any, result: Any) -> None:
            seen.append(repr((ctx.messages, ctx.metadata, result)))

        def pre_tool_call(self, ctx: Any) -> dict[str, object]:
            return {"input": {"city": "Rome"}}

    weather = define_tool("weather", input={"type": "object"}, execute=lambda _: "sun", needs_approval=True)
    agent = create_agent(provider=PydanticAIModel(FunctionModel(says)), tools=[weather], hooks=[Watch()])

    async def main() -> TurnResult:
        paused = await agent.send("hi")
        assert paused.pending is not None
        return await agent.resume(paused.pending.token, {"c1": "approve"})

    result = anyio.run(main)
    assert result.text == "done"
    answer = requests[1][1]
    assert isinstance(answer, theirs.ModelResponse)
    thought, text, call = answer.parts
    assert thought == theirs.ThinkingPart("hm, a secret", id="t1", signature="sig", provider_name="function")
    assert text == theirs.TextPart("let me see")
    assert isinstance(call, theirs.ToolCallPart)
    assert (call.id, call.args, call.provider_name) == ("fc1", {"city": "Rome"}, "function")
    assert len(seen) == 4
    assert not any("secret" in each or "sig" in each for each in (*seen, repr(result.messages)))
