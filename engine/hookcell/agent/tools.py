"""Tools of an agent: what the model may call, and how one is run."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self, cast

import anyio.to_thread
import pydantic
from pydantic_core import to_json, to_jsonable_python

from hookcell.crossing import encode_value
from hookcell.schemas import Schema, tool_schema
from hookcell.shapes import is_map
from hookcell.tool_result import ToolCall
from hookcell.values import copied

from .models import ToolDefinition

__all__ = ["Guardrail", "Tool", "ToolContext", "ToolOutput", "call_host_code", "define_tool", "json_value", "run_tool"]

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")

Guardrail = Callable[[ToolCall, dict[str, object]], "str | Awaitable[str | None] | None"]
"""The host's own check of a call and its final arguments: a reason refuses the call (``refused``), None lets it be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a tool may know of the run that calls it.

    Attributes:
        call_id: The model's id of the call.
        agent_name: The agent that made it.
        session_id: The run's session.
        metadata: The run's free bag, live.
        data: The caller's own.
    """

    call_id: str
    agent_name: str
    session_id: str
    metadata: dict[str, object] = field(repr=False)
    data: Any = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """What a tool, or a middleware in its place, answered (C9).

    Attributes:
        content: Any JSON value.
        is_error: Whether the model is told so: the recoverable way to say no.
    """

    content: object
    is_error: bool = False

    @classmethod
    def of(cls, value: object) -> Self:
        """From what a middleware returned: an output, ``{content, isError?}`` or a string.

        Raises:
            TypeError: It is none of these.
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls(content=value)
        if is_map(value) and "content" in value and value.keys() <= {"content", "isError"}:
            is_error = value.get("isError", False)
            if not isinstance(is_error, bool):
                raise TypeError(f"isError of a tool middleware's answer is true or false, not {is_error!r}")
            return cls(content=value["content"], is_error=is_error)
        raise TypeError(f"a tool middleware answers with {{content, isError?}} or a string, not {type(value).__name__}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool, ready to be called. Made by `define_tool`.

    Attributes:
        name: What the model calls it by.
        description: For the model.
        schema: Of its arguments.
        execute: The host's function.
        wants_context: Whether it takes a `ToolContext` as its second argument.
        model: The pydantic model of its arguments, if that is what it was defined by; ``execute`` gets an instance.
        needs_approval: Whether a human must approve a call; may depend on the final arguments (P15).
        guardrails: Checks after the permission rules (P3).
    """

    name: str
    description: str
    schema: Schema = field(repr=False)
    execute: Callable[..., Any] = field(repr=False)
    wants_context: bool = False
    model: type[pydantic.BaseModel] | None = None
    needs_approval: bool | Callable[[Any], bool | Awaitable[bool]] = False
    guardrails: tuple[Guardrail, ...] = ()

    def definition(self) -> ToolDefinition:
        """It as the model is told."""
        parameters = cast("dict[str, object]", copied(self.schema.document))
        return ToolDefinition(name=self.name, description=self.description, parameters=parameters)

    def given(self, args: Mapping[str, object]) -> Any:
        """The arguments as ``execute`` takes them: an instance of the model, or a copy of the map."""
        # As JSON, like the validation itself: a strict model takes a date as the string it is on the wire.
        return self.model.model_validate_json(to_json(args)) if self.model else copied(args)


def define_tool(
    name: str,
    description: str = "",
    *,
    input: object,  # noqa: A002 the seed's word
    execute: Callable[..., Any],
    needs_approval: bool | Callable[[Any], bool | Awaitable[bool]] = False,
    guardrails: Sequence[Guardrail] = (),
) -> Tool:
    """Define a tool.

    Args:
        name: 1 to 64 letters, digits, ``_`` and ``-``, as models take it.
        description: For the model.
        input: The arguments: a pydantic model class, or a JSON Schema object. Its validators run more than once, after
            each hook that rewrites the arguments and before execution: what they give must pass them unchanged.
        execute: Takes the arguments, validated and as hooks left them: an instance of the model class, or a dict; and,
            if it has a second parameter without a default, a `ToolContext`. Plain functions run in a worker thread.
            What it returns is turned into JSON as pydantic does; what it raises becomes a tool error that the model
            sees.
        needs_approval: True, or a function of the arguments.
        guardrails: See `Guardrail`.

    Raises:
        ValueError: The name does not do.
        SchemaInvalid: ``input`` is neither.
        TypeError: ``execute`` takes no argument, or more than two, or needs one by its name.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"tool name {name!r} does not do; use 1 to 64 letters, digits, _ and -")
    model = input if isinstance(input, type) and issubclass(input, pydantic.BaseModel) else None
    return Tool(
        name=name,
        description=description,
        schema=tool_schema(cast("object", input)),
        execute=execute,
        wants_context=_takes_two(name, execute),
        model=model,
        needs_approval=needs_approval,
        guardrails=tuple(guardrails),
    )


async def run_tool(tool: Tool, args: Mapping[str, object], context: ToolContext) -> ToolOutput:
    """Run a tool.

    Raises:
        Exception: Whatever it raises; and `json_value`'s, when what it returned is no JSON.
    """
    given = tool.given(args)
    arguments = (given, context) if tool.wants_context else (given,)
    if _is_async(tool.execute):
        value = await tool.execute(*arguments)
    else:
        value = await anyio.to_thread.run_sync(tool.execute, *arguments)
        if inspect.isawaitable(value):
            value = await value
    if isinstance(value, ToolOutput):
        return ToolOutput(content=json_value(value.content), is_error=value.is_error)
    return ToolOutput(content=json_value(value))


def json_value(value: object) -> object:
    """It as JSON, as pydantic makes it.

    Raises:
        ValueError: It cannot be, or is no JSON that a guest could be shown: a NaN, a lone surrogate, a number over 64
            bits. Let through, it would be the guests' failure in this turn and, where it stays in the conversation, in
            each that follows.
    """
    value = to_jsonable_python(value)
    encode_value(value, "/result")
    return value


async def call_host_code(function: Callable[..., Any], *arguments: object) -> Any:
    """Call the host's own function in place, plain or ``async``."""
    value = function(*arguments)
    return (await value) if inspect.isawaitable(value) else value


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _takes_two(name: str, execute: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(execute).parameters.values()
    except ValueError:
        return False  # a builtin without a signature: the arguments alone
    positional = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    needed = [each for each in positional if each.default is each.empty]
    variadic = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    by_name = [each for each in parameters if each.kind is each.KEYWORD_ONLY and each.default is each.empty]
    if len(needed) > 2 or by_name or (not positional and not variadic):
        raise TypeError(
            f"execute of tool {name!r} takes {len(needed) + len(by_name)} arguments; it is called with the tool's "
            "arguments, and a ToolContext if it has a second parameter, both by position"
        )
    return len(needed) == 2
