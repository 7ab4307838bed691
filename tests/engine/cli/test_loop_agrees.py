"""The same hook behaves the same in any loop: the reference loop live, and its run recorded and replayed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio

import hookcell
from hookcell import ABSENT, Decision, GuestHook, HookRegistry
from hookcell.agent import create_agent, define_tool, mock_model
from hookcell.cli.openai_dialect import recorded_run
from hookcell.cli.replay import Replay
from hookcell.cli.tool_schemas import tool_schemas
from hookcell_sandbox import Sandbox

DEMO = Path(hookcell.__file__).parent / "demo"
RESULTS = {"get_order": {"phone": "+1 202 555 0143"}, "find_books": "a@example.com", "refund_order": {"refunded": True}}
CALLS = [
    {"id": "a", "name": "refund_order", "args": {"orderId": "PL-1", "amount": 420}},
    {"id": "b", "name": "get_order", "args": {"orderId": "PL-1"}},
    {"id": "c", "name": "find_books", "args": {"query": "sea"}},
    {"id": "d", "name": "find_books", "args": {"words": "sea"}},
]


def said(decision: Decision) -> tuple[Any, ...]:
    """All of a decision that does not depend on the moment."""
    fuel = [(entry.hook, entry.outcome, entry.wrote, entry.fuel_used) for entry in decision.trace]
    value = None if decision.value is ABSENT else decision.value
    return decision.point, decision.kind, decision.hook, decision.reason, value, decision.args, fuel


def recorded() -> dict[str, Any]:
    """What a recorder would have kept of the run: the model's calls, and the tools' own results."""

    def result(call: dict[str, Any]) -> str:
        value = RESULTS[call["name"]]
        return value if isinstance(value, str) else json.dumps(value)

    function = [{"name": call["name"], "arguments": json.dumps(call["args"])} for call in CALLS]
    calls = [{"id": c["id"], "type": "function", "function": f} for c, f in zip(CALLS, function, strict=True)]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": result(call)} for call in CALLS]
    user, answer = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "Done."}
    return {
        "runId": "r",
        "messages": [user, {"role": "assistant", "content": "", "tool_calls": calls}, *results, answer],
    }


def test_a_run_decides_the_same_live_and_replayed() -> None:
    schemas = tool_schemas(DEMO / "tools.json")
    configs = json.loads((DEMO / "hooks.json").read_text("utf-8"))

    def tool(name: str) -> Any:
        # As text, which is what a recording keeps of a result.
        value = RESULTS[name]
        text = value if isinstance(value, str) else json.dumps(value)
        return define_tool(name, input=schemas[name].document, execute=lambda _: text)

    with Sandbox() as sandbox:
        guests = [
            GuestHook.load(DEMO / "hooks" / f"{name}.wasm", sandbox=sandbox, config=configs[name])
            for name in ("guard", "defaults", "redact")
        ]
        agent = create_agent(
            provider=mock_model([{"toolCalls": CALLS}, "Done."]), tools=[tool(name) for name in RESULTS], hooks=guests
        )
        result = anyio.run(agent.send, "hi")
        steps = list(
            Replay(hooks=HookRegistry(guests).snapshot(), schemas=schemas).steps(
                recorded_run(recorded(), fallback_id="r")
            )
        )

    live = [said(decision) for decision in result.decisions]
    replayed = [said(step.decision) for step in steps if step.decision is not None and step.decision.trace]
    assert live == replayed
    assert [(point, kind) for point, kind, *_ in live] == [
        ("pre_tool_call", "denied"),
        ("pre_tool_call", "proceed"),
        ("pre_tool_call", "proceed"),
        ("post_tool_call", "proceed"),
        ("post_tool_call", "replaced"),
        ("post_tool_call", "replaced"),
        ("post_tool_call", "proceed"),
    ]
