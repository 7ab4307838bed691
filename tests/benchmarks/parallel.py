"""How much more two threads get done than one."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import median
from time import perf_counter

from guests import GUESTS, load_module
from rounds import collector_off

from hookcell_sandbox import Sandbox

__all__ = ["threads_2_vs_1"]

_BUSY_ROUNDS = 200_000
"""Of the busy guest's loop: about 0.2 ms."""


def threads_2_vs_1(*, rounds: int, share: float = 1.0) -> dict[str, float]:
    """Calls a second of two threads over those of one; 2 is all that two processors can give.

    Returns:
        The ratio for ``busy``, a guest that works for about 0.2 ms, for ``tiny``, an echo of 0.5 KB, and for ``hash``,
        which is no guest: what this machine gives to C code of the same length that lets go of the GIL. Under
        ``<name>_us`` the time of one thread's call, microseconds.
    """
    found: dict[str, float] = {}
    with Sandbox() as sandbox:
        small = load_module(sandbox, GUESTS / "small.wat", "busy", "echo")
        calls: dict[str, tuple[Callable[[], object], int]] = {
            "busy": (partial(sandbox.run_sync, small, "busy", _BUSY_ROUNDS.to_bytes(4, "little")), 300),
            "tiny": (partial(sandbox.run_sync, small, "echo", bytes(500)), 2000),
            "hash": (partial(hashlib.sha256, bytes(250_000)), 300),
        }
        for name, (call, count) in calls.items():
            count = max(1, round(count * share))
            ratios: list[float] = []
            alone: list[float] = []
            for _ in range(rounds):
                with collector_off():
                    one, two = _seconds(call, count, threads=1), _seconds(call, count, threads=2)
                ratios.append(2 * one / two)
                alone.append(one / count * 1e6)
            found[name], found[f"{name}_us"] = median(ratios), median(alone)
    return found


def _seconds(call: Callable[[], object], count: int, *, threads: int) -> float:
    """Time until every one of the threads has made ``count`` calls."""
    ready = threading.Barrier(threads + 1)

    def work() -> None:
        ready.wait()
        for _ in range(count):
            call()

    with ThreadPoolExecutor(threads) as pool:
        working = [pool.submit(work) for _ in range(threads)]
        ready.wait()
        started = perf_counter()
        for each in working:
            each.result()
        return perf_counter() - started
