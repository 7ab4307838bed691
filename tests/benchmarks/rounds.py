"""Measures variants in turn, round after round, so that whatever else the machine does falls on all of them alike."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median, quantiles
from time import perf_counter_ns

__all__ = [
    "Batch",
    "Samples",
    "Variant",
    "awaited",
    "collector_off",
    "measure",
    "one_processor",
    "ratio_of",
    "timed",
    "warm_calls",
]

Batch = Callable[[int], Sequence[int]]
"""Makes that many calls, and some before them to warm up, and gives back what each took, nanoseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One thing to measure.

    Attributes:
        name: Its name in the table of medians.
        batch: Makes the calls.
        calls: How many in a round: about 10 ms' worth.
    """

    name: str
    batch: Batch
    calls: int


@dataclass(frozen=True, slots=True)
class Samples:
    """What a variant took: one median for each round, and all calls, nanoseconds."""

    rounds: list[float] = field(default_factory=list[float])
    calls: list[int] = field(default_factory=list[int])

    def add(self, taken: Sequence[int]) -> None:
        """Take the times of one round."""
        self.rounds.append(median(taken))
        self.calls.extend(taken)

    @property
    def median_us(self) -> float:
        """Of all calls of the run, microseconds."""
        return median(self.calls) / 1000


def measure(
    variants: Iterable[Variant], *, rounds: int, share: float = 1.0, progress: Callable[[int], None] = lambda _: None
) -> dict[str, Samples]:
    """Run every variant once in each round.

    Args:
        variants: In the order of a round; what is compared stands together.
        rounds: How many.
        share: Of each variant's calls in a round; at least one is made.
        progress: Told the number of rounds that are done.
    """
    variants = list(variants)
    samples = {variant.name: Samples() for variant in variants}
    if len(samples) != len(variants):
        raise ValueError("two variants have one name")
    for done in range(rounds):
        for variant in variants:
            with collector_off():
                samples[variant.name].add(variant.batch(max(1, round(variant.calls * share))))
        progress(done + 1)
    return samples


def ratio_of(above: Samples, below: Samples) -> tuple[float, float, float]:
    """The median of the rounds' ratios, and their first and third quartile, which say how steady it is.

    Of each round's own ratio, since a machine that runs slower for a second slows both of its sides.
    """
    each = [a / b for a, b in zip(above.rounds, below.rounds, strict=True)]
    low, middle, high = quantiles(each, n=4, method="inclusive") if len(each) > 1 else each * 3
    return middle, low, high


@contextmanager
def collector_off() -> Generator[None]:
    """No collection of cycles inside; one before, so that none is due."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def one_processor() -> Generator[None]:
    """Keep this process, and the children that it starts inside, on one processor, where the system has such a call.

    Two processors of a shared machine are slowed at different times and by half, and then a program on one of them
    cannot be compared with a program on the other.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def timed(call: Callable[[], object]) -> Batch:
    """A batch of plain calls."""

    def batch(count: int) -> list[int]:
        for _ in range(warm_calls(count)):
            call()
        taken: list[int] = []
        for _ in range(count):
            started = perf_counter_ns()
            call()
            taken.append(perf_counter_ns() - started)
        return taken

    return batch


def awaited(call: Callable[[], Awaitable[object]], runner: asyncio.Runner) -> Batch:
    """A batch of awaited calls, one after the other in one task."""

    async def calls(count: int) -> list[int]:
        for _ in range(warm_calls(count)):
            await call()
        taken: list[int] = []
        for _ in range(count):
            started = perf_counter_ns()
            await call()
            taken.append(perf_counter_ns() - started)
        return taken

    return lambda count: runner.run(calls(count))


def warm_calls(count: int) -> int:
    """Calls before those that count. One even before a single one: the first pays for cold caches."""
    return 1 + count // 10
