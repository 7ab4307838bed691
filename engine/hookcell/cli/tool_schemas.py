"""Schemas of tools' arguments from a file: OpenAI's ``tools`` list, or a map from names to schemas."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hookcell.schemas import Schema, SchemaInvalid, compile_schema
from hookcell.shapes import is_list, is_map
from hookcell_sandbox.guest_text import escape

from .errors import Misused
from .json_files import read_json

__all__ = ["tool_schemas"]


def tool_schemas(path: Path) -> dict[str, Schema]:
    """Schemas by tool name.

    The file holds ``[{type: "function", function: {name, parameters}}]``, the same without the ``function`` around it,
    ``{tools: …}``, or ``{name: schema}``. A tool without parameters takes an empty object or anything in it.

    Raises:
        Misused: The file is not there or not of such a shape, or a schema is none.
    """
    document = read_json(path)
    if is_map(document) and is_list(document.get("tools")):
        document = document["tools"]
    shown = escape(str(path))
    if is_list(document):
        named = _listed(document, shown)
    elif is_map(document):
        named = iter(document.items())
    else:
        raise Misused(f"{shown} holds no tools; give OpenAI's tools list, or a map from tool names to JSON Schemas")
    found: dict[str, Schema] = {}
    for name, schema in named:
        if name in found:
            raise Misused(f"{shown} has two tools called '{escape(name)}'; keep one")
        try:
            found[name] = compile_schema(schema, hostile=False)
        except SchemaInvalid as error:
            raise Misused(f"{shown}: the schema of tool '{escape(name)}' is none: {error}") from error
    return found


def _listed(tools: list[object], shown: str) -> Iterator[tuple[str, object]]:
    for index, each in enumerate(tools):
        function = each.get("function", each) if is_map(each) else None
        if not is_map(function) or not isinstance(name := function.get("name"), str):
            raise Misused(f"{shown}: item {index} is no tool; one is {{type, function: {{name, parameters}}}}")
        yield name, function.get("parameters", {"type": "object"})
