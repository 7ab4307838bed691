"""Measures hookcell against a pure-C floor and its peers, and prints ratios. See README.md beside it.

``python tests/benchmarks/run.py`` prints a table, with ``--json`` one object. ``--quick`` takes a quarter of the time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from lateness import lateness
from parallel import threads_2_vs_1
from ratios import RATIOS
from rounds import measure, one_processor, ratio_of
from variants import workshop

__all__ = ["Effort", "Report", "main", "measure_all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long to measure.

    Attributes:
        rounds: Of the round robin.
        share: Of the calls that a round makes of each variant.
        windows: Rounds of the loop's lateness.
        window_ms: Length of one.
        contests: Rounds of one thread against two.
    """

    rounds: int = 40
    share: float = 1.0
    windows: int = 5
    window_ms: int = 1_000
    contests: int = 15


_QUICK = Effort(rounds=10, windows=2, contests=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What one run found.

    Attributes:
        ratios: Each of `RATIOS`; None where a tool is missing.
        quartiles: Of a ratio's rounds, where it has any.
        median_us: Variant → median of all its calls, microseconds.
        missing: Variant → the tool that it lacks.
    """

    ratios: dict[str, float | None]
    quartiles: dict[str, tuple[float, float]]
    median_us: dict[str, float]
    missing: dict[str, str]


def measure_all(effort: Effort) -> Report:
    """Everything in one run."""
    with one_processor(), workshop() as made:
        samples = measure(
            made.variants, rounds=effort.rounds, share=effort.share, progress=_progress("calls", effort.rounds)
        )
    threads = threads_2_vs_1(rounds=effort.contests, share=effort.share)
    late = lateness(rounds=effort.windows, window_ms=effort.window_ms, progress=_progress("event loop", effort.windows))
    median_us = {name: each.median_us for name, each in samples.items()}
    median_us |= {f"thread_{name}": threads[f"{name}_us"] for name in ("busy", "tiny", "hash")}
    ratios: dict[str, float | None] = {
        "threads_2_vs_1": threads["busy"],
        "threads_2_vs_1_tiny": threads["tiny"],
        "threads_2_vs_1_hash": threads["hash"],
        "loop_late_ms_10": late["spin"] - late["idle"],
        "loop_late_ms_10_fill": late["fill"] - late["idle"],
    }
    quartiles: dict[str, tuple[float, float]] = {}
    for ratio in RATIOS:
        above, below = samples.get(ratio.above or ""), samples.get(ratio.below or "")
        if above is not None and below is not None:
            ratios[ratio.name], *quartiles[ratio.name] = ratio_of(above, below)  # type: ignore[assignment]  # two
        else:
            ratios.setdefault(ratio.name, None)
    return Report(ratios=ratios, quartiles=quartiles, median_us=median_us, missing=made.missing)


def as_object(report: Report) -> dict[str, Any]:
    """The report for machines: ratios by name, and beside them what they were made of."""
    return {
        **{ratio.name: _rounded(report.ratios[ratio.name]) for ratio in RATIOS},
        "median_us": {name: _rounded(each) for name, each in report.median_us.items()},
        "quartiles": {name: [_rounded(each) for each in pair] for name, pair in report.quartiles.items()},
        "budgets": {ratio.name: str(ratio.budget) for ratio in RATIOS if ratio.budget},
        "missed": [
            ratio.name
            for ratio in RATIOS
            if ratio.budget and (value := report.ratios[ratio.name]) is not None and not ratio.budget.met_by(value)
        ],
        "missing": report.missing,
        "machine": _machine(),
    }


def as_table(report: Report) -> str:
    """The report for people."""
    lines = [f"{'ratio':<30}{'value':>10}  {'rounds (quartiles)':<22}{'budget':<9}{'':<8}compares"]
    for ratio in RATIOS:
        value, pair = report.ratios[ratio.name], report.quartiles.get(ratio.name)
        spread = f"{pair[0]:.3g} to {pair[1]:.3g}" if pair else ""
        met = "" if value is None or ratio.budget is None else "met" if ratio.budget.met_by(value) else "MISSED"
        shown = "not run" if value is None else f"{value:.3g}" if value < 1000 else f"{value:.0f}"
        lines.append(f"{ratio.name:<30}{shown:>10}  {spread:<22}{ratio.budget or ''!s:<9}{met:<8}{ratio.says}")
    lines += ["", f"{'median of':<30}{'µs':>10}"]
    lines += [f"{name:<30}{each:>10.1f}" for name, each in report.median_us.items()]
    lines += ["", ", ".join(f"{name} {value}" for name, value in _machine().items())]
    for why in dict.fromkeys(report.missing.values()):
        lines.append(f"not run ({why}): {', '.join(name for name, reason in report.missing.items() if reason == why)}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. The exit code is 0 however the ratios stand: a busy machine is no failure."""
    parser = argparse.ArgumentParser(description="Ratios of hookcell's costs to a pure-C floor and to its peers.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    chosen = parser.parse_args(arguments)
    report = measure_all(_QUICK if chosen.quick else Effort())
    print(json.dumps(as_object(report), indent=2) if chosen.json else as_table(report))
    return 0


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def _machine() -> dict[str, Any]:
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "wasmtime": version("wasmtime"),
    }


def _progress(what: str, rounds: int) -> Any:
    def show(done: int) -> None:
        if sys.stderr.isatty():
            end = "\n" if done == rounds else ""
            print(f"\r{what}: {done} of {rounds} rounds", end=end, file=sys.stderr, flush=True)

    return show


if __name__ == "__main__":
    sys.exit(main())
