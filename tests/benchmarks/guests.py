"""What is run: guests, the contexts they get, and the very payloads that the engine makes of these."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import wasmtime

from hookcell import GuestHook, History, RunFacts
from hookcell.codec import encode_context
from hookcell_sandbox import AdmissionPolicy, Program, Sandbox

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "FIXTURES",
    "GUESTS",
    "TOOL_CALL",
    "Case",
    "assembled",
    "case_of",
    "history_of",
    "load_module",
    "records_of",
    "shipped_hook",
    "tool_call_context",
    "tool_result_context",
]

_ROOT = Path(__file__).parents[2]
_DEMO = _ROOT / "engine/hookcell/demo"
FIXTURES = _ROOT / "fixtures/modules"
GUESTS = Path(__file__).parent / "guests"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One entry point of one program, and a payload for it."""

    program: Program
    entry: str
    payload: bytes


def assembled(path: Path) -> bytes:
    """A ``.wat`` file as a module."""
    return bytes(wasmtime.wat2wasm(path.read_text("utf-8")))


def load_module(sandbox: Sandbox, path: Path, *entries: str) -> Program:
    """A ``.wat`` file as a program whose entry points are these."""
    return sandbox.load(assembled(path), AdmissionPolicy(entry_points=frozenset(entries)))


def shipped_hook(sandbox: Sandbox, name: str) -> GuestHook:
    """One of the hooks that hookcell ships, with the demo's config."""
    config = json.loads((_DEMO / "hooks.json").read_text("utf-8"))[name]
    return GuestHook.load(_DEMO / "hooks" / f"{name}.wasm", sandbox=sandbox, config=config)


def case_of(hook: GuestHook, point: str, context: Mapping[str, object]) -> Case:
    """The call that the engine would make of this hook."""
    payload = encode_context({"point": point, **context}, hook.crossings[point].fields, hook.extra)
    return Case(program=hook.program, entry=point, payload=payload)


TOOL_CALL: Mapping[str, object] = {
    "toolCallId": "call_31",
    "toolName": "refund_order",
    "args": {"orderId": "PL-1099", "amount": 42.5, "currency": "EUR", "note": "Charged twice; see the bank's letter."},
    "toolCall": {"id": "call_31", "name": "refund_order", "args": {"orderId": "PL-1099", "amount": 42.5}},
}
"""A tool call that the demo's guard looks at and lets pass."""


def tool_call_context(messages: History) -> dict[str, object]:
    """The context of `TOOL_CALL`, with a conversation before it."""
    return RunFacts(messages=messages, agent_id="a1", agent_name="shop", session_id="s1").context(TOOL_CALL)


def tool_result_context(records: list[dict[str, object]]) -> dict[str, object]:
    """The context of a tool call that answered with these records."""
    own = {**TOOL_CALL, "result": {"result": {"orders": records}}, "origin": "tool"}
    return RunFacts(agent_id="a1", agent_name="shop", session_id="s1").context(own)


def records_of(size: int) -> list[dict[str, object]]:
    """Orders that take about ``size`` bytes; every fourth has a phone number and an e-mail address to mask."""
    records: list[dict[str, object]] = []
    taken = 0
    while taken < size:
        number = len(records)
        address = "Noor Brandt, 4 Quay Street, phone +1 202 555 0143, noor.brandt@example.com"
        record: dict[str, object] = {
            "orderId": f"PL-{1000 + number}",
            "status": "shipped",
            "total": 38.4,
            "title": "A Field Guide to Lichens",
            "shipTo": address if number % 4 == 0 else "to be picked up at the shop on Friday",
        }
        taken += len(json.dumps(record))
        records.append(record)
    return records


def history_of(size: int) -> History:
    """A conversation of about ``size`` bytes, a kilobyte a message."""
    text = "The order was shipped on Monday and should be there by the end of the week. " * 13
    return History([{"role": "user" if i % 2 == 0 else "assistant", "content": text} for i in range(size // len(text))])
