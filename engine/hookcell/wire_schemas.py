"""JSON Schemas of every context, every outcome and the manifest, made from the table of points.

``python -m hookcell.wire_schemas`` writes ``guest_sdk/schema``, with ``--types`` the declarations of the TypeScript
SDK (`wire_types`); ``--check`` writes nothing and fails, by name, where a file is not what would be written. Each
schema stands alone: draft 2020-12, local references only. What none can say is in ``guest_sdk/schema/README.md``.

Source: guest_sdk/ABI.md, "Context", "Outcome" and "Manifest".
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Final, cast, get_args

from .crossing import CONTEXT_DEPTH
from .manifest import NAME_CHARACTERS, NEEDS, StorageScope
from .outcomes import EVENTS, PATCH_OPERATIONS
from .points import DECIDING_KEYS, ON_REQUEST_FIELDS, POINTS, Point, field_names
from .shapes import is_list, is_map
from .wire_shapes import ANY, BAG, SHAPES, STRING, JsonSchema, any_of, described, field, listing, mapping, one_of, shape
from .wire_types import declarations

__all__ = ["context_schema", "documents", "main", "manifest_schema", "outcome_schema"]

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def context_schema(point: Point) -> JsonSchema:
    """The context of a point.

    Only ``point`` is required: a field that a hook does not need, or that the host has no value for, is not there. A
    host of a later version may add fields, so further ones are no fault.
    """
    names = (*point.fields, *ON_REQUEST_FIELDS, "config", "storage")
    fields = {name: field(point, name) for name in names}
    body = mapping(properties={"point": {"const": point.name}, **fields}, required="point")
    return _document(f"Context of {point.name}", body)


def outcome_schema(point: Point) -> JsonSchema:
    """The outcome of a point: every key that may stand there, ``events`` as in a streamed run."""
    body: JsonSchema = {
        "type": "object",
        "propertyNames": {"enum": sorted(point.keys)},
        # At most one key that decides.
        "allOf": [{"not": {"required": [*pair]}} for pair in combinations(sorted(DECIDING_KEYS & point.keys), 2)],
        "if": {"required": ["error"]},
        "then": {"properties": {"error": shape("ThrownError")}},
        "else": {"properties": {key: _outcome_key(key, point) for key in sorted(point.keys - {"error"})}},
    }
    if not body["allOf"]:
        del body["allOf"]
    return _document(f"Outcome of {point.name}", body)


def manifest_schema() -> JsonSchema:
    """The module's section ``hookcell``, as JSON."""
    line = {"type": "string", "maxLength": NAME_CHARACTERS}
    needs = listing(one_of(["*", *sorted(field_names())]), NEEDS)
    body = mapping(
        properties={
            "abi": described("The version of the ABI.", {"type": "integer", "const": 1}),
            "name": described("The hook's name for itself.", line),
            "version": line,
            "needs": described(
                "Context fields it asks for; `*` is every ordinary one; absent = every ordinary one.", needs
            ),
            "storage": described("Whose storage it wants.", one_of(get_args(StorageScope))),
            "config": described("JSON Schema of its config: at most 16 KiB, local references only, no recursion.", BAG),
            "sdk": described("What built it.", line),
        }
    )
    return _document("Manifest", body)


def documents() -> dict[str, JsonSchema]:
    """Every schema, by the name of its file."""
    schemas: dict[str, JsonSchema] = {}
    for name, point in POINTS.items():
        schemas[f"{name}.context.json"] = context_schema(point)
        schemas[f"{name}.outcome.json"] = outcome_schema(point)
    return {**schemas, "manifest.json": manifest_schema()}


def _outcome_key(key: str, point: Point) -> JsonSchema:
    schemas: dict[str, JsonSchema] = {
        "deny": described("The reason, for the model; an empty one denies too.", STRING),
        "result": described("The result; null is one.", ANY),
        "input": described("The arguments, whole.", BAG),
        "storage": described("The hook's new value; null empties it; only with storage in the manifest.", ANY),
        "events": described("Only where the context says `streaming: true`.", listing(shape("Event"), EVENTS)),
        "meta": described("Notes for the turn's result.", BAG),
    }
    if key == "patch":
        return listing(_operation(point), PATCH_OPERATIONS)
    return _replacement(point) if key == "replace" else schemas[key]


def _replacement(point: Point) -> JsonSchema:
    return {
        "before_prompt": described("The prompt, for this turn.", STRING),
        "before_tool": shape("ReplacedCall"),
        "after_tool": any_of(described("The text; the error mark stays.", STRING), shape("ToolOutput")),
        "after_response": described("The response.", STRING),
        "on_error": described("The turn's output; null is a value.", ANY),
    }[point.name]


def _operation(point: Point) -> JsonSchema:
    """One operation of a patch: RFC 6902, confined to the fields that the point lets a hook write to."""
    roots = "|".join(sorted(point.patch_roots))
    operation = mapping(
        properties={
            "op": one_of(["add", "remove", "replace"]),
            "path": {
                "type": "string",
                "pattern": f"^/(?:{roots})(?:/(?:[^/~]|~[01])*){{0,{CONTEXT_DEPTH - 1}}}$",
            },
            "value": ANY,
        },
        required="op path",
    )
    removes = {"properties": {"op": {"const": "remove"}}}
    return {**operation, "anyOf": [removes, {"required": ["value"]}]}


def _document(title: str, body: JsonSchema) -> JsonSchema:
    """A whole schema: with the shapes it speaks of, and those that these speak of."""
    wanted: set[str] = set()
    left = _names(body)
    while left:
        name = left.pop()
        if name not in wanted:
            wanted.add(name)
            left |= _names(SHAPES[name])
    document = {"$schema": _DIALECT, "title": f"{title} (guest ABI 1)", **body}
    return document | ({"$defs": {name: SHAPES[name] for name in SHAPES if name in wanted}} if wanted else {})


def _names(schema: object) -> set[str]:
    """The shapes that a schema refers to."""
    if is_list(schema):
        return set[str]().union(*map(_names, schema))
    if not is_map(schema):
        return set()
    own = {cast("str", schema["$ref"]).rpartition("/")[2]} if "$ref" in schema else set[str]()
    return own.union(*map(_names, schema.values()))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Returns the exit code: 0, or 1 with the stale files on standard error."""
    parser = argparse.ArgumentParser(prog="python -m hookcell.wire_schemas", description="Write guest_sdk/schema.")
    parser.add_argument("--types", action="store_true", help="the TypeScript types instead")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail where a file is not what it should be"
    )
    chosen = parser.parse_args(arguments)
    root = Path(__file__).resolve().parents[2] / "guest_sdk"
    if not root.is_dir():
        print("no guest_sdk here: this runs in a checkout of the project", file=sys.stderr)  # noqa: T201 a command
        return 1
    if chosen.types:
        files = {root / "languages/typescript/hookcell.d.ts": declarations()}
    else:
        files = {root / "schema" / name: _text(schema) for name, schema in documents().items()}
    if not chosen.check:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        return 0
    stale = [path.name for path, text in files.items() if not path.is_file() or path.read_text("utf-8") != text]
    if stale:
        command = "python -m hookcell.wire_schemas" + (" --types" if chosen.types else "")
        print(f"stale: {', '.join(stale)}; run {command}", file=sys.stderr)  # noqa: T201 a command
    return 1 if stale else 0


def _text(schema: JsonSchema) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
