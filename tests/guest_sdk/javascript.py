"""JavaScript hooks for tests: the engine with sources in its slot, no snapshot, so that all share one compilation."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgpack

from hookcell import GuestHook, HookRegistry, admission_policy
from hookcell_guest.typescript import _engine, _with_files
from hookcell_guest.wasm import set_custom
from hookcell_sandbox import Completion, Limits, Sandbox

ROOMY = Limits(fuel=1_000_000_000, deadline_ms=60_000)


def module(source: str | Mapping[str, str], manifest: Mapping[str, object] | None = None) -> bytes:
    """The hook of these files, the first of which is the entry; one source is ``hook.js``."""
    files = {"hook.js": source} if isinstance(source, str) else source
    wasm = _with_files(msgpack.packb([[path, text] for path, text in files.items()]))
    return set_custom(wasm, "hookcell", json.dumps(manifest or {}).encode())


class JavaScript:
    """Runs sources in one sandbox."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        # Held, so that the compiled code is: each source is only other data of the same engine.
        self.engine = sandbox.load(_engine(), admission_policy())

    def complete(
        self, source: str | Mapping[str, str], point: str, context: Mapping[str, object], limits: Limits = ROOMY
    ) -> Completion:
        return self.complete_raw(source, point, msgpack.packb({"point": point, **context}), limits)

    def complete_raw(
        self, source: str | Mapping[str, str], point: str, payload: bytes, limits: Limits = ROOMY
    ) -> Completion:
        program = self.sandbox.load(module(source), admission_policy())
        return self.sandbox.run_sync(program, point, payload, limits)

    def run(self, source: str | Mapping[str, str], point: str = "pre_tool_call", /, **context: object) -> Any:
        """The outcome, None = nothing."""
        output = self.complete(source, point, context).output
        return None if output is None else msgpack.unpackb(output)

    def body(self, body: str, point: str = "pre_tool_call", /, **context: object) -> Any:
        """The outcome of a method with this body, whose parameters are those of the point."""
        method = {
            "pre_tool_call": "preToolCall(ctx)",
            "post_tool_call": "postToolCall(ctx, result)",
            "pre_generate": "preGenerate(ctx)",
            "post_generate": "postGenerate(ctx, result)",
            "before_prompt": "beforePrompt(prompt, ctx)",
            "before_tool": "beforeTool(call, ctx)",
            "after_tool": "afterTool(result, ctx)",
            "after_response": "afterResponse(response, ctx)",
            "on_error": "onError(error, ctx)",
        }[point]
        return self.run(f"export default {{ {method} {{ {body} }} }}", point, **context)

    def log(self, statement: str, **context: object) -> str:
        source = f"export default {{ preToolCall(ctx) {{ {statement} }} }}"
        return self.complete(source, "pre_tool_call", context).log.raw.decode()

    def error(self, source: str | Mapping[str, str], point: str = "pre_tool_call", /, **context: object) -> Any:
        outcome = self.run(source, point, **context)
        assert outcome is not None
        assert outcome.keys() == {"error"}, outcome
        return outcome["error"]

    def registry(
        self, source: str | Mapping[str, str], manifest: Mapping[str, object] | None = None, **options: Any
    ) -> HookRegistry:
        made = HookRegistry()
        made.register(GuestHook.load(module(source, manifest), sandbox=self.sandbox, limits=ROOMY, **options))
        return made
