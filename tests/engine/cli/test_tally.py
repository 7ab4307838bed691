"""Counting what hooks did."""

from __future__ import annotations

from typing import Any

import pytest

from hookcell import TraceEntry
from hookcell.cli.tally import HookTally, effect_of, percentile


def _entry(outcome: Any = "nothing", **more: Any) -> TraceEntry:
    fields = {"kind": "guest", "digest": None, "elapsed_us": 1.0, "hook": "h", "point": "pre_tool_call"}
    return TraceEntry(**{**fields, "outcome": outcome, **more})


@pytest.mark.parametrize(
    ("entry", "effect"),
    [
        (_entry(), None),
        (_entry("deny"), "denied"),
        (_entry("deny", wrote=("/args/q",)), "denied"),
        (_entry("result"), "replaced"),
        (_entry("result", notes=("result ignored",)), None),
        (_entry("replace"), "replaced"),
        (_entry("input", wrote=("/args",)), "rewritten"),
        (_entry("changed", wrote=("/args/q",)), "rewritten"),
        (_entry("changed", wrote=("/argsother",)), "changed"),
        (_entry("changed", wrote=("/metadata/x",)), "changed"),
        (_entry("changed"), "changed"),
        (_entry("mismatch"), "mismatched"),
        (_entry("failed", failure="fuel", wrote=("/args",)), "failed"),
    ],
)
def test_one_outcome_has_one_effect(entry: TraceEntry, effect: str | None) -> None:
    assert effect_of(entry) == effect
    tally = HookTally()
    tally.add(entry)
    counted = {"denied", "replaced", "rewritten", "changed", "mismatched", "failed"}
    assert {name for name in counted if getattr(tally, name)} == ({effect} if effect else set())
    assert tally.calls == 1


@pytest.mark.parametrize(("percent", "expected"), [(1, 1), (50, 5), (51, 6), (99, 10), (100, 10)])
def test_a_percentile_is_a_figure_that_was_measured(percent: float, expected: int) -> None:
    assert percentile([10, 9, 8, 7, 6, 5, 4, 3, 2, 1], percent) == expected


def test_nothing_has_no_percentile_and_one_figure_is_all_of_them() -> None:
    assert percentile([], 50) is None
    assert percentile([3.5], 1) == percentile([3.5], 99) == 3.5
