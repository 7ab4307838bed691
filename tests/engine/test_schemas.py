"""Schemas: validation with defaults (SEMANTICS P6), and the bounds on a module's config schema (SEMANTICS G2)."""

from __future__ import annotations

import copy
import datetime as dt
import json
from typing import Any

import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookcell.schema_bounds import SCHEMA_BYTES, SCHEMA_DEPTH, SCHEMA_PARTS, SCHEMA_PATTERNS
from hookcell.schemas import Schema, SchemaInvalid, SchemaMismatch, compile_schema, tool_schema
from hookcell_sandbox.guest_text import escape


def hostile(schema: Any) -> Schema:
    return compile_schema(schema, hostile=True)


def refused(schema: Any) -> SchemaInvalid:
    with pytest.raises(SchemaInvalid) as caught:
        hostile(schema)
    assert len(str(caught.value)) < 700
    assert escape(str(caught.value), characters=1_000) == str(caught.value)
    return caught.value


def mismatch(schema: Schema, value: Any) -> SchemaMismatch:
    with pytest.raises(SchemaMismatch) as caught:
        schema.validate(value)
    assert len(str(caught.value)) < 700
    assert escape(str(caught.value), characters=1_000) == str(caught.value)
    return caught.value


# Validation and defaults


def test_a_value_that_fits_comes_back_and_one_that_does_not_is_named_by_its_path() -> None:
    schema = hostile({"type": "object", "properties": {"a/b": {"items": {"type": "string"}}}, "required": ["a/b"]})
    assert schema.validate({"a/b": ["x"], "c": 1}) == {"a/b": ["x"], "c": 1}
    assert mismatch(schema, {"a/b": ["x", 1]}).path == "/a~1b/1"
    assert mismatch(schema, {}).path == ""


def test_an_error_about_a_huge_value_is_short() -> None:
    mismatch(hostile({"enum": ["y" * 10_000]}), "\x1b" + "x" * 1_000_000)


DEFAULTS = {
    "type": "object",
    "properties": {
        "limit": {"type": "integer", "default": 10},
        "tags": {"default": ["a"]},
        "inner": {"properties": {"deep": {"default": None}}},
        "by_reference": {"$ref": "#/$defs/part"},
        "list": {"items": {"properties": {"n": {"default": 1}}}},
        "pair": {"prefixItems": [{"properties": {"p": {"default": 2}}}]},
    },
    "allOf": [{"properties": {"from_all": {"default": True}}}],
    "additionalProperties": {"properties": {"other": {"default": 3}}},
    "required": ["limit"],
    "$defs": {"part": {"properties": {"x": {"default": "y"}}}},
}


@pytest.mark.parametrize(
    ("value", "more"),
    [
        ({}, {}),
        ({"limit": 5, "tags": None}, {"limit": 5, "tags": None}),
        ({"inner": {}}, {"inner": {"deep": None}}),
        ({"inner": 1}, {"inner": 1}),
        ({"by_reference": {"z": 0}}, {"by_reference": {"z": 0, "x": "y"}}),
        ({"list": [{}, {"n": 2}, 3]}, {"list": [{"n": 1}, {"n": 2}, 3]}),
        ({"pair": [{}, {}]}, {"pair": [{"p": 2}, {}]}),
        ({"unknown": {}}, {"unknown": {"other": 3}}),
    ],
)
def test_absent_properties_get_their_defaults_and_the_value_given_is_left_alone(value: Any, more: Any) -> None:
    """SEMANTICS P6."""
    for schema in (hostile(DEFAULTS), compile_schema(DEFAULTS, hostile=False)):
        before = copy.deepcopy(value)
        assert schema.validate(value) == {"limit": 10, "tags": ["a"], "from_all": True} | more
        assert value == before


def test_a_default_is_a_new_value_each_time_and_is_checked() -> None:
    schema = hostile(DEFAULTS)
    first: Any = schema.validate({})
    first["tags"].append("b")
    assert schema.validate({}) == {"limit": 10, "tags": ["a"], "from_all": True}
    assert mismatch(hostile({"properties": {"a": {"type": "string", "default": 1}}}), {}).path == "/a"


def test_a_condition_fills_nothing_in() -> None:
    branch = {"properties": {"a": {"default": 1}}}
    schema = hostile({"anyOf": [branch], "oneOf": [branch], "if": branch, "then": branch, "not": {"not": branch}})
    assert schema.validate({}) == {}


def test_a_trusted_schema_may_refer_to_itself() -> None:
    schema = compile_schema(
        {"properties": {"next": {"$ref": "#"}, "n": {"default": 1}}, "allOf": [{"$ref": "#"}]}, hostile=False
    )
    assert schema.validate({"next": {}}) == {"next": {"n": 1}, "n": 1}
    deep: Any = {}
    for _ in range(2_000):
        deep = {"next": deep}
    mismatch(schema, deep)


@pytest.mark.parametrize("value", [b"x", {1: 2}, {1, 2}, object(), "\ud800", [b"x"]])
def test_a_value_that_is_no_json_does_not_fit(value: Any) -> None:
    mismatch(hostile({"items": {"type": "string"}, "minLength": 1, "type": ["string", "array", "object"]}), value)


# A module's schema


@pytest.mark.parametrize(
    "schema", [None, True, [], "x", 1, {"type": "strin"}, {"required": "a"}, {"minimum": float("nan")}]
)
def test_what_is_no_schema_is_refused(schema: Any) -> None:
    refused(schema)


@pytest.mark.parametrize("pattern", ["(?=a)b", "(?!a)b", "(?<=a)b", r"(a)\1", "(?>a)", "(", "(a{1000}){1000}"])
def test_a_pattern_that_cannot_run_in_linear_time_is_refused(pattern: str) -> None:
    """SEMANTICS G2."""
    refused({"pattern": pattern})
    refused({"patternProperties": {pattern: {}}})


def test_a_pattern_that_hangs_a_backtracking_engine_runs() -> None:
    """SEMANTICS G2: 2^100,000 steps for a backtracking engine."""
    mismatch(hostile({"pattern": "^(a+)+$"}), "a" * 100_000 + "b")


def test_a_trusted_patterns_backtracking_is_bounded() -> None:
    schema = compile_schema({"pattern": "^(?=a)((a+)+)\\2$"}, hostile=False)
    mismatch(schema, "a" * 2_000 + "b")


@pytest.mark.parametrize(
    "reference",
    [
        "http://localhost:9/x",
        "file:///etc/passwd",
        "other.json",
        "urn:x",
        "#anchor",
        "#/nope",
        "#/$defs/a/x",
        "#/%24defs/a",
        "",
    ],
)
def test_only_references_into_the_schema_itself_are_followed(reference: str) -> None:
    """SEMANTICS G2."""
    assert refused({"properties": {"x": {"$ref": reference}}, "$defs": {"a": {}}}).path == "/properties/x/$ref"


def test_a_trusted_schema_fetches_nothing_either() -> None:
    with pytest.raises(SchemaInvalid):
        compile_schema({"$ref": "http://localhost:9/x"}, hostile=False)


@pytest.mark.parametrize("keyword", ["$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef"])
def test_a_keyword_that_moves_references_elsewhere_is_refused(keyword: str) -> None:
    assert refused({"properties": {"a": {keyword: "x"}}}).path == f"/properties/a/{keyword}"
    hostile({"properties": {keyword: {"type": "string"}, "$ref": {"type": "string"}}})  # the name of a property


def test_the_drafts_in_use_are_known_and_no_other() -> None:
    hostile({"$schema": "http://json-schema.org/draft-07/schema#"})
    hostile({"$schema": "https://json-schema.org/draft/2020-12/schema"})
    assert refused({"$schema": "http://json-schema.org/draft-04/schema#"}).path == "/$schema"
    assert refused({"$schema": 1}).path == "/$schema"


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"properties": {"next": {"$ref": "#"}}},
        {"$defs": {"a": {"items": {"$ref": "#/$defs/b"}}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}},
    ],
)
def test_a_modules_schema_does_not_refer_to_itself(schema: Any) -> None:
    """With recursion the cost of a check is exponential in the value's depth."""
    assert "refers to itself" in refused(schema).reason


@pytest.mark.parametrize("keyword", ["unevaluatedProperties", "unevaluatedItems"])
def test_what_doubles_the_work_at_each_level_is_refused(keyword: str) -> None:
    """Twenty levels of it, 1 KB, hang the validator for a minute."""
    schema: Any = {"type": "object"}
    for _ in range(20):
        schema = {"anyOf": [schema], keyword: {"type": "integer"}}
    assert refused(schema).path == f"/{keyword}"
    assert refused({"items": {keyword: False}}).path == f"/items/{keyword}"


def doubling(levels: int) -> Any:
    """Definitions that each refer twice to the next: 2^levels steps for a validator."""
    twice = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": twice | {f"d{levels}": {"type": "integer"}}}


def test_references_that_double_are_refused_by_their_size_written_out() -> None:
    hostile(doubling(5))
    schema = doubling(18)
    assert len(json.dumps(schema)) < SCHEMA_BYTES
    assert "parts with its references written out" in refused(schema).reason


def test_bytes_are_met_and_not_passed() -> None:
    room = SCHEMA_BYTES - len('{"title":""}')
    hostile({"title": "x" * room})
    assert "16_385 bytes (limit 16_384)" in refused({"title": "x" * (room + 1)}).reason


def test_depth_is_met_and_not_passed() -> None:
    def schema(depth: int) -> Any:
        made: Any = {}
        for _ in range(depth - 1):
            made = {"not": made}
        return made

    hostile(schema(SCHEMA_DEPTH))
    assert "more than 64 deep" in refused(schema(SCHEMA_DEPTH + 1)).reason
    assert "more than 64 deep" in refused(schema(100_000)).reason
    chain = {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(400)}
    assert "more than 64 deep" in refused({"$defs": chain | {"d400": {}}}).reason


def test_parts_are_met_and_not_passed() -> None:
    hostile({"x": [{}] * (SCHEMA_PARTS - 2)})
    assert "more than 4_000 parts" in refused({"x": [{}] * (SCHEMA_PARTS - 1)}).reason


def test_patterns_are_met_and_not_passed() -> None:
    def schema(count: int) -> Any:
        return {"pattern": "a", "patternProperties": {f"p{n}": {} for n in range(count - 1)}}

    hostile(schema(SCHEMA_PATTERNS))
    assert "more than 50 patterns" in refused(schema(SCHEMA_PATTERNS + 1)).reason


WORDS = """
    type properties required items prefixItems allOf anyOf oneOf not if then else enum const pattern minimum multipleOf
    maxLength additionalProperties patternProperties propertyNames contains minContains uniqueItems dependentSchemas
    dependentRequired unevaluatedProperties unevaluatedItems $ref $defs $schema $id default format x
"""
KEYWORDS = st.sampled_from(WORDS.split())
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["string", "object", "array", "#", "#/$defs/x", "^a+$", "(", "date"])
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYWORDS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(schema=st.dictionaries(KEYWORDS, JSON, max_size=5), value=JSON, trusted=st.booleans())
def test_any_schema_and_value_give_a_value_or_the_declared_errors(schema: Any, value: Any, trusted: bool) -> None:
    before = copy.deepcopy((schema, value))
    try:
        compile_schema(schema, hostile=not trusted).validate(value)
    except (SchemaInvalid, SchemaMismatch) as error:
        shown = str(error)
    else:
        shown = ""
    assert escape(shown, characters=1_000) == shown
    assert repr((schema, value)) == repr(before)


# Tools


class Search(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True, extra="forbid")

    query: str = pydantic.Field(alias="q")
    since: dt.date | None = None
    limit: int = 10

    @pydantic.computed_field
    @property
    def shout(self) -> str:
        return self.query.upper()


def test_a_models_arguments_become_its_dump_by_alias_with_defaults() -> None:
    """SEMANTICS P6. A strict model takes a date as the string it is in JSON."""
    schema = tool_schema(Search)
    dumped = schema.validate({"q": "a", "since": "2024-05-15"})
    assert dumped == {"q": "a", "since": "2024-05-15", "limit": 10}
    assert schema.validate(dumped) == dumped  # validated again after the next hook, computed field or not
    assert "q" in schema.document["properties"]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({}, "/q"),
        ({"q": 1}, "/q"),
        ({"q": "a", "limit": "10"}, "/limit"),
        ({"q": "a", "x": 1}, "/x"),
        ([], ""),
        (b"\xff", ""),
        ({"q": object()}, ""),
    ],
)
def test_a_models_mismatch_names_the_first_fault(value: Any, path: str) -> None:
    assert mismatch(tool_schema(Search), value).path == path


def test_a_tool_may_give_json_schema_and_nothing_else() -> None:
    assert tool_schema({"properties": {"a": {"default": 1}}}).validate({}) == {"a": 1}
    for source in (None, int, Search(q="a"), "string"):
        with pytest.raises(SchemaInvalid):
            tool_schema(source)


def test_a_path_is_short_however_many_long_keys_it_has() -> None:
    """It stands in an error that goes to the model (P6): sixty keys of two hundred characters, each escaped, do not."""
    value: object = "x"
    for number in range(60):
        value = {chr(0xE000 + number) * 200: value}
    down = {"$ref": "#/$defs/map"}
    schema = {"$defs": {"map": {"type": "object", "additionalProperties": down}}, **down}
    mismatch(compile_schema(schema, hostile=False), value)
    nested: dict[str, object] = {"$ref": "#/nowhere"}
    for number in range(30):
        nested = {chr(0xE000 + number) * 180: nested}
    refused(nested)
