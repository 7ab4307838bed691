"""The shapes that contexts and outcomes are made of, as JSON Schema (guest_sdk/ABI.md, "Context" and "Outcome")."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, get_args

from .messages import ROLES
from .outcomes import EVENT_TYPES
from .tool_result import ErrorKind, Origin

if TYPE_CHECKING:
    from .points import Point

__all__ = [
    "ANY",
    "BAG",
    "SHAPES",
    "STRING",
    "JsonSchema",
    "any_of",
    "described",
    "field",
    "listing",
    "mapping",
    "one_of",
    "shape",
]

JsonSchema = dict[str, Any]


def described(description: str, schema: Mapping[str, Any]) -> JsonSchema:
    return {"description": description, **schema}


def mapping(
    description: str = "", properties: Mapping[str, Any] | None = None, required: str = "", *, closed: bool = False
) -> JsonSchema:
    schema: JsonSchema = {"description": description} if description else {}
    schema["type"] = "object"
    if required:
        schema["required"] = required.split()
    if properties is not None:
        schema["properties"] = dict(properties)
    if closed:
        schema["additionalProperties"] = False
    return schema


def listing(items: JsonSchema, most: int | None = None) -> JsonSchema:
    return {"type": "array", "items": items} | ({} if most is None else {"maxItems": most})


def any_of(*schemas: JsonSchema) -> JsonSchema:
    return {"anyOf": list(schemas)}


def one_of(values: Iterable[str]) -> JsonSchema:
    return {"enum": list(values)}


def shape(name: str) -> JsonSchema:
    return {"$ref": f"#/$defs/{name}"}


ANY: Final[JsonSchema] = {}
STRING: Final[JsonSchema] = {"type": "string"}
BOOLEAN: Final[JsonSchema] = {"type": "boolean"}
INTEGER: Final[JsonSchema] = {"type": "integer"}
NUMBER: Final[JsonSchema] = {"type": "number"}
BAG: Final = mapping()
# Its other keys are meant, and not only bound to be passed over.
_OPEN: Final[JsonSchema] = {"additionalProperties": True}

SHAPES: Final[Mapping[str, JsonSchema]] = {
    "ToolCall": mapping("A call of a tool.", {"id": STRING, "name": STRING, "args": ANY}, "id name args"),
    "ContentPart": mapping("A part of a message's content.", {"type": STRING}, "type") | _OPEN,
    "Message": mapping(
        "A message of the conversation.",
        {
            "role": one_of(ROLES),
            "content": any_of(STRING, listing(shape("ContentPart")), {"type": "null"}),
            "toolCalls": described("An assistant message's calls.", listing(shape("ToolCall"))),
            "toolCallId": described("The call that a tool message answers.", STRING),
            "name": STRING,
            "metadata": BAG,
        },
        "role",
    ),
    "Subagent": mapping(
        "The sub-agent that a hook runs inside of.",
        {"agentId": STRING, "agentName": STRING, "depth": INTEGER, "parent": ANY},
        "agentId agentName depth parent",
    ),
    "ToolError": mapping(
        "An error that goes to the model in place of a result.",
        {
            "kind": one_of(get_args(ErrorKind)),
            "message": STRING,
            "hook": described("The hook that caused it, if one did.", STRING),
        },
        "kind message",
    ),
    "SettledCall": mapping(
        "How a tool call was settled.",
        {
            "result": described("The value; null beside an error.", ANY),
            "error": shape("ToolError"),
            "requiresApproval": described("The call waits for a human.", BOOLEAN),
        },
        "result",
    ),
    "ToolResult": mapping(
        "What a tool answered.",
        {"name": STRING, "args": BAG, "output": ANY, "isError": BOOLEAN},
        "name args output isError",
    ),
    "ModelRequest": mapping(
        "What is about to be asked of the model, as far as hooks may see it.",
        {
            "model": {"type": "string", "readOnly": True},
            "temperature": described("From 0 to 10.", NUMBER),
            "topP": described("From 0 to 1.", NUMBER),
            "maxTokens": described("From 1.", INTEGER),
            "stop": described("At most 16 in a list.", any_of(STRING, listing(STRING))),
            "toolChoice": any_of(STRING, BAG),
            "headers": described("Those whose name speaks of no secret.", BAG | {"additionalProperties": STRING}),
        },
    ),
    "TurnError": mapping(
        "What went wrong in the turn.",
        {"name": STRING, "message": STRING, "hook": described("The hook that failed, if one did.", STRING)},
        "name message",
    ),
    "State": mapping(
        "The run's state.",
        {"history": described("The conversation itself; only beside `messages`.", listing(shape("Message")))},
    ),
    "ThrownError": mapping(
        "The hook threw; nothing else of the outcome counts.",
        {"name": STRING, "message": STRING, "stack": {"type": ["string", "null"]}},
        "name message",
        closed=True,
    ),
    "ReplacedCall": mapping(
        "The call, with its own id and name.",
        {"id": STRING, "name": STRING, "args": BAG},
        "id name args",
        closed=True,
    ),
    "ToolOutput": mapping(
        "A whole output; without `isError` the mark stays.",
        {"output": ANY, "isError": BOOLEAN},
        "output",
        closed=True,
    ),
    "Event": mapping("An event for the stream.", {"type": one_of(sorted(EVENT_TYPES))}, "type") | _OPEN,
}
"""Shapes that several schemas, or the TypeScript types, speak of by name."""

# Context fields, by name; those in `_OWN_FIELDS` mean something else at one point.
_FIELDS: Final[Mapping[str, JsonSchema]] = {
    "agentId": described("The agent that is running; may be empty.", STRING),
    "agentName": described("Its name; may be empty.", STRING),
    "sessionId": described("The session; may be empty.", STRING),
    "messages": described("The conversation.", listing(shape("Message"))),
    "metadata": described("A free bag for one run; the model never sees it.", BAG),
    "subagent": described("Set inside a sub-agent only.", shape("Subagent")),
    "state": described("The run's state; `history` is the conversation.", shape("State")),
    "data": described("The caller's own, to read.", ANY),
    "toolCallId": described("The model's id of the call.", STRING),
    "toolName": described("The tool.", STRING),
    "args": described("The arguments as they stand now.", BAG),
    "toolCall": described("The model's own call; it never changes.", shape("ToolCall")),
    "toolSchema": described("JSON Schema of the tool's arguments, where the host has one.", BAG),
    "resumed": described("Whether the call was approved and comes again; only with approvals.", BOOLEAN),
    "origin": described("Who settled the call.", one_of(get_args(Origin))),
    "request": described("The model request.", shape("ModelRequest")),
    "streaming": described("Whether the run is streamed, so that events may be emitted.", BOOLEAN),
    "prompt": described("The agent's system prompt.", STRING),
    "call": described("The call that is about to run.", shape("ToolCall")),
    "response": described("The turn's answer.", STRING),
    "error": described("What leaves the turn.", shape("TurnError")),
    "now": described("Milliseconds since the epoch; only for a hook that needs it.", INTEGER),
    "seed": described("A random whole number; only for a hook that needs it.", INTEGER),
    "config": described("What the host gave the hook, if anything.", ANY),
    "storage": described("The hook's own value, null when there is none yet; only for a hook with storage.", ANY),
}
_OWN_FIELDS: Final[Mapping[tuple[str, str], JsonSchema]] = {
    ("post_tool_call", "args"): described(
        "The arguments as they stand; where the model's own were no map, what it gave.", ANY
    ),
    ("post_tool_call", "result"): described("How the call was settled.", shape("SettledCall")),
    ("post_generate", "request"): described("A copy of the model request.", shape("ModelRequest")),
    ("post_generate", "result"): described("What the model gave.", BAG),
    ("after_tool", "result"): described("What the tool, or a middleware, answered.", shape("ToolResult")),
}


def field(point: Point, name: str) -> JsonSchema:
    """A field of the point's context. Raises ``KeyError`` for one that no point has."""
    return _OWN_FIELDS.get((point.name, name)) or _FIELDS[name]
