"""``hookcell build``: size, points and manifest of what was built, and errors with a code, a place and a next step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import hookcell_guest.build_c
from hookcell_guest.build_c import BuildFailed

from .authors import NO_SHELL, c_source
from .small_guests import GUARD, answering

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Cli


def test_a_build_says_what_it_made(cli: Cli, tmp_path: Path) -> None:
    ran = cli("build", c_source(tmp_path))
    assert (ran.code, ran.err) == (0, "")
    for said in ("KiB of 16 MiB", "no-shell 1.0.0", "pre_tool_call", "args, toolName", "next: hookcell test"):
        assert said in ran.out
    assert "admitted" in cli("inspect", tmp_path / "no_shell.wasm").out


def test_the_json_holds_the_sheet_and_the_source(cli: Cli, tmp_path: Path) -> None:
    source, out = c_source(tmp_path), tmp_path / "other.wasm"
    ran = cli("build", source, "-o", out, "--json")
    assert (ran.json["source"], ran.json["file"], ran.json["admitted"]) == (str(source), str(out), True)
    assert ran.json["sizes"]["moduleBytes"]["value"] == out.stat().st_size
    assert ran.json["manifest"]["name"] == "no-shell"


def test_a_source_in_typescript_is_built_without_a_compiler(cli: Cli, tmp_path: Path) -> None:
    source = tmp_path / "hook.ts"
    source.write_text('export default { name: "ts", preToolCall(ctx: any) { return { deny: "no" }; } };')
    assert cli("build", source, "--json").json["manifest"]["name"] == "ts"
    source.write_text('export default {\n  name: "ts", preToolCall(ctx) { return ] } };')
    ran = cli("build", source, "--json")
    assert (ran.code, ran.json["error"]["code"]) == (1, "build_failed")
    assert ran.json["error"]["place"].startswith(f"{source}:2:")


def test_a_source_that_does_not_compile_is_refused_at_its_line(cli: Cli, tmp_path: Path) -> None:
    source = c_source(tmp_path, NO_SHELL.replace("hook_nothing();", "hook_nothing()"))
    ran = cli("build", source, "--json")
    assert ran.code == 1
    error = ran.json["error"]
    assert error["code"] == "build_failed"
    assert error["place"].startswith(f"{source}:7:")
    assert "expected ';'" in error["message"]
    assert error["hint"]
    assert f"hookcell: {source}:7:" in ran.err
    assert "\n  next: " in ran.err
    assert not (tmp_path / "no_shell.wasm").exists()


def test_what_the_builder_quotes_of_a_source_is_escaped(cli: Cli, tmp_path: Path) -> None:
    ran = cli("build", c_source(tmp_path, "int x = \x1b[31m\u202e;\n"))
    assert ran.code == 1
    assert "\x1b" not in ran.err
    assert "\u202e" not in ran.err


def test_a_missing_compiler_is_named_with_the_package_that_brings_it(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(*_: object) -> None:
        raise BuildFailed("ziglang is not installed: pip install ziglang==0.17.1")

    monkeypatch.setattr(hookcell_guest.build_c, "build", nothing)
    monkeypatch.setattr("hookcell.cli.sources.find_spec", nothing_found)
    source = tmp_path / "hook.c"
    source.write_text("")
    ran = cli("build", source)
    assert ran.code == 1
    assert "[toolchain_missing]" in ran.err
    assert "next: pip install ziglang==" in ran.err


def nothing_found(_: str) -> None:
    return None


def test_a_module_that_would_be_refused_is_not_written(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_points(_: Path, out: Path) -> None:
        out.write_bytes(answering({}))

    monkeypatch.setattr(hookcell_guest.build_c, "build", no_points)
    source = tmp_path / "hook.c"
    source.write_text("")
    ran = cli("build", source)
    assert ran.code == 1
    assert "[no_entry_point]" in ran.err
    assert not (tmp_path / "hook.wasm").exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("hook.rs",), "[unknown_language]"),
        ((GUARD,), "[unknown_language]"),
        (("none.c",), "cannot be opened"),
        (("hook.c", "-o", "other.c"), "written over a C source"),
        ((), "arguments are required"),
    ],
)
def test_a_command_line_that_cannot_be_carried_out_says_why(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[object, ...], why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = cli("build", *arguments)
    assert ran.code == 2
    assert why in ran.err


def test_a_folder_that_is_not_there_is_named(cli: Cli, tmp_path: Path) -> None:
    ran = cli("build", c_source(tmp_path), "-o", tmp_path / "none" / "hook.wasm")
    assert ran.code == 2
    assert "cannot be written: No such file" in ran.err
