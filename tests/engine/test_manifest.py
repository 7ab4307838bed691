"""The manifest: what a module says of itself, and what of that is refused (guest_sdk/ABI.md; SEMANTICS G2 to G4)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookcell.manifest import Manifest, ManifestInvalid, fields_for, manifest_findings, parse_manifest
from hookcell.points import ON_REQUEST_FIELDS, POINTS, field_names
from hookcell_sandbox.guest_text import escape
from hookcell_sandbox.limits import ModuleLimits

PRE = POINTS["pre_tool_call"]


def raw(**keys: Any) -> bytes:
    return json.dumps(keys).encode()


def codes(section: bytes) -> list[str]:
    findings = manifest_findings(section)
    assert all(escape(str(finding), characters=1_000) == str(finding) for finding in findings)
    if findings:
        with pytest.raises(ManifestInvalid) as caught:
            parse_manifest(section)
        assert caught.value.findings == tuple(findings)
    else:
        parse_manifest(section)
    return [finding.code for finding in findings]


def test_no_section_and_an_empty_one_give_the_defaults() -> None:
    assert parse_manifest(None) == parse_manifest(b"{}") == Manifest()


def test_every_key_is_read_and_unknown_ones_are_kept() -> None:
    section = raw(
        abi=1,
        name="guard",
        version="1.2",
        needs=["args", "now"],
        storage="run",
        config={"type": "object"},
        sdk="c/0.1",
        x=[1],
    )
    assert parse_manifest(section) == Manifest(
        name="guard",
        version="1.2",
        needs=frozenset({"args", "now"}),
        storage="run",
        config={"type": "object"},
        sdk="c/0.1",
        extra={"x": [1]},
    )


@pytest.mark.parametrize(
    "section",
    [
        b"",
        b"{",
        b"not json",
        b"\xff{}",
        b"\xef\xbb\xbf{}",
        b'{"abi": 1, "abi": 1}',
        b'{"x": {"a": 1, "a": 2}}',
        b'{"x": NaN}',
        b'{"x": -Infinity}',
        b'{"x": 1e999}',
        b'{"x": "\\ud800"}',
        b'{"\\udfff": 1}',
        b'{"x": ' + b"9" * 5_000 + b"}",
        b'{"x": ' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    ],
)
def test_what_is_no_strict_json_is_refused(section: bytes) -> None:
    assert codes(section) == ["manifest_json"]


def test_nesting_is_met_and_not_passed() -> None:
    assert codes(b'{"x": ' + b"[" * 63 + b"]" * 63 + b"}") == []
    assert codes(b'{"x": ' + b"[" * 64 + b"]" * 64 + b"}") == ["manifest_json"]


def test_bytes_are_met_and_not_passed() -> None:
    most = ModuleLimits().manifest_bytes
    assert codes(b'{"x": "' + b"a" * (most - 9) + b'"}') == []
    assert codes(b'{"x": "' + b"a" * (most - 8) + b'"}') == ["manifest_json"]


@pytest.mark.parametrize("section", [b"[]", b"null", b'"x"', b"1"])
def test_what_is_no_object_is_refused(section: bytes) -> None:
    assert codes(section) == ["manifest_shape"]


@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ({"abi": 2}, "manifest_abi"),
        ({"abi": 0}, "manifest_abi"),
        ({"abi": "1"}, "manifest_abi"),
        ({"abi": True}, "manifest_abi"),
        ({"abi": 1.0}, "manifest_abi"),
        ({"abi": None}, "manifest_abi"),
        ({"abi": 10**400}, "manifest_abi"),
        ({"name": 1}, "manifest_shape"),
        ({"name": None}, "manifest_shape"),
        ({"version": 1.2}, "manifest_shape"),
        ({"sdk": ["c"]}, "manifest_shape"),
        ({"needs": "args"}, "manifest_needs"),
        ({"needs": None}, "manifest_needs"),
        ({"needs": {"args": True}}, "manifest_needs"),
        ({"needs": ["argz"]}, "manifest_needs"),
        ({"needs": ["point"]}, "manifest_needs"),
        ({"needs": [1]}, "manifest_needs"),
        ({"needs": [[]]}, "manifest_needs"),
        ({"storage": "global"}, "manifest_storage"),
        ({"storage": None}, "manifest_storage"),
        ({"storage": ["run"]}, "manifest_storage"),
        ({"config": True}, "manifest_config"),
        ({"config": None}, "manifest_config"),
        ({"config": {"type": "strin"}}, "manifest_config"),
        ({"config": {"pattern": "(?=a)"}}, "manifest_config"),
        ({"config": {"$ref": "https://example.com/schema"}}, "manifest_config"),
    ],
)
def test_a_wrong_type_or_value_is_a_rejection(keys: dict[str, Any], code: str) -> None:
    assert codes(raw(**keys)) == [code]


def test_every_finding_is_reported_not_only_the_first() -> None:
    assert codes(raw(abi=3, name=0, needs=["a", "args", "b"], storage=1, config=[])) == [
        "manifest_abi",
        "manifest_shape",
        "manifest_needs",
        "manifest_needs",
        "manifest_storage",
        "manifest_config",
    ]


def test_name_length_and_number_of_needs_are_met_and_not_passed() -> None:
    assert codes(raw(name="n" * 100, needs=["args"] * 100)) == []
    assert codes(raw(name="n" * 101, needs=["args"] * 101)) == ["manifest_shape", "manifest_needs"]


def test_without_needs_every_ordinary_field_crosses() -> None:
    """SEMANTICS G4."""
    for point in POINTS.values():
        assert fields_for(Manifest(), point) == point.fields
        assert fields_for(Manifest(needs=frozenset({"*"})), point) == point.fields
        assert not set(fields_for(Manifest(), point)) & set(ON_REQUEST_FIELDS)


def test_needs_narrow_to_exactly_those_fields() -> None:
    """SEMANTICS G4: a field of another point simply does not stand here."""
    assert fields_for(Manifest(needs=frozenset({"args", "prompt"})), PRE) == ("args",)
    assert fields_for(Manifest(needs=frozenset({"args", "prompt"})), POINTS["before_prompt"]) == ("prompt",)
    assert fields_for(Manifest(needs=frozenset()), PRE) == ()


def test_time_and_seed_cross_only_to_a_hook_that_names_them() -> None:
    """SEMANTICS G1, G4."""
    assert fields_for(Manifest(needs=frozenset({"*", "now"})), PRE) == (*PRE.fields, "now")
    assert fields_for(Manifest(needs=frozenset({"seed", "now"})), PRE) == ("now", "seed")


def test_every_name_of_the_table_may_be_needed() -> None:
    assert codes(raw(needs=sorted(field_names() | {"*"}))) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["abi", "name", "version", "needs", "storage", "config", "sdk", "x"])


@settings(deadline=None)
@given(st.binary(max_size=60) | st.dictionaries(KEYS, JSON, max_size=4).map(lambda keys: json.dumps(keys).encode()))
def test_any_bytes_give_a_manifest_or_findings(section: bytes) -> None:
    codes(section)
