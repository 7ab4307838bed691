"""How late another task of an event loop is while endless hooks run on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter

from guests import FIXTURES, load_module
from rounds import collector_off

from hookcell_sandbox import DeadlineExceeded, Sandbox

__all__ = ["lateness"]

_HOOKS = 10
_TICK_SECONDS = 0.001
_ENTRIES = {"spin": "spin", "fill": "fill_forever"}


def lateness(*, rounds: int, window_ms: int, progress: Callable[[int], None] = lambda _: None) -> dict[str, float]:
    """The 99th percentile of a ticking task's lateness, milliseconds: idle, and beside ten endless hooks of each kind.

    Args:
        rounds: How often each is measured, in turn.
        window_ms: For how long each time; the hooks' deadline.
        progress: Told the number of rounds that are done.
    """
    late: dict[str, list[float]] = {"idle": [], **{name: [] for name in _ENTRIES}}
    with Sandbox() as sandbox, asyncio.Runner() as runner:
        program = load_module(sandbox, FIXTURES / "greedy.wat", *_ENTRIES.values())
        # Fuel for longer than any window, so that the deadline ends them.
        limits = replace(sandbox.limits, fuel=2**50, deadline_ms=window_ms)

        async def endless(entry: str) -> None:
            try:
                await sandbox.run(program, entry, b"", limits)
            except DeadlineExceeded:
                return
            raise RuntimeError(f"{entry} came to an end")

        async def window(name: str) -> None:
            async with asyncio.TaskGroup() as hooks:
                others = [hooks.create_task(endless(_ENTRIES[name])) for _ in range(_HOOKS) if name in _ENTRIES]
                until = perf_counter() + window_ms / 1000
                while perf_counter() < until and not any(other.done() for other in others):
                    planned = perf_counter() + _TICK_SECONDS
                    await asyncio.sleep(_TICK_SECONDS)
                    late[name].append(1000 * (perf_counter() - planned))

        for done in range(rounds):
            for name in late:
                with collector_off():
                    runner.run(window(name))
            progress(done + 1)
    return {name: sorted(each)[int(0.99 * len(each))] for name, each in late.items()}
