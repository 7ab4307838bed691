"""Real models: a `Provider` that asks any of pydantic-ai's (``pip install 'hookcell[models]'``).

Only the library's direct requests are used: one request, one answer. Its agents, tools and retries stay out of it, so
that every tool call goes the way of SEMANTICS P3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

import anyio.to_thread
from pydantic_core import from_json, to_jsonable_python

try:
    from pydantic_ai import messages as theirs
    from pydantic_ai.direct import model_request, model_request_stream
    from pydantic_ai.exceptions import UnexpectedModelBehavior
    from pydantic_ai.models import Model, ModelRequestParameters, infer_model
    from pydantic_ai.tools import ToolDefinition as TheirTool
except ModuleNotFoundError as error:
    if error.name != "pydantic_ai":
        raise
    raise ImportError("real models need pydantic-ai: pip install 'hookcell[models]'", name=error.name) from error

from hookcell.shapes import is_list, is_map, is_object
from hookcell.tool_result import ToolCall, text_of
from hookcell_sandbox.guest_text import escape

from .models import ModelRequest, ModelResponse, OnText, Usage

if TYPE_CHECKING:
    from pydantic_ai.settings import ModelSettings

__all__ = ["PydanticAIModel"]

_KEYS: Final[Mapping[object, frozenset[str]]] = {
    "system": frozenset({"role", "content"}),
    "user": frozenset({"role", "content"}),
    "assistant": frozenset({"role", "content", "toolCalls"}),
    "tool": frozenset({"role", "content", "toolCallId", "name"}),
}
"""What a message of each role is sent with. ``metadata`` never goes to a model; any other key would be lost."""

_GO_BACK: Final = ("id", "signature", "provider_name", "provider_details")
"""What a provider may want to see again of a part it made, beside the part itself."""


class PydanticAIModel:
    """A `Provider` that sends each request to a model of pydantic-ai's and hands back its answer.

    A request it cannot send whole is refused before anything is sent. Text parts are the only kind of part there is;
    a tool's list of other things goes as JSON. Arguments that are no JSON object come back as the text they are. An
    answer with a file, speech or a tool that the provider ran itself is refused: no hook saw that tool run.

    What a provider wants to see again between tool calls (thinking, signatures, ids of its own) goes back to it by the
    answer's ``notes``, which no hook sees. Texts go back without their ids: a provider that knows a text by its id uses
    its own copy, and what a hook took out of it would be back.

    It runs where the provider's client does: under asyncio, and under trio if that client can, as OpenAI's and
    Anthropic's do.
    """

    def __init__(self, model: Model | str | None = None, *, settings: ModelSettings | None = None) -> None:
        """Nothing is opened or looked up yet.

        Args:
            model: One of the library's models, whose connections stay its owner's; or the name of one, such as
                ``"openai:gpt-5"``, which opens and closes its own for each request. None: each request's option
                ``model`` is that name.
            settings: What each request starts from, and what it has no option for. Options come on top, but none
                takes the place of a header that stands here or in the model's own settings. The models inside a
                `FallbackModel` are not looked into: there, give the headers here.
        """
        self._model = model
        self._settings: ModelSettings = settings or {}

    async def generate(self, request: ModelRequest, on_text: OnText | None, /) -> ModelResponse:
        """One answer; with ``on_text`` it is streamed. ``finish_reason`` is the library's word for the provider's.

        Raises:
            ValueError: A message or an option is of a kind that cannot be sent, or ``model`` names another model.
            pydantic_ai.exceptions.UnexpectedModelBehavior: The answer is not whole, or holds what no message can.
            Exception: Whatever the library or the provider's client raises.
        """
        messages = _conversation(request.messages, request.notes)
        tools = [
            TheirTool(name=tool.name, description=tool.description, parameters_json_schema=dict(tool.parameters))
            for tool in request.tools
        ]
        parameters = ModelRequestParameters(function_tools=tools)
        async with await self._named(request.options) as model:
            settings = self._with_options(request.options, model)
            if on_text is None:
                answer = await model_request(
                    model, messages, model_settings=settings, model_request_parameters=parameters
                )
            else:
                async with model_request_stream(
                    model, messages, model_settings=settings, model_request_parameters=parameters
                ) as stream:
                    async for event in stream:
                        if text := _new_text(event):
                            await on_text(text)
                    answer = stream.get()
        return _response(answer)

    async def _named(self, options: Mapping[str, object]) -> AbstractAsyncContextManager[Model]:
        """The model to ask, open for one request; one that was given as an object is left as open as it was."""
        given = self._model
        if isinstance(given, Model):
            model, opened = given, nullcontext(given)
        else:
            name = options.get("model") if given is None else given
            if not isinstance(name, str):
                raise ValueError("no model is named: give PydanticAIModel one, or the request the option 'model'")
            # Seconds the first time, when a provider's client is imported, then tens of milliseconds: on the event
            # loop that would use up the deadlines of hooks that run meanwhile.
            model = opened = await anyio.to_thread.run_sync(infer_model, name)
        if (
            given is not None
            and "model" in options
            and options["model"] not in (given, model.model_id, model.model_name)
        ):
            raise ValueError(f"the request asks for model '{_shown(options['model'])}', and this is {model.model_id!r}")
        return opened

    def _with_options(self, options: Mapping[str, object], model: Model) -> ModelSettings:
        settings: dict[str, object] = {**self._settings}
        for option, value in options.items():
            if option == "model":
                continue
            if option not in _OPTIONS:
                known = ", ".join(["model", *_OPTIONS])
                raise ValueError(f"the request has the option '{_shown(option)}', which cannot be sent; these: {known}")
            setting, converted = _OPTIONS[option]
            if setting in model.unsupported_settings:
                raise ValueError(f"model {model.model_id!r} would ignore the request's option {option!r}; leave it out")
            settings[setting] = converted(value)
        if "headers" in options:
            own = {**(model.settings or {}), **self._settings}.get("extra_headers", {})
            settings["extra_headers"] = _joined(
                cast("dict[str, str]", own), cast("dict[str, str]", settings["extra_headers"])
            )
        return cast("ModelSettings", settings)


def _as_it_is(value: object) -> object:
    return value


def _stop(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if not is_list(value) or not all(isinstance(each, str) for each in value):
        raise ValueError(f"the option 'stop' is a string or a list of them, not {_shown(value)}")
    return cast("list[str]", value)


def _tool_choice(value: object) -> str | list[str]:
    if value in ("auto", "none", "required"):
        return cast("str", value)
    if (
        is_map(value)
        and value.keys() == {"type", "name"}
        and value["type"] == "tool"
        and isinstance(value["name"], str)
    ):
        return [value["name"]]
    wanted = """"auto", "none", "required" or {"type": "tool", "name": "…"}"""
    raise ValueError(f"the option 'toolChoice' is {wanted}, not {_shown(value)}")


def _headers(value: object) -> dict[str, str]:
    if not is_object(value) or not all(isinstance(each, str) for each in value.values()):
        raise ValueError("the option 'headers' is a map of names to strings")
    return cast("dict[str, str]", value)


_OPTIONS: Final[Mapping[str, tuple[str, Callable[[object], object]]]] = {
    "temperature": ("temperature", _as_it_is),
    "topP": ("top_p", _as_it_is),
    "maxTokens": ("max_tokens", _as_it_is),
    "stop": ("stop_sequences", _stop),
    "toolChoice": ("tool_choice", _tool_choice),
    "headers": ("extra_headers", _headers),
}


def _joined(own: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """The host's own headers and a request's, which hooks may have written: those never take the place of these."""
    taken = {name.lower() for name in own}
    for name in added:
        if name.lower() in taken:
            raise ValueError(f"the header '{_shown(name)}' is in the model's own settings; leave it out of the request")
    return {**own, **added}


def _conversation(
    messages: Sequence[Mapping[str, object]], notes: Mapping[str, Mapping[str, object]]
) -> list[theirs.ModelMessage]:
    """The messages in the library's shape, where all that stands between two answers is one request."""
    conversation: list[theirs.ModelMessage] = []
    asked: list[theirs.ModelRequestPart] = []
    names: dict[str, str] = {}
    for index, message in enumerate(messages):
        at = f"message {index}"
        role = message.get("role")
        _check_keys(message, role, at)
        if role != "assistant":
            asked += _request_parts(message, names, at)
            continue
        if asked:
            conversation.append(theirs.ModelRequest(parts=asked))
            asked = []
        calls = _calls(message.get("toolCalls", []), at)
        names |= {call.tool_call_id: call.tool_name for call in calls}
        content = message.get("content")
        texts = [] if content is None and calls else _texts(content, at)
        said = [theirs.TextPart(text) for text in texts if text]
        noted = notes.get(calls[0].tool_call_id) if calls else None
        conversation.append(_answered(said, calls, noted or {}))
    if asked:
        conversation.append(theirs.ModelRequest(parts=asked))
    return conversation


def _answered(
    said: Sequence[theirs.TextPart], calls: Sequence[theirs.ToolCallPart], noted: Mapping[str, object]
) -> theirs.ModelResponse:
    """An answer of the model's, with what it thought where it thought it."""
    parts: list[theirs.ModelResponsePart] = []
    texts, left = list(said), list(calls)
    for note in cast("list[dict[str, Any]]", noted.get("parts", ())):
        own = {key: note[key] for key in _GO_BACK if key in note}
        if note["part_kind"] == "thinking":
            parts.append(theirs.ThinkingPart(note["content"], **own))
        elif note["part_kind"] == "text":
            parts += texts
            texts = []
        elif left:
            own.pop("signature", None)
            parts.append(replace(left.pop(0), **own))
    parts += [*texts, *left]
    name = cast("str | None", noted.get("provider_name"))
    return theirs.ModelResponse(parts=parts or [theirs.TextPart("")], provider_name=name)


def _check_keys(message: Mapping[str, object], role: object, at: str) -> None:
    if not isinstance(role, str) or role not in _KEYS:
        raise ValueError(f"{at} has the role '{_shown(role)}'; one of {', '.join(cast('Mapping[str, object]', _KEYS))}")
    for key in message:
        if key not in _KEYS[role] and key != "metadata":
            raise ValueError(f"{at} has '{_shown(key)}', which cannot be sent with a message of role {role}")


def _request_parts(
    message: Mapping[str, object], names: Mapping[str, str], at: str
) -> Sequence[theirs.ModelRequestPart]:
    content = message.get("content")
    if message["role"] == "system":
        return [theirs.SystemPromptPart(text) for text in _texts(content, at)]
    if message["role"] == "user":
        texts = _texts(content, at)
        return [theirs.UserPromptPart(content if isinstance(content, str) else texts)]
    call = message.get("toolCallId")
    if not isinstance(call, str):
        raise ValueError(f"{at} is a tool's and names no call that it answers")
    name = message.get("name", names.get(call))
    if not isinstance(name, str):
        raise ValueError(f"{at} answers the call '{_shown(call)}', which no message before it makes, and has no name")
    return [theirs.ToolReturnPart(tool_name=name, content=_result(content, at), tool_call_id=call)]


def _result(content: object, at: str) -> str | list[str]:
    """What a tool answered. A list whose items have a type is taken for parts, and may as well be the tool's value."""
    if is_list(content) and not (content and all(_is_text(part) for part in content)):
        return text_of(content)  # some providers are sent a list of one as that one
    texts = _texts(content, at)
    return texts[0] if len(texts) == 1 else texts


def _texts(content: object, at: str) -> list[str]:
    if isinstance(content, str):
        return [content]
    if not is_list(content):
        raise ValueError(f"the content of {at} is a string or a list of parts, not {_shown(content)}")
    for part in content:
        if not _is_text(part):
            kind = part.get("type") if is_map(part) else part
            wanted = """{"type": "text", "text": "…"}"""
            raise ValueError(
                f"{at} has a part of type '{_shown(kind)}'; all that can be sent is {wanted}, with no more"
            )
    return [cast("str", cast("dict[str, object]", part)["text"]) for part in content]


def _is_text(part: object) -> bool:
    return is_map(part) and part.keys() == {"type", "text"} and part["type"] == "text" and isinstance(part["text"], str)


def _calls(calls: object, at: str) -> list[theirs.ToolCallPart]:
    if not is_list(calls):
        raise ValueError(f"the toolCalls of {at} are a list, not {_shown(calls)}")
    parts: list[theirs.ToolCallPart] = []
    for call in calls:
        if not (
            is_map(call)
            and call.keys() == {"id", "name", "args"}
            and isinstance(call["id"], str)
            and isinstance(call["name"], str)
            and is_object(call["args"])
        ):
            raise ValueError(f"a tool call of {at} is not {{id, name, args}} with a map as args")
        parts.append(theirs.ToolCallPart(tool_name=call["name"], args=call["args"], tool_call_id=call["id"]))
    return parts


def _shown(value: object) -> str:
    """A value in an error: a hook may have written it."""
    return escape(value if isinstance(value, str) else type(value).__name__, characters=60)


def _new_text(event: theirs.ModelResponseStreamEvent) -> str:
    if isinstance(event, theirs.PartStartEvent) and isinstance(event.part, theirs.TextPart):
        return event.part.content
    if isinstance(event, theirs.PartDeltaEvent) and isinstance(event.delta, theirs.TextPartDelta):
        return event.delta.content_delta
    return ""


def _response(answer: theirs.ModelResponse) -> ModelResponse:
    if answer.state != "complete":
        raise UnexpectedModelBehavior(f"the model's answer is {answer.state}, and only a whole one counts")
    texts: list[str] = []
    calls: list[ToolCall] = []
    for part in answer.parts:
        if isinstance(part, theirs.TextPart):
            texts.append(part.content)
        elif isinstance(part, theirs.ToolCallPart):
            calls.append(ToolCall(id=part.tool_call_id, name=part.tool_name, args=_args(part.args)))
        elif not isinstance(part, theirs.ThinkingPart):
            raise UnexpectedModelBehavior(f"the model answered with a {part.part_kind}, which no message here can hold")
    return ModelResponse(
        text="".join(texts),
        tool_calls=calls,
        usage=Usage(input_tokens=answer.usage.input_tokens, output_tokens=answer.usage.output_tokens),
        finish_reason=answer.finish_reason,
        notes=_notes(answer),
    )


def _args(args: object) -> object:
    """Arguments as a map; none at all are an empty one; text that is no JSON object stays text."""
    if not args:
        return {}
    if not isinstance(args, str):
        return args
    try:
        value: object = from_json(args, allow_inf_nan=False)
    except ValueError:
        return args
    return value if is_map(value) else args


def _notes(answer: theirs.ModelResponse) -> dict[str, object]:
    """``{provider_name?, provider_url?, parts}`` in the library's own words; empty if there is no need.

    ``parts`` has one entry a part, in order. Text and arguments are not repeated: a hook may take a secret out of the
    message, and a copy here would keep it.
    """
    parts: list[dict[str, object]] = []
    for part in answer.parts:
        kept = {key: value for key in _GO_BACK if (value := getattr(part, key, None)) is not None}
        if isinstance(part, theirs.ThinkingPart):
            kept["content"] = part.content
        parts.append({"part_kind": part.part_kind, **kept})
    if all(len(part) == 1 for part in parts):
        return {}
    source = {"provider_name": answer.provider_name, "provider_url": answer.provider_url}
    known = {key: value for key, value in source.items() if value is not None}
    return to_jsonable_python({**known, "parts": parts}, bytes_mode="base64", inf_nan_mode="strings")
