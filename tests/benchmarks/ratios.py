"""The named ratios: which variants each compares, and what it may come to."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["RATIOS", "Budget", "Ratio"]


@dataclass(frozen=True, slots=True)
class Budget:
    """A bound of a ratio: at most, or at least."""

    bound: float
    at_least: bool = False

    def met_by(self, value: float) -> bool:
        """Whether a measured value keeps it."""
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.bound:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """One of the numbers that are printed.

    Attributes:
        name: Its name in the JSON object.
        says: What it compares, for the table.
        above: The variant above the line; None where the number does not come from the round robin.
        below: The one below.
        budget: What it may come to; None where it only informs.
    """

    name: str
    says: str
    above: str | None = None
    below: str | None = None
    budget: Budget | None = None


_C = Budget(4.5)
_C_100K = Budget(1.8)
_LATE = Budget(5)

RATIOS: tuple[Ratio, ...] = (
    Ratio(name="isolated_vs_c", says="redact, 0.5 KB", above="isolated_redact", below="c_redact", budget=_C),
    Ratio(name="isolated_vs_c_guard", says="guard, 0.5 KB", above="isolated_guard", below="c_guard", budget=_C),
    Ratio(
        name="isolated_vs_c_echo", says="the smallest echo, 0.5 KB", above="isolated_echo", below="c_echo", budget=_C
    ),
    Ratio(
        name="isolated_vs_c_100k",
        says="redact, 100 KB",
        above="isolated_redact_100k",
        below="c_redact_100k",
        budget=_C_100K,
    ),
    Ratio(
        name="isolated_vs_c_100k_copy",
        says="a guest that copies, 100 KB",
        above="isolated_copy_100k",
        below="c_copy_100k",
        budget=_C_100K,
    ),
    Ratio(name="isolated_vs_c_1m", says="redact, 1 MB", above="isolated_redact_1m", below="c_redact_1m"),
    Ratio(name="isolated_vs_c_1m_copy", says="a guest that copies, 1 MB", above="isolated_copy_1m", below="c_copy_1m"),
    Ratio(
        name="isolated_vs_public",
        says="wasmtime's package, redact, 0.5 KB",
        above="isolated_redact",
        below="public_redact",
    ),
    Ratio(
        name="isolated_vs_extism_fresh",
        says="a new plugin for each call, echo",
        above="isolated_echo",
        below="extism_fresh",
        budget=Budget(0.08),
    ),
    Ratio(
        name="isolated_vs_extism_compiling",
        says="a new plugin from its manifest, echo",
        above="isolated_echo",
        below="extism_compiling",
    ),
    Ratio(
        name="isolated_vs_extism_reused",
        says="one plugin for all calls, echo",
        above="isolated_echo",
        below="extism_reused",
        budget=Budget(1),
    ),
    Ratio(
        name="subprocess_vs_isolated",
        says="a Python process for each call, redact",
        above="subprocess",
        below="isolated_redact",
        budget=Budget(1000, at_least=True),
    ),
    Ratio(
        name="awaited_vs_sync",
        says="run over run_sync, guard",
        above="awaited_guard",
        below="isolated_guard",
        budget=Budget(1.6),
    ),
    Ratio(
        name="step_vs_isolated",
        says="run_point over run, guard",
        above="step_guard",
        below="awaited_guard",
        budget=Budget(3),
    ),
    Ratio(
        name="step_vs_isolated_redact",
        says="run_point over run, redact, 0.5 KB",
        above="step_redact",
        below="awaited_redact",
        budget=Budget(3),
    ),
    Ratio(
        name="step_sync_vs_isolated",
        says="run_point_sync over run_sync, guard",
        above="step_sync_guard",
        below="isolated_guard",
        budget=Budget(3),
    ),
    Ratio(
        name="step_history_1m_vs_none",
        says="needs args, 1 MB of history or none",
        above="step_guard_history_1m",
        below="step_guard",
        budget=Budget(1.1),
    ),
    Ratio(
        name="step_reads_1m_vs_isolated",
        says="needs all, 1 MB of history, over run",
        above="step_reader_1m",
        below="awaited_reader_1m",
    ),
    Ratio(name="threads_2_vs_1", says="calls a second, a guest of 0.2 ms"),
    Ratio(name="threads_2_vs_1_tiny", says="calls a second, echo, 0.5 KB"),
    Ratio(name="threads_2_vs_1_hash", says="calls a second, sha256 for 0.2 ms, no guest"),
    Ratio(name="loop_late_ms_10", says="p99 above idle, ten endless loops", budget=_LATE),
    Ratio(name="loop_late_ms_10_fill", says="p99 above idle, ten that fill memory", budget=_LATE),
)
