"""``hookcell check``: every finding with a next step, and nothing of the hook is run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .authors import NO_SHELL, c_source
from .small_guests import DEFAULTS, GUARD, REDACT, answering, trapping, wasm

if TYPE_CHECKING:
    from .conftest import Cli


def _file(tmp_path: Path, raw: bytes, name: str = "hook") -> Path:
    path = tmp_path / f"{name}.wasm"
    path.write_bytes(raw)
    return path


@pytest.mark.parametrize("hook", [GUARD, DEFAULTS, REDACT])
def test_a_good_hook_is_said_to_be_one(cli: Cli, hook: Path) -> None:
    ran = cli("check", hook)
    assert (ran.code, ran.err) == (0, "")
    assert "a host would load it" in ran.out


def test_a_source_is_built_and_checked(cli: Cli, tmp_path: Path) -> None:
    ran = cli("check", c_source(tmp_path), "--json")
    assert (ran.json["ok"], ran.json["language"], ran.json["points"]) == (True, "C", ["pre_tool_call"])
    assert list(tmp_path.glob("*.wasm")) == []
    assert cli("check", c_source(tmp_path, NO_SHELL + "}"), "--json").json["error"]["code"] == "build_failed"


def test_nothing_of_the_hook_is_run(cli: Cli, tmp_path: Path) -> None:
    traps = wasm(
        """(func (export "pre_tool_call") (param i32 i32) (result i64) unreachable)
           (func (export "_initialize") unreachable)"""
    )
    for raw in (trapping(), traps):
        assert cli("check", _file(tmp_path, raw)).code == 0


def test_every_finding_has_a_code_and_a_next_step(cli: Cli, tmp_path: Path) -> None:
    manifest = {"abi": 2, "name": 7, "needs": ["arguments"], "storage": "day", "config": {"type": "nonsense"}}
    hook = _file(tmp_path, answering({}, manifest))
    ran = cli("check", hook, "--json")
    assert (ran.code, ran.json["ok"], ran.json["compiled"]) == (1, False, False)
    codes = {each["code"] for each in ran.json["findings"]}
    assert codes >= {"no_entry_point", "manifest_abi", "manifest_shape", "manifest_needs", "manifest_storage"}
    assert "manifest_config" in codes
    assert all(each["next"] for each in ran.json["findings"])
    text = cli("check", hook).out
    assert f"refused for {len(ran.json['findings'])} reasons" in text
    assert text.count("next: ") == len(ran.json["findings"])
    assert max(len(line) for line in text.splitlines()) <= 100


def test_a_body_that_only_the_compiler_sees_to_be_wrong_is_a_finding(cli: Cli, tmp_path: Path) -> None:
    good = answering({"pre_tool_call": {}})
    at = good.index(b"\x42")  # i64.const, of what the entry point returns; an i32.const does not validate there
    ran = cli("check", _file(tmp_path, good[:at] + b"\x41" + good[at + 1 :]), "--json")
    assert (ran.code, ran.json["compiled"]) == (1, True)
    assert len(ran.json["findings"]) == 1


def test_a_name_that_no_registry_takes_is_a_finding(cli: Cli, tmp_path: Path) -> None:
    ran = cli("check", _file(tmp_path, answering({"pre_tool_call": {}}, {"abi": 1, "name": " x\x1b"})))
    assert ran.code == 1
    assert "[name]" in ran.out
    assert "\x1b" not in ran.out


@pytest.mark.parametrize("raw", [b"", b"(module)", b"\x00asm\x01\x00\x00\x00", b"garbage"])
def test_what_is_no_hook_is_refused_whatever_it_is(cli: Cli, tmp_path: Path, raw: bytes) -> None:
    ran = cli("check", _file(tmp_path, raw))
    assert ran.code == 1
    assert "next: " in ran.out


def test_a_missing_file_is_the_command_lines_fault(cli: Cli, tmp_path: Path) -> None:
    ran = cli("check", tmp_path / "none.wasm", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (2, "usage")
