"""``hookcell bench``: time and fuel of a call beside the smallest guest. No figure of time is judged here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hookcell import POINTS
from hookcell.cli import bench
from hookcell.hook import admission_policy
from hookcell_sandbox.admission import inspect

from .authors import c_source
from .small_guests import answering, trapping

if TYPE_CHECKING:
    from .conftest import Cli


@pytest.fixture(autouse=True)
def few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "_MOST", 21)


def _context(tmp_path: Path, text: str = "x") -> Path:
    path = tmp_path / "context.json"
    path.write_text(json.dumps({"point": "pre_tool_call", "toolName": "find", "args": {"q": text}}))
    return path


def test_a_hook_is_measured_beside_the_smallest_guest(cli: Cli, tmp_path: Path) -> None:
    ran = cli("bench", c_source(tmp_path), "--context", _context(tmp_path), "--json")
    assert (ran.code, ran.err) == (0, "")
    found = ran.json
    assert (found["hook"], found["point"], found["calls"]) == ("no-shell", "pre_tool_call", 21)
    assert 0 < found["smallest"]["fuel"] < found["fuel"]
    assert found["us"] > 0
    assert found["ratio"] > 0
    text = cli("bench", tmp_path / "no_shell.c", "--context", _context(tmp_path)).out
    assert f"{found['fuel']:,}" in text
    assert "smallest guest" in text


def test_the_fuel_is_that_of_a_single_run(cli: Cli, tmp_path: Path) -> None:
    source, context = c_source(tmp_path), _context(tmp_path)
    once = cli("run", source, "--context", context, "--json").json["usage"]["fuel"]["value"]
    assert cli("bench", source, "--context", context, "--json").json["fuel"] == once


@pytest.mark.parametrize("size", [0, 64_511, 64_512, 5_000_000])
def test_the_smallest_guest_is_admitted_and_has_room_for_the_input(size: int) -> None:
    for point in POINTS:
        report = inspect(bench.smallest_guest(point, size), admission_policy())
        assert report.findings == ()
        assert report.memory is not None
        assert report.memory.minimum >= 1_024 + size


def test_a_large_context_is_measured_too(cli: Cli, tmp_path: Path) -> None:
    hook = tmp_path / "hook.wasm"
    hook.write_bytes(answering({"pre_tool_call": {}}))
    ran = cli("bench", hook, "--context", _context(tmp_path, "x" * 90_000), "--json")
    assert ran.code == 0
    assert ran.json["inputBytes"] > 90_000


def test_a_call_that_fails_is_not_measured(cli: Cli, tmp_path: Path) -> None:
    hook = tmp_path / "hook.wasm"
    hook.write_bytes(trapping())
    ran = cli("bench", hook, "--context", _context(tmp_path), "--json")
    assert (ran.code, ran.json["error"]["code"]) == (1, "trap")
    assert "next: see `hookcell run" in ran.err


def test_a_context_must_be_given(cli: Cli, tmp_path: Path) -> None:
    assert cli("bench", c_source(tmp_path)).code == 2
