"""The shipped hooks as modules: admitted, importing nothing, and sound on contexts that no host would send."""

from __future__ import annotations

import json

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookcell_sandbox.admission import AdmissionPolicy, admit

from .shipped import GUESTS, NAMES, WASM, entry_of

POLICY = AdmissionPolicy(entry_points=frozenset({"pre_tool_call", "post_tool_call"}))
MALFORMED = {"error": {"name": "ContextMalformed", "message": "the context is not well-formed msgpack"}}


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_module_is_admitted_and_imports_nothing(name: str) -> None:
    """ABI: no imports, no start section, one memory, hook_alloc, at least one point, a manifest."""
    wasm = WASM[name].read_bytes()
    report = admit(wasm, POLICY)
    module = GUESTS[name].module

    assert report.findings == ()
    assert list(module.imports) == []
    assert {export.name for export in module.exports} - POLICY.entry_points == {"memory", "hook_alloc", "hook_log"}
    assert report.manifest is not None
    manifest = json.loads(report.manifest)
    assert (manifest["abi"], manifest["name"]) == (1, name)
    assert len(wasm) < 12_288


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("what", "raw"),
    [
        ("nothing", b""),
        ("a truncated map", b"\x82\xa6result"),
        ("a string of 4 GiB less one", b"\x82\xa1a\xdb\xff\xff\xff\xff\xa1b\x01"),
        ("bytes of 4 GiB less one", b"\x82\xa1a\xc6\xff\xff\xff\xff\xa1b\x01"),
        ("a list of 4 G items", b"\x82\xa1a\xdd\xff\xff\xff\xff\xa1b\x01"),
        ("a map of 4 G pairs", b"\xdf\xff\xff\xff\xff\xa1a\x01"),
        ("a map of 2 G pairs", b"\x82\xa1a\xdf\x80\x00\x00\x00\xa1b\x01"),
        ("an extension type", b"\x82\xa1a\xd4\x01\x00\xa1b\x01"),
        ("the byte msgpack never uses", b"\x82\xa1a\xc1\xa1b\x01"),
        ("a key that is no string", b"\x81\x01\x01"),
        ("list heads without end", b"\x82\xa1a" + b"\xdd\x00\x00\x00\x01" * 500),
    ],
)
def test_a_malformed_context_is_an_error_and_not_a_trap(name: str, what: str, raw: bytes) -> None:
    assert GUESTS[name].call_raw(entry_of(name), raw).outcome == MALFORMED, what


@pytest.mark.parametrize("raw", [b"\xc0", b"\x01", b"\xa1a", b"\x90", b"\x80", b"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"])
def test_a_context_without_fields_decides_nothing(raw: bytes) -> None:
    assert GUESTS["redact"].call_raw("post_tool_call", raw).outcome is None
    for name in ("guard", "defaults"):
        outcome = GUESTS[name].call_raw("pre_tool_call", raw).outcome
        assert outcome == {"error": {"name": "ContextInvalid", "message": "toolName is not a string"}}


@pytest.mark.parametrize(("levels", "fits"), [(64, True), (65, False)])
def test_a_result_may_be_nested_64_deep(levels: int, fits: bool) -> None:
    """ABI: nesting at most 64."""
    raw = msgpack.packb({"result": {"result": "?"}})[:-2] + b"\x91" * levels + b"\xa6a@b.co"
    outcome = GUESTS["redact"].call_raw("post_tool_call", raw).outcome
    assert (outcome != MALFORMED) is fits


@pytest.mark.parametrize("name", NAMES)
def test_a_context_cut_at_any_byte_never_traps(name: str) -> None:
    raw = msgpack.packb(
        {
            "toolName": "find_books",
            "args": {"amount": 3, "text": "x" * 40},
            "result": {"result": {"mail": "a@b.co", "list": [1, 2.5, None, True, 2**40]}},
            "config": {"rules": [{"tool": "find_*", "args": {"limit": 5}}], "deny": [{"tool": "find_*"}]},
        }
    )
    whole = GUESTS[name].call_raw(entry_of(name), raw).outcome
    assert whole is not None
    assert "error" not in whole
    for cut in range(len(raw)):
        outcome = GUESTS[name].call_raw(entry_of(name), raw[:cut]).outcome
        assert outcome in (MALFORMED, whole), cut


@pytest.mark.parametrize("name", NAMES)
def test_any_bytes_at_all_never_trap(name: str) -> None:
    @given(st.binary(max_size=200))
    def never_trap(raw: bytes) -> None:
        GUESTS[name].call_raw(entry_of(name), raw)

    never_trap()


@pytest.mark.parametrize("name", NAMES)
def test_hook_alloc_says_0_when_there_is_no_room(name: str) -> None:
    for wanted in (2**24, 2**31, 2**32 - 1):
        assert GUESTS[name].alloc(wanted) == 0
    assert GUESTS[name].alloc(2**23) != 0
