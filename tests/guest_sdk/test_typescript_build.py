"""Building TypeScript hooks: types gone, places kept, one tree of files, a snapshot, the same bytes, clear refusals."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hookcell import GuestHook, HookRegistry, HookThrew, admission_policy, run_point_sync
from hookcell_guest import build_runtime, typescript
from hookcell_guest.typescript import BuildFailed, build
from hookcell_sandbox import Sandbox, admit

HOOK = """\
import { defineHook, type Hook } from "hookcell";
import { Level, type Rule } from "./lib/rules";
import data from "./data.json";

interface Context { toolName: string; args: Record<string, unknown> }
enum Color { Red, Green = "g", Blue = 5, Next }
class Box<T> { constructor(private readonly value: T) {} get(): T { return this.value; } }

export default defineHook({
  name: "tried",
  version: "1.2.3",
  needs: ["toolName", "args"],
  config: { type: "object" },
  preToolCall(ctx: Context) {
    const rule = data.rules[0] as Rule, text: string = `a ${ctx.toolName as string} b`;
    if (ctx.toolName === "boom") { const x: any = undefined!; throw new TypeError(x as string); }
    const box = new Box<number>(3);
    return { deny: [rule.why, text, Color.Next, Color[5], box.get(), Level.High satisfies number].join() };
  },
} satisfies Hook);
"""
FILES = {
    "hook.ts": HOOK,
    "lib/rules.ts": "export type Rule = { why: string };\nexport enum Level { Low = 1, High }\n",
    "data.json": '{"rules": [{"why": "because"}]}',
}


def write(folder: Path, files: dict[str, str]) -> Path:
    """The files in a folder; the first one's path."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder / next(iter(files))


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as made:
        yield made


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[typescript.BuildReport, Path]:
    folder = tmp_path_factory.mktemp("built")
    return build(write(folder, FILES), folder / "hook.wasm"), folder


def deny(sandbox: Sandbox, wasm: Path, tool: str = "t") -> str | None:
    hooks = HookRegistry()
    hooks.register(GuestHook.load(wasm, sandbox=sandbox))
    return run_point_sync(hooks, "pre_tool_call", {"toolName": tool, "args": {}}).reason


def test_a_tree_of_files_becomes_a_hook(sandbox: Sandbox, built: tuple[typescript.BuildReport, Path]) -> None:
    report, folder = built
    assert report.points == ("pre_tool_call",)
    assert report.files[0] == "hook.ts"
    assert set(report.files) == set(FILES)
    assert report.size == report.out.stat().st_size
    assert deny(sandbox, folder / "hook.wasm") == "because,a t b,6,Blue,3,2"


def test_the_module_exports_what_the_hook_implements_and_no_more(built: tuple[typescript.BuildReport, Path]) -> None:
    module = admit(built[0].out.read_bytes(), admission_policy())
    assert {export.name for export in module.exports} == {"memory", "hook_alloc", "hook_log", "pre_tool_call"}
    assert module.manifest is not None
    assert json.loads(module.manifest) == {
        "abi": 1,
        "name": "tried",
        "version": "1.2.3",
        "needs": ["toolName", "args"],
        "config": {"type": "object"},
        "sdk": "typescript/0.1",
    }


def test_an_error_names_the_place_in_the_typescript(
    sandbox: Sandbox, built: tuple[typescript.BuildReport, Path]
) -> None:
    """Types before it in its line do not shift it."""
    with pytest.raises(HookThrew) as failed:
        deny(sandbox, built[1] / "hook.wasm", "boom")
    line = next(number for number, text in enumerate(HOOK.splitlines(), 1) if "boom" in text)
    column = HOOK.splitlines()[line - 1].index("x as string") + 1
    assert failed.value.stack == f"at preToolCall (hook.ts:{line}:{column})"


def test_the_same_files_elsewhere_give_the_same_bytes(
    tmp_path: Path, built: tuple[typescript.BuildReport, Path]
) -> None:
    again = build(write(tmp_path / "other", FILES), tmp_path / "other.wasm")
    assert again.out.read_bytes() == built[0].out.read_bytes()


def test_without_a_snapshot_the_modules_run_at_each_call(
    sandbox: Sandbox, tmp_path: Path, built: tuple[typescript.BuildReport, Path]
) -> None:
    report = build(write(tmp_path, FILES), tmp_path / "hook.wasm", snapshot=False)
    assert not report.snapshot
    assert deny(sandbox, report.out) == deny(sandbox, built[0].out)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"hook.ts": "export default {\n  preToolCall() { if }\n}"}, "hook.ts:2:22: "),
        ({"hook.ts": "const x: = 1"}, "hook.ts:1:10: "),
        ({"hook.js": "const x: number = 1"}, "hook.js:1:"),
        ({"hook.ts": "import fs from 'fs';\nfs;"}, "hook.ts:1:16: cannot import 'fs'"),
        ({"hook.ts": "\nimport { a } from './none'; a;"}, "hook.ts:2:19: cannot import './none': there is no such"),
        ({"hook.ts": "import '../x'"}, "hook.ts:1:8: cannot import '../x': it leaves the hook's folder"),
        (
            {"hook.ts": "import './a'", "a.ts": "export * from './b'", "b.ts": "import 'c'"},
            "b.ts:1:8: cannot import 'c'",
        ),
        ({"hook.ts": "import('./none')"}, "hook.ts:1:8: cannot import './none'"),
        ({"hook.ts": "import d from './d.json'; d;", "d.json": "{\n x }"}, "d.json:2:2: "),
        ({"hook.ts": "throw new RangeError('top')"}, "hook.ts:1:"),
        ({"hook.ts": "export default {}"}, "the hook has no method at any point"),
        ({"hook.ts": "export default { pre_tool_call() {} }"}, "the method is spelled preToolCall"),
        ({"hook.ts": "export default { preToolCall() {}, needs: 'args' }"}, "needs is no list"),
        ({"hook.ts": "export default { preToolCall() {}, name: 5 }"}, "name is no string"),
        (
            {"hook.ts": "export default { preToolCall() {}, config: { f() {} } }"},
            "hook/config/f: a function cannot cross",
        ),
        (
            {"hook.ts": "export default { preToolCall() {}, description: 'x'.repeat(2_000_000) }"},
            "the hook describes itself in 2_000_0",
        ),
        ({"hook.ts": "Date.now(); export default {}"}, "while the module loads"),
        ({"hook.ts": "for (;;);"}, "used all"),
        ({"hook.ts": "await new Promise(() => {})"}, "never settles"),
        ({"hook.md": ""}, "a hook is a .ts or .js file"),
    ],
)
def test_what_cannot_be_built_is_refused_with_its_place(tmp_path: Path, files: dict[str, str], said: str) -> None:
    with pytest.raises(BuildFailed) as refused:
        build(write(tmp_path, files), tmp_path / "hook.wasm")
    assert said in str(refused.value)
    assert not (tmp_path / "hook.wasm").exists()


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("{}")
    entry = write(tmp_path / "project", {"hook.ts": "import s from './s.json'; s; export default {}"})
    (tmp_path / "project/s.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(BuildFailed, match=r"s\.json: it leads out of the hook's folder"):
        build(entry, tmp_path / "hook.wasm")


def test_an_import_of_types_alone_leads_nowhere(sandbox: Sandbox, tmp_path: Path) -> None:
    source = """import { T } from './types';
        import type { U } from 'elsewhere';
        export default { preToolCall(ctx: T & U) { return { deny: 'ok' } } }"""
    build(write(tmp_path, {"hook.ts": source}), tmp_path / "hook.wasm")
    assert deny(sandbox, tmp_path / "hook.wasm") == "ok"


def test_the_command_says_what_it_built_or_why_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = write(tmp_path, {"hook.js": "export default { name: 'h', onError() {}, preGenerate() {} }"})
    assert typescript.main([str(entry)]) == 0
    assert "bytes, pre_generate, on_error" in capsys.readouterr().out
    assert (tmp_path / "hook.wasm").exists()
    assert typescript.main([str(tmp_path / "none.ts")]) == 1
    assert "none.ts is not a file" in capsys.readouterr().err


@pytest.mark.skipif(importlib.util.find_spec("ziglang") is None, reason="ziglang is not installed")
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
@pytest.mark.slow  # CI runs the same check as a step of its own
def test_what_ships_is_what_its_sources_build(capsys: pytest.CaptureFixture[str]) -> None:
    assert build_runtime.main(["--check"]) == 0, capsys.readouterr().err
