"""The variants of the round robin: each call that a ratio compares, made ready."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from floor import Floor, FloorMissing
from guests import (
    GUESTS,
    Case,
    assembled,
    case_of,
    history_of,
    load_module,
    records_of,
    shipped_hook,
    tool_call_context,
    tool_result_context,
)
from peers import Public, extism_calls, subprocess_call
from rounds import Variant, awaited, timed

from hookcell import GuestHook, History, HookRegistry, run_point, run_point_sync
from hookcell_sandbox import ArtifactCache, Sandbox

__all__ = ["Workshop", "workshop"]

_KB, _MB = 1_000, 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """What is measured in rounds, and why some of it is not.

    Attributes:
        variants: In the order of a round.
        missing: Name of a variant that cannot be measured here → the tool that is missing.
    """

    variants: list[Variant]
    missing: dict[str, str]


@contextmanager
def workshop() -> Generator[Workshop]:
    """Load the guests, start the C program and an event loop, and check that all variants of a case answer alike."""
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hookcell-benchmark-")))
        artifacts = scratch / "artifacts"
        sandbox = stack.enter_context(Sandbox(cache=ArtifactCache(artifacts)))
        runner = stack.enter_context(asyncio.Runner())
        missing: dict[str, str] = {}

        guard, redact = (shipped_hook(sandbox, name) for name in ("guard", "redact"))
        reader = GuestHook.load(assembled(GUESTS / "listening.wat"), sandbox=sandbox, name="reader")
        cases = _cases(sandbox, guard, redact)
        floor = _floor(stack, scratch, artifacts, sandbox, missing)
        public = Public(artifacts, sandbox.settings, sandbox.limits)
        step = partial(_step, sandbox, runner)
        none, long, result = tool_call_context(History()), tool_call_context(history_of(_MB)), _result(_KB // 2)
        # What is compared with a case stands beside it in a round.
        beside = {
            "redact": [
                Variant(name="public_redact", batch=timed(_alike(cases["redact"], public.call_of, sandbox)), calls=50),
                Variant(name="subprocess", batch=timed(subprocess_call(result)), calls=1),
                *step("redact", redact, "post_tool_call", result),
            ],
            "guard": [
                *step("guard", guard, "pre_tool_call", none),
                *step("guard_history_1m", guard, "pre_tool_call", long)[1:],
                _step_sync("guard", guard, "pre_tool_call", none),
            ],
            "echo": _extism(cases["echo"], missing),
            "copy_1m": step("reader_1m", reader, "pre_tool_call", long, calls=20),
        }
        variants: list[Variant] = []
        for name, case in cases.items():
            variants += _isolated(name, case, sandbox, floor)
            variants += beside.get(name, [])
        yield Workshop(variants=variants, missing=missing)


def _cases(sandbox: Sandbox, guard: GuestHook, redact: GuestHook) -> dict[str, Case]:
    """Name → call. Those of at most 1 KB first."""
    small = load_module(sandbox, GUESTS / "small.wat", "echo", "copy")
    return {
        "redact": case_of(redact, "post_tool_call", _result(_KB // 2)),
        "guard": case_of(guard, "pre_tool_call", tool_call_context(History())),
        "echo": Case(program=small, entry="echo", payload=bytes(_KB // 2)),
        "copy_100k": Case(program=small, entry="copy", payload=bytes(100 * _KB)),
        "redact_100k": case_of(redact, "post_tool_call", _result(100 * _KB)),
        "copy_1m": Case(program=small, entry="copy", payload=bytes(_MB)),
        "redact_1m": case_of(redact, "post_tool_call", _result(_MB)),
    }


_CALLS = {"redact": 300, "guard": 300, "echo": 300, "copy_100k": 100, "redact_100k": 20, "copy_1m": 20, "redact_1m": 3}


def _result(size: int) -> dict[str, object]:
    return tool_result_context(records_of(size))


def _floor(stack: ExitStack, scratch: Path, artifacts: Path, sandbox: Sandbox, missing: dict[str, str]) -> Floor | None:
    try:
        return stack.enter_context(Floor(scratch, artifacts, sandbox.settings, sandbox.limits))
    except FloorMissing as why:
        missing.update({f"c_{name}": str(why) for name in _CALLS})
        return None


def _isolated(name: str, case: Case, sandbox: Sandbox, floor: Floor | None) -> list[Variant]:
    """Our call in a plain thread, and the floor's."""
    call = partial(sandbox.run_sync, case.program, case.entry, case.payload, sandbox.limits)
    ours = call()
    made = [Variant(name=f"isolated_{name}", batch=timed(call), calls=_CALLS[name])]
    if floor is not None:
        guest = floor.guest(case)
        _same(name, floor.answer(guest), (ours.fuel_used, ours.output or b""))
        made.append(Variant(name=f"c_{name}", batch=floor.batch(guest), calls=_CALLS[name]))
    return made


def _extism(echo: Case, missing: dict[str, str]) -> list[Variant]:
    counts = {"extism_fresh": 50, "extism_compiling": 10, "extism_reused": 300}
    calls = extism_calls(assembled(GUESTS / "extism_echo.wat"), echo.payload)
    if calls is None:
        missing.update(dict.fromkeys(counts, "extism is not installed: pip install 'hookcell[bench]'"))
        return []
    for name, call in calls.items():
        _same(name, call(), echo.payload)
    return [Variant(name=name, batch=timed(call), calls=counts[name]) for name, call in calls.items()]


def _step(
    sandbox: Sandbox,
    runner: asyncio.Runner,
    name: str,
    hook: GuestHook,
    point: str,
    context: dict[str, object],
    *,
    calls: int = 300,
) -> list[Variant]:
    """The bare awaited call, and one hook's turn through the engine's chain that makes the very same call."""
    case = case_of(hook, point, context)
    bare = partial(sandbox.run, case.program, case.entry, case.payload, sandbox.limits)
    step = partial(run_point, HookRegistry([hook]).snapshot(), point, context)
    sent = runner.run(step()).trace[0].bytes_in
    _same(name, sent, len(case.payload))
    return [
        Variant(name=f"awaited_{name}", batch=awaited(bare, runner), calls=calls),
        Variant(name=f"step_{name}", batch=awaited(step, runner), calls=calls),
    ]


def _step_sync(name: str, hook: GuestHook, point: str, context: dict[str, object]) -> Variant:
    step: Callable[[], object] = partial(run_point_sync, HookRegistry([hook]).snapshot(), point, context)
    return Variant(name=f"step_sync_{name}", batch=timed(step), calls=300)


def _alike(
    case: Case, call_of: Callable[[Case], Callable[[], bytes | None]], sandbox: Sandbox
) -> Callable[[], bytes | None]:
    """A peer's call of a case, which gives what ours gives."""
    call = call_of(case)
    _same(case.entry, call(), sandbox.run_sync(case.program, case.entry, case.payload).output)
    return call


def _same(name: str, found: object, expected: object) -> None:
    if found != expected:
        raise RuntimeError(f"the variants of {name} do not answer alike: {str(found)[:200]} and {str(expected)[:200]}")
