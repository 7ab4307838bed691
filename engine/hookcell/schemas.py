"""JSON Schema for tool arguments and hook configs (SEMANTICS P6, G2).

A hostile schema's regular expressions run on an engine whose time is linear in the text; nothing is ever fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, cast

import jsonschema_rs
import pydantic
from pydantic_core import to_json

from hookcell_sandbox.guest_text import escape

from .crossing import pointer
from .schema_bounds import SchemaInvalid, check_bounds, local_target
from .shapes import is_list, is_map
from .values import copied

__all__ = ["Schema", "SchemaInvalid", "SchemaMismatch", "compile_schema", "tool_schema"]

_PATTERN_BYTES: Final = 1024 * 1024
"""One compiled pattern, and as much again while it runs."""

_BACKTRACKS: Final = 100_000
"""Steps back that one match of a trusted schema's pattern may take: a model's text is not trusted."""


class SchemaMismatch(ValueError):
    """The value does not fit; the first fault only. ``path`` is a JSON Pointer into the value."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path or 'the value'}: {reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A schema, compiled once.

    Attributes:
        document: It as JSON Schema.
        check: Gives the value with defaults filled in, or raises `SchemaMismatch`.
    """

    document: dict[str, object]
    check: Callable[[object], object] = field(repr=False)

    def validate(self, value: object) -> object:
        """The value with defaults filled in; the one given is left alone.

        Raises:
            SchemaMismatch: It does not fit.
        """
        return self.check(value)


def compile_schema(schema: object, *, hostile: bool) -> Schema:
    """A JSON Schema, ready to validate.

    ``default`` fills in absent properties of objects before the check, so that what is checked is what will be used.
    Formats are annotations and not checked.

    Args:
        schema: A JSON Schema object; draft 2020-12 unless its ``$schema`` says otherwise.
        hostile: Whether it comes from a module; then the bounds of `schema_bounds` hold, and patterns must run in
            linear time. A trusted schema's patterns may look around, with their backtracking bounded.

    Raises:
        SchemaInvalid: It is no schema, or breaks a bound.
    """
    if not is_map(schema):
        raise SchemaInvalid("", "a schema is a JSON object")
    patterns: Any
    if hostile:
        check_bounds(schema)
        patterns = jsonschema_rs.RegexOptions(size_limit=_PATTERN_BYTES, dfa_size_limit=_PATTERN_BYTES)
    else:
        patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=_BACKTRACKS)
    try:
        validator = jsonschema_rs.validator_for(schema, pattern_options=patterns, validate_formats=False, offline=True)
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        raise SchemaInvalid(_place(error), _reason(error)) from error
    fills = _mentions_default(schema)

    def check(value: object) -> object:
        try:
            filled = _filled(schema, value, schema, frozenset()) if fills else value
            validator.validate(filled)
        except (ValueError, RecursionError) as error:
            raise SchemaMismatch(_place(error), _reason(error)) from error
        return filled

    return Schema(document=schema, check=check)


def tool_schema(source: object) -> Schema:
    """The schema of a tool's arguments, from trusted code.

    Args:
        source: A pydantic model class, whose arguments are validated as JSON and become the model's dump, by alias; or
            a JSON Schema object.

    Raises:
        SchemaInvalid: It is neither.
    """
    if isinstance(source, type) and issubclass(source, pydantic.BaseModel):
        return _model_schema(source)
    return compile_schema(cast("object", source), hostile=False)


def _model_schema(model: type[pydantic.BaseModel]) -> Schema:
    def check(value: object) -> object:
        try:
            # As JSON, so that a strict model takes a date as the string it is on the wire.
            instance = model.model_validate_json(to_json(value))
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            raise SchemaMismatch(pointer(*first["loc"]), escape(first["msg"])) from None
        except ValueError as error:
            raise SchemaMismatch("", _reason(error)) from error
        # round_trip leaves computed fields out: the dump is validated again after the next hook.
        return instance.model_dump(mode="json", by_alias=True, round_trip=True)

    return Schema(document=cast("dict[str, object]", model.model_json_schema(by_alias=True)), check=check)


def _place(error: Exception) -> str:
    return pointer(*error.instance_path) if isinstance(error, jsonschema_rs.ValidationError) else ""


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it nests too deep"
    text = error.message if isinstance(error, jsonschema_rs.ValidationError) else str(error)
    return escape(text)


def _mentions_default(part: object) -> bool:
    if is_map(part):
        return "default" in part or any(_mentions_default(child) for child in part.values())
    return is_list(part) and any(_mentions_default(child) for child in part)


def _filled(part: object, value: object, root: object, above: frozenset[int]) -> object:
    """The value with the defaults of ``part`` in it: a new one where something was filled in, else the same.

    Args:
        part: A subschema.
        value: What it applies to.
        root: The whole schema, for local references.
        above: Ids of the subschemas that are being applied to this same value, so that one that refers to itself ends.
    """
    if not is_map(part) or id(part) in above:
        return value
    above |= {id(part)}
    for each in _same_place(part, root):
        value = _filled(each, value, root, above)
    if is_map(value):
        return _filled_map(part, value, root)
    if is_list(value):
        return _filled_list(part, value, root)
    return value


def _same_place(part: dict[str, object], root: object) -> Iterable[object]:
    """Subschemas that always apply to the same value; what applies under a condition fills nothing in."""
    reference = part.get("$ref")
    if isinstance(reference, str):
        try:
            yield local_target(root, reference)
        except KeyError:
            return  # not local: the validator has it, or refused it
    every = part.get("allOf")
    if is_list(every):
        yield from every


def _filled_map(part: dict[str, object], value: dict[str, object], root: object) -> dict[str, object]:
    named = part.get("properties")
    named = named if is_map(named) else {}
    changes: dict[str, object] = {}
    for name, each in named.items():
        if name in value:
            changes[name] = _filled(each, value[name], root, frozenset())
        elif is_map(each) and "default" in each:
            changes[name] = copied(each["default"])
    if is_map(others := part.get("additionalProperties")):
        changes |= {name: _filled(others, item, root, frozenset()) for name, item in value.items() if name not in named}
    if all(name in value and changed is value[name] for name, changed in changes.items()):
        return value
    return value | changes


def _filled_list(part: dict[str, object], value: list[object], root: object) -> list[object]:
    first = part.get("prefixItems")
    first = first if is_list(first) else []
    rest = part.get("items")
    filled = [
        _filled(first[index] if index < len(first) else rest, item, root, frozenset())
        for index, item in enumerate(value)
    ]
    return value if all(new is old for new, old in zip(filled, value, strict=True)) else filled
