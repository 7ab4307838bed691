"""``hookcell bench``: what an isolated call of a hook takes, beside the smallest guest there is, in one run.

Microseconds are this machine's, so the ratio is what may be compared; fuel is the same everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

from hookcell.hook import admission_policy
from hookcell_sandbox.guest_text import escape
from hookcell_sandbox.limits import PAGE_BYTES, Limits

from .bars import amount
from .cases import config_in, read_case
from .errors import CommandFailed
from .guests import sandbox_for
from .json_files import read_json
from .one_call import WatchedSandbox, call_once
from .run_context import load_for
from .sources import hook_file
from .table import Column, table

if TYPE_CHECKING:
    from hookcell_sandbox import Program, Sandbox

    from .terminal import Terminal

__all__ = ["bench", "smallest_guest"]

_SECONDS: Final = 2.0
_LEAST: Final = 21
_MOST: Final = 2_000
_INPUT_AT: Final = 1_024


class _Timed(NamedTuple):
    """Medians of one guest."""

    us: float
    fuel: int


def bench(path: Path, context: Path, terminal: Terminal, *, point: str | None = None, as_json: bool = False) -> int:
    """Time a hook's call under the limits of production and print; the exit code.

    Args:
        path: A module or a source, which is built first.
        context: The file with the call's context, as for ``run``.
        terminal: Where to print.
        point: The hook point; the file may name it.
        as_json: Print one JSON object.

    Raises:
        CommandFailed: A file is not there or no case, the hook is refused, or its call fails.
    """
    document = read_json(context)
    file = hook_file(path)
    with sandbox_for(Limits(), terminal) as sandbox:
        watched = WatchedSandbox(sandbox)
        hook = load_for(file, watched, config_in(document), Limits())
        case = read_case(document, hook, shown=escape(str(context)), point=point)
        called = call_once(hook, watched, case)
        if called.error_code is not None or called.payload is None:
            hint = f"see `hookcell run {escape(str(path))} --context {escape(str(context))}`"
            raise CommandFailed(
                called.error_text or "nothing ran", code=called.error_code, place=escape(str(path)), hint=hint
            )
        smallest = sandbox.load(smallest_guest(case.point, len(called.payload)), admission_policy())
        calls, (own, least) = _measured(sandbox, (hook.program, smallest), case.point, called.payload)
    ratio = own.us / least.us
    if as_json:
        record = {
            "hook": hook.name,
            "digest": hook.digest,
            "point": case.point,
            "inputBytes": len(called.payload),
            "calls": calls,
            "us": round(own.us, 2),
            "fuel": own.fuel,
            "smallest": {"us": round(least.us, 2), "fuel": least.fuel},
            "ratio": round(ratio, 2),
        }
        terminal.print(json.dumps(record, indent=2))
        return 0
    size = amount(len(called.payload), "B")
    terminal.print(f"{terminal.paint(hook.name, 'bold')} at {case.point}, {size} of context, {calls:,} calls each")
    columns = [Column(head="", right=False), Column(head="µs" if terminal.unicode else "us"), Column(head="fuel")]
    rows = [
        ["this hook", f"{own.us:,.1f}", f"{own.fuel:,}"],
        ["smallest guest", f"{least.us:,.1f}", f"{least.fuel:,}"],
        ["ratio", f"{ratio:,.2f}", ""],
    ]
    for line in table(columns, rows, width=terminal.columns - 2):
        terminal.print(f"  {line}")
    return 0


def _measured(
    sandbox: Sandbox, programs: Sequence[Program], point: str, payload: bytes
) -> tuple[int, tuple[_Timed, ...]]:
    """How many calls each program had, one after the other in turn, and their medians."""
    us: list[list[float]] = [[] for _ in programs]
    fuel: list[list[int]] = [[] for _ in programs]
    limits = Limits()
    end = perf_counter() + _SECONDS
    while len(us[0]) < _LEAST or (len(us[0]) < _MOST and perf_counter() < end):
        for program, times, fuels in zip(programs, us, fuel, strict=True):
            started = perf_counter()
            completion = sandbox.run_sync(program, point, payload, limits)
            times.append((perf_counter() - started) * 1e6)
            fuels.append(completion.fuel_used)
    return len(us[0]), tuple(
        _Timed(us=median(times), fuel=int(median(fuels))) for times, fuels in zip(us, fuel, strict=True)
    )


def smallest_guest(point: str, input_bytes: int) -> bytes:
    """A module with a place for the input and an entry point that returns nothing.

    ``(memory) (func hook_alloc (result i32) (i32.const 1024)) (func POINT (result i64) (i64.const 0))``, the parameters
    left out here. Written byte by byte, since there is no assembler where hookcell is installed.
    """
    pages = (_INPUT_AT + input_bytes) // PAGE_BYTES + 1
    types = _vector(b"\x60\x01\x7f\x01\x7f", b"\x60\x02\x7f\x7f\x01\x7e")
    exports = _vector(
        _sized(b"memory") + b"\x02\x00", _sized(b"hook_alloc") + b"\x00\x00", _sized(point.encode()) + b"\x00\x01"
    )
    bodies = _vector(_sized(b"\x00\x41\x80\x08\x0b"), _sized(b"\x00\x42\x00\x0b"))
    sections = {1: types, 3: _vector(b"\x00", b"\x01"), 5: _vector(b"\x00" + _leb(pages)), 7: exports, 10: bodies}
    return b"\x00asm\x01\x00\x00\x00" + b"".join(bytes((kind,)) + _sized(body) for kind, body in sections.items())


def _vector(*items: bytes) -> bytes:
    return _leb(len(items)) + b"".join(items)


def _sized(body: bytes) -> bytes:
    return _leb(len(body)) + body


def _leb(number: int) -> bytes:
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*encoded, number))
