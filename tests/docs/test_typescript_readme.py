"""The hook of the TypeScript README is built and does what is said there."""

from __future__ import annotations

import re
from pathlib import Path

from hookcell import GuestHook, HookRegistry, RunFacts, ToolCall, ToolPipeline
from hookcell_guest.typescript import build
from hookcell_sandbox import ArtifactCache, Sandbox

README = Path(__file__).parents[2] / "guest_sdk" / "languages" / "typescript" / "README.md"


def test_the_guard_of_the_readme_denies_caps_and_counts(tmp_path: Path) -> None:
    guard, tools = re.findall(r"```ts\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    (tmp_path / "guard.ts").write_text(guard, "utf-8")
    (tmp_path / "tools.ts").write_text(tools, "utf-8")
    report = build(tmp_path / "guard.ts", tmp_path / "guard.wasm")
    assert (report.points, report.files) == (("pre_tool_call",), ("guard.ts", "tools.ts"))
    with Sandbox(cache=ArtifactCache()) as sandbox:
        hook = GuestHook.load(tmp_path / "guard.wasm", sandbox=sandbox)
        assert (hook.name, hook.manifest.needs) == ("guard", {"toolName", "args", "metadata"})
        run = RunFacts(session_id="s1")
        pipeline = ToolPipeline(hooks=HookRegistry([hook]), run=run)
        shell = pipeline.before_execution_sync(ToolCall(id="c1", name="shell", args={}))
        assert shell.settled is not None
        assert shell.settled.error is not None
        assert shell.settled.error.message == "shell is not on the list"
        search = pipeline.before_execution_sync(ToolCall(id="c2", name="search", args={"rows": 5000}))
        assert (search.runs, search.args, run.metadata) == (True, {"rows": 100}, {"checked": 1})
        assert search.decision is not None
        assert search.decision.trace[0].log.lines == ("let through search { rows: 100 }",)
