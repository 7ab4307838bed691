"""``hookcell init``: a project that builds and passes its own tests, in each language."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hookcell.wire_types import declarations

if TYPE_CHECKING:
    from .conftest import Cli


@pytest.mark.parametrize("language", ["ts", "c"])
def test_a_new_project_passes_its_tests_and_the_check(cli: Cli, tmp_path: Path, language: str) -> None:
    if language == "c":
        pytest.importorskip("ziglang", reason="ziglang is not installed")
    folder = tmp_path / "my-hook"
    ran = cli("init", "--lang", language, folder)
    assert (ran.code, ran.err) == (0, "")
    assert f"next: hookcell test {folder}" in ran.out
    tested = cli("test", folder, "--json")
    assert (tested.code, tested.json["passed"], tested.json["failed"]) == (0, 2, 0)
    assert cli("check", folder / f"hook.{language}").code == 0
    built = cli("build", folder / f"hook.{language}", "--json").json
    assert built["manifest"]["name"] == "my-hook"
    shown = cli("run", folder / "hook.wasm", "--context", folder / "tests/denies.json")
    assert "my-hook at pre_tool_call: deny" in shown.out
    assert "denied: rm -rf build" in shown.out


@pytest.mark.parametrize("language", ["ts", "c"])
def test_every_file_is_listed_and_none_has_a_blank_to_fill_in(cli: Cli, tmp_path: Path, language: str) -> None:
    folder = tmp_path / "my-hook"
    listed = cli("init", "--lang", language, folder, "--json").json["files"]
    written = {each.relative_to(folder).as_posix(): each for each in folder.rglob("*") if each.is_file()}
    assert sorted(listed) == sorted(written)
    assert {"README.md", ".gitignore", f"hook.{language}", "tests/denies.json"} <= written.keys()
    for each in written.values():
        assert "__NAME__" not in each.read_text("utf-8")


def test_typescript_is_the_default_and_comes_with_its_types(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "my-hook"
    assert cli("init", folder).code == 0
    assert (folder / "hookcell.d.ts").read_text("utf-8") == declarations()
    paths = json.loads((folder / "tsconfig.json").read_text())["compilerOptions"]["paths"]
    assert paths == {"hookcell": ["./hookcell.d.ts"]}


@pytest.mark.parametrize("name", ["-x", '"', "a b", "*", "é", "a" * 65])
def test_a_name_that_would_not_do_in_a_source_is_refused(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = cli("init", "--", name)
    assert ran.code == 2
    assert "the name does not do [name]" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_the_longest_name_does(cli: Cli, tmp_path: Path) -> None:
    assert cli("init", tmp_path / ("a" * 64)).code == 0


def test_a_folder_with_something_in_it_is_left_alone(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "hook").mkdir()
    kept = tmp_path / "hook" / "hook.ts"
    kept.write_text("mine")
    ran = cli("init", tmp_path / "hook", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (2, "not_empty")
    assert [each.name for each in kept.parent.iterdir()] == ["hook.ts"]
    assert kept.read_text() == "mine"
    assert cli("init", kept).code == 2


def test_another_language_is_none(cli: Cli, tmp_path: Path) -> None:
    assert cli("init", "--lang", "cobol", tmp_path / "x").code == 2
