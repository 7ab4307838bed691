"""Building C hooks: what the header gives an author, what the builder refuses, and that rebuilding gives the same."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import msgpack
import pytest
import wasmtime

from hookcell_guest import build_c
from hookcell_sandbox.admission import AdmissionPolicy, admit

from .bare_guest import BareGuest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="ziglang is not installed")

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("probe") / "probe.wasm"
    build_c.build(HERE / "probe.c", out)
    return out


@pytest.fixture(scope="module")
def guest(probe: Path) -> BareGuest:
    return BareGuest(probe)


def test_the_shipped_hooks_are_what_their_sources_build(capsys: pytest.CaptureFixture[str]) -> None:
    assert build_c.main(["--check"]) == 0, capsys.readouterr().err


def test_check_names_the_hook_that_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.wasm"
    other.write_bytes(b"\0asm")
    monkeypatch.setattr(build_c, "shipped_hooks", lambda: {HERE / "probe.c": other, HERE / "none.c": other})
    assert build_c.main(["--check"]) == 1
    assert "none.c is not a file" in capsys.readouterr().err
    monkeypatch.setattr(build_c, "shipped_hooks", lambda: {HERE / "probe.c": other})
    assert build_c.main(["--check"]) == 1
    assert "not what their sources build: other.wasm" in capsys.readouterr().err


def test_the_same_source_in_another_folder_gives_the_same_bytes(probe: Path, tmp_path: Path) -> None:
    (tmp_path / "moved.c").write_bytes((HERE / "probe.c").read_bytes())
    build_c.build(tmp_path / "moved.c", tmp_path / "moved.wasm")
    assert (tmp_path / "moved.wasm").read_bytes() == probe.read_bytes()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("int puts(const char *);\nHOOK_POINT(on_error, c) { (void)c; return (hook_outcome)puts(0); }", "puts"),
        ("#include <stdio.h>", "stdio.h"),
        ("HOOK_POINT(on_error, c) { }", "c"),
    ],
)
def test_what_needs_a_c_library_is_refused_at_build_time(tmp_path: Path, source: str, said: str) -> None:
    """ABI: no imports. The author hears of it here and not at admission."""
    path = tmp_path / "hook.c"
    path.write_text(f'#include "hookcell.h"\n{source}\n')
    with pytest.raises(build_c.BuildFailed, match="the compiler refused it") as failure:
        build_c.build(path, tmp_path / "hook.wasm")
    assert said in str(failure.value)
    assert not (tmp_path / "hook.wasm").exists()


def test_one_of_source_all_check_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["x.c", "--check"], ["--all", "--check"]):
        with pytest.raises(SystemExit, match="2"):
            build_c.main(arguments)
    assert "give one of" in capsys.readouterr().err


def test_the_readmes_hook_builds_and_denies(tmp_path: Path) -> None:
    readme = (HERE.parents[1] / "guest_sdk/languages/c/README.md").read_text()
    source = tmp_path / "no_shell.c"
    source.write_text(readme.split("```c\n", 1)[1].split("```", 1)[0])
    assert build_c.main([str(source)]) == 0
    hook = BareGuest(tmp_path / "no_shell.wasm")
    assert hook.call("pre_tool_call", toolName="shell").outcome == {"deny": "no shell here"}
    assert hook.call("pre_tool_call", toolName="shells").outcome is None


def test_the_manifest_stands_in_its_section_as_written(probe: Path) -> None:
    report = admit(probe.read_bytes(), AdmissionPolicy(entry_points=frozenset({"post_tool_call", "on_error"})))
    assert report.entry_points == {"post_tool_call", "on_error"}
    assert report.manifest is not None
    manifest = json.loads(report.manifest)
    assert manifest["pattern"] == '^a\\d "q"$'
    assert manifest["list"] == [1, 2.5, True, None]


def test_numbers_pass_through_unchanged(guest: BareGuest) -> None:
    numbers = [0, 127, 128, 255, 256, 2**16, 2**31 - 1, 2**31, 2**63 - 1, -1, -32, -33, -128, -129, -(2**31), -(2**63)]
    values = [*numbers, 0.5, -1e300, True, False, None]
    assert guest.call("post_tool_call", metadata={"numbers": values}).outcome == {"result": values}
    raw = msgpack.packb({"metadata": {"numbers": [1.5, 2.5]}}, use_single_float=True)
    assert guest.call_raw("post_tool_call", raw).outcome == {"result": [1.5, 2.5]}
    # An integer that no signed one holds comes as the nearest double.
    assert guest.call("post_tool_call", metadata={"numbers": [2**64 - 1]}).outcome == {"result": [2.0**64]}


@pytest.mark.parametrize("count", [0, 15, 16, 70_000])
def test_lists_of_every_length_form_are_read_and_written(guest: BareGuest, count: int) -> None:
    raw = msgpack.packb({"metadata": {"numbers": [7] * count}})
    assert guest.call_raw("post_tool_call", raw, fuel=10**9).outcome == {"result": [7] * count}


@pytest.mark.parametrize("text", ["", "x" * 31, "x" * 32, "é" * 200, "x" * 70_000])
def test_a_value_is_spliced_as_it_is(guest: BareGuest, text: str) -> None:
    value = {"name": text, "in": [{"k": b"\x00\xff", "n": None}]}
    assert guest.call("on_error", error=value).outcome == {"replace": value}


@pytest.mark.parametrize("number", [0, 9, 10, -1, 2**63 - 1, -(2**63)])
def test_an_integer_is_logged_in_decimal(guest: BareGuest, number: int) -> None:
    assert guest.call("post_tool_call", metadata={"logged": number}).log == str(number)


def test_a_full_log_says_so_once_and_stays_inside_its_block(guest: BareGuest) -> None:
    """SEMANTICS G6: a cut log says that it was cut. 64 bytes here, and the mark has 12."""
    assert guest.call("post_tool_call", metadata={"log": "x" * 52}).log == "x" * 52
    full = guest.call("post_tool_call", metadata={"log": "x" * 53, "logged": 5}).log
    assert full == "x" * 52 + "\n[log full]\n"


def test_a_long_error_is_cut_between_characters(guest: BareGuest) -> None:
    error = guest.call("post_tool_call", metadata={"throw": 1}).outcome["error"]  # type: ignore[index]
    assert error["name"] == "Name"
    assert len(error["message"].encode()) <= 200
    assert error["message"].isascii()


def test_a_trap_leaves_the_log_readable(guest: BareGuest) -> None:
    """SEMANTICS G5, as far as the guest is concerned: the log is in memory when the trap comes."""
    with pytest.raises(wasmtime.Trap, match="unreachable"):
        guest.call("post_tool_call", metadata={"trap": 1})


def test_a_hook_that_looks_at_nothing_of_its_context_builds(tmp_path: Path) -> None:
    source = tmp_path / "always.c"
    source.write_text(
        '#include "hookcell.h"\nHOOK_POINT(pre_tool_call, context) { return hook_deny("no"); }\n', "utf-8"
    )
    build_c.build(source, tmp_path / "always.wasm")
    assert (tmp_path / "always.wasm").read_bytes().startswith(b"\0asm")
