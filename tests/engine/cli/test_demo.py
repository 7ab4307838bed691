"""``hookcell demo``: no arguments, no network, three hooks at work."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from .conftest import Cli


def test_the_demo_shows_examples_the_table_and_what_to_type_next(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*_: object, **__: object) -> None:
        raise AssertionError("the demo went to the network")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    ran = cli("demo")
    assert ran.code == 0
    assert ran.err == ""
    for what in ("denied by guard", "rewritten by defaults", "replaced by redact"):
        assert ran.out.partition("live agent")[0].count(what) == 1
    assert ran.row("guard")["denied"] == "2"
    assert ran.row("defaults")["rewritten"] == "2"
    assert ran.row("redact")["replaced"] == "4"
    assert ran.row("total")["failed"] == "0"
    assert "13 tool calls (validated)" in ran.out
    live = ran.out.partition("live agent")[2].splitlines()
    assert [line.split()[0] for line in live[1:9]] == [
        "user",
        "runs",
        "runs",
        "denied",
        "Refunds",
        "result",
        "result",
        "agent",
    ]
    assert "denied by guard  refund_order" in live[4]
    assert live[3].endswith('{"query": "sea", "limit": 5, "inStockOnly": true}')
    assert '"phone": "[phone]"' in live[6]
    assert ran.out.index("total") < ran.out.index("hookcell run HOOK.wasm --on RUNS.jsonl")
    assert max(len(line) for line in ran.out.splitlines() if not line.startswith("  hookcell inspect")) <= 80
