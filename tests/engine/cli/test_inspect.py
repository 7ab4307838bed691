"""``hookcell inspect``: the capability sheet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .small_guests import DEFAULTS, GUARD, REDACT, answering, wasm

if TYPE_CHECKING:
    from .conftest import Cli


def _file(tmp_path: Path, raw: bytes) -> Path:
    path = tmp_path / "hook.wasm"
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize(
    ("hook", "said"),
    [
        (GUARD, ["guard 0.1.0", "pre_tool_call", "toolName, args, config", "deny the call", "allow, deny, limits"]),
        (DEFAULTS, ["defaults 0.1.0", "replace the arguments"]),
        (REDACT, ["redact 0.1.0", "post_tool_call", "see       result, config", "replace the result that the model"]),
    ],
)
def test_the_sheet_says_what_a_hook_can_do_and_never_can(cli: Cli, hook: Path, said: list[str]) -> None:
    ran = cli("inspect", hook)
    assert ran.code == 0
    assert ran.err == ""
    for each in (": admitted", *said, "It can never", "clock", "file", "socket", "imports nothing", "16 MiB"):
        assert " ".join(each.split()) in " ".join(ran.out.split())
    assert "Nothing of it was compiled or run" in ran.out
    assert max(len(line) for line in ran.out.splitlines()) <= 80


def test_a_module_without_a_manifest_sees_every_field(cli: Cli, tmp_path: Path) -> None:
    """SEMANTICS G4."""
    ran = cli("inspect", _file(tmp_path, answering({"pre_generate": {}, "on_error": {}})))
    assert "no manifest" in ran.out
    assert "it names no needs, so every field" in " ".join(ran.out.split())
    assert "edit messages, the system's not" in ran.out


def test_what_a_manifest_asks_for_stands_on_the_sheet(cli: Cli, tmp_path: Path) -> None:
    manifest = {"abi": 1, "name": "asks", "needs": ["args", "now", "seed"], "storage": "session"}
    hook = _file(tmp_path, answering({"pre_tool_call": {}}, manifest))
    text = cli("inspect", hook).out
    assert "args, now, seed, storage" in text
    assert "is told   now and seed" in text
    assert "a value of its own for each session" in text
    sheet = cli("inspect", hook, "--json").json
    assert sheet["points"]["pre_tool_call"]["sees"] == ["args", "now", "seed"]
    assert sheet["manifest"]["storage"] == "session"


def test_a_refused_module_is_told_why_and_what_it_can_do_is_left_out(cli: Cli, tmp_path: Path) -> None:
    ran = cli("inspect", _file(tmp_path, wasm("").replace(b"hook_alloc", b"hook_alloK")))
    assert ran.code == 1
    assert ": refused" in ran.out
    assert "[no_entry_point]" in ran.out
    assert "[missing_hook_alloc]" in ran.out
    assert "It can" not in ran.out


@pytest.mark.parametrize("raw", [b"", b"(module)", b"\x00asm\x01\x00\x00\x00", b"\x00asm\x0d\x00\x01\x00", b"garbage"])
def test_what_is_no_hook_is_refused_whatever_it_is(cli: Cli, tmp_path: Path, raw: bytes) -> None:
    hook = _file(tmp_path, raw)
    assert cli("inspect", hook).code == 1
    sheet = cli("inspect", hook, "--json")
    assert sheet.code == 1
    assert sheet.json["admitted"] is False
    assert all(finding["code"] and finding["what"] for finding in sheet.json["findings"])


def test_the_json_sheet_has_these_keys(cli: Cli) -> None:
    sheet = cli("inspect", GUARD, "--json").json
    assert sorted(sheet) == [
        "admitted",
        "digest",
        "exports",
        "features",
        "file",
        "findings",
        "imports",
        "initialize",
        "logs",
        "manifest",
        "points",
        "sections",
        "sizes",
    ]
    assert sheet["sizes"]["moduleBytes"] == {"value": GUARD.stat().st_size, "limit": 16 * 1024 * 1024}
    assert sheet["points"]["pre_tool_call"]["sees"] == ["toolName", "args"]


def test_a_manifest_that_cannot_be_read_is_a_finding_and_no_traceback(cli: Cli, tmp_path: Path) -> None:
    hook = _file(tmp_path, answering({"pre_tool_call": {}}, {"abi": 7, "needs": "args"}))
    ran = cli("inspect", hook)
    assert ran.code == 1
    assert "[manifest_abi]" in ran.out
    assert cli("inspect", hook, "--json").json["manifest"] is None


def test_text_that_a_manifest_chose_is_escaped(cli: Cli, tmp_path: Path) -> None:
    hostile = "\x1b[2J\u202e\r\nforged"
    schema = {"type": "object", "properties": {hostile: {}}}
    manifest = {"abi": 1, "name": hostile, "version": hostile, "sdk": hostile, "config": schema, "description": hostile}
    ran = cli("inspect", _file(tmp_path, answering({"pre_tool_call": {}}, manifest)))
    assert "\\x1b[2J\\u202e" in ran.out
    assert all(line.isprintable() for line in ran.out.splitlines())
    assert "\nforged" not in ran.out


def test_a_missing_file_is_a_mistake_of_the_command_line(cli: Cli, tmp_path: Path) -> None:
    ran = cli("inspect", tmp_path / "none.wasm")
    assert ran.code == 2
    assert "cannot be opened" in ran.err


def test_more_than_a_limit_shows_as_more(cli: Cli, tmp_path: Path) -> None:
    body = "".join("(global i32 (i32.const 0))" for _ in range(2_001))
    ran = cli(
        "inspect", _file(tmp_path, wasm(body + '(func (export "on_error") (param i32 i32) (result i64) i64.const 0)'))
    )
    assert ran.code == 1
    assert "[too_many_globals]" in ran.out
    row = next(line for line in ran.out.splitlines() if line.startswith("  globals"))
    assert row.split()[1:3] == ["2,001", "2,000"]
