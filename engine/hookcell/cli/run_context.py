"""``hookcell run HOOK --context FILE``: one call, and everything that came of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hookcell_sandbox.guest_text import escape

from .cases import Case, config_in, read_case
from .errors import EXIT_REFUSED
from .guests import config_option, load_guest, sandbox_for
from .json_diff import as_json, changes, diff_lines, json_text
from .json_files import parse_json, read_json
from .one_call import Called, WatchedSandbox, call_once
from .sources import HookFile, hook_file
from .terminal import folded
from .usage import Used, loosened, usage, usage_lines

if TYPE_CHECKING:
    from hookcell.hook import GuestHook
    from hookcell_sandbox.limits import Limits

    from .terminal import Terminal

__all__ = ["ContextRun", "load_for", "run_context"]

_OUTCOME_CHARACTERS: Final = 2_000
_STACK_LINES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextRun:
    """What was asked for.

    Attributes:
        hook: A module or a source.
        context: The file with the context.
        config: ``FILE``, JSON or ``NAME=`` either; goes before the file's own.
        point: The hook point; the file may name it.
        limits: Those of production.
    """

    hook: Path
    context: Path
    config: str | None = None
    point: str | None = None
    limits: Limits


def run_context(asked: ContextRun, terminal: Terminal, *, as_json: bool = False) -> int:
    """Call the hook once and print; the exit code, that of a refusal where the call failed or production would fail it.

    Raises:
        CommandFailed: Before the call: a file is not there or no case, the hook is refused.
    """
    document = read_json(asked.context)
    config = config_in(document) if asked.config is None else _config(asked.config)
    file = hook_file(asked.hook)
    allowed = loosened(asked.limits)
    with sandbox_for(allowed, terminal) as sandbox:
        watched = WatchedSandbox(sandbox)
        hook = load_for(file, watched, config, allowed)
        case = read_case(document, hook, shown=escape(str(asked.context)), point=asked.point)
        called = call_once(hook, watched, case)
    used = usage(called, asked.limits)
    if as_json:
        terminal.print(json.dumps(_record(hook, case, called, used), indent=2))
    else:
        for line in _lines(hook, case, called, used, terminal):
            terminal.print(line)
    return EXIT_REFUSED if called.error_code is not None or any(each.refused for each in used) else 0


def load_for(file: HookFile, watched: WatchedSandbox, config: object, limits: Limits) -> GuestHook:
    """The hook with a config, None for none."""
    return load_guest(file.wasm, file.path, sandbox=watched, config_of=lambda _: config, limits=limits)


def _config(text: str) -> object:
    if text.lstrip().startswith("{"):
        return parse_json(text, "--config")
    return config_option(text)[1] if "=" in text else read_json(Path(text))


def _record(hook: GuestHook, case: Case, called: Called, used: list[Used]) -> dict[str, Any]:
    code = called.error_code
    return {
        "hook": hook.name,
        "digest": hook.digest,
        "point": case.point,
        "ok": code is None and not any(each.refused for each in used),
        "outcome": None if called.outcome is None else as_json(called.outcome),
        "error": None if code is None else {"code": code, "message": called.error_text},
        "decision": None if called.decision is None else called.decision.kind,
        "changes": [change.record() for change in changes(called.before, called.after)],
        "log": {"lines": list(called.log.lines), "cut": called.log.cut},
        "usage": {each.name: each.record() for each in used},
        "now": case.moment.now,
        "seed": case.moment.seed,
    }


def _lines(hook: GuestHook, case: Case, called: Called, used: list[Used], terminal: Terminal) -> Iterator[str]:
    yield f"{terminal.paint(hook.name, 'bold')} at {case.point}: {_verdict(called, terminal)}"
    if (text := called.error_text) is not None:
        yield from folded(f"{text} [{called.error_code}]", terminal.columns, first="  ", rest="  ")
        yield from _stack(called)
        yield f"  next: {_next(called)}"
    if called.outcome:
        yield ""
        yield terminal.paint("Outcome", "bold")
        for key, value in called.outcome.items():
            yield f"  {escape(key)}: {escape(json_text(value), characters=_OUTCOME_CHARACTERS)}"
    found = list(changes(called.before, called.after))
    yield ""
    yield terminal.paint("What changed" if found else "Nothing of the context changed", "bold")
    yield from diff_lines(found, terminal)
    if called.log:
        yield ""
        yield terminal.paint("Log", "bold")
        yield from (f"  {line}" for line in called.log.lines)
    yield ""
    yield terminal.paint("Used, against the limits of production", "bold")
    yield from usage_lines(used, terminal)
    refusing = [each.name for each in used if each.refused]
    if refusing:
        yield terminal.paint(f"production would refuse this call: {', '.join(refusing)}", "red")
        yield "  next: do less for each call, or ask the host to raise Limits"


def _verdict(called: Called, terminal: Terminal) -> str:
    if called.error_code is not None:
        return terminal.paint("failed", "bold", "red")
    entry = called.decision.trace[-1].outcome if called.decision is not None and called.decision.trace else "nothing"
    return terminal.paint(entry, "bold", "red" if entry == "deny" else "green")


def _stack(called: Called) -> Iterator[str]:
    stack = getattr(called.failure, "stack", None)
    lines = stack.strip().split("\n") if isinstance(stack, str) else []
    yield from (f"    {escape(line.strip(), characters=300)}" for line in lines[:_STACK_LINES])
    if len(lines) > _STACK_LINES:
        yield f"    … and {len(lines) - _STACK_LINES} more lines"


_HINTS: Final = {
    "threw": "see what it threw and where; what it logged until then is below",
    "trap": "look for an index, a pointer or a recursion that runs away; log before it to find the place",
    "fuel": "look for a loop without an end, or do less for each call",
    "deadline": "look for a loop without an end, or do less for each call",
    "memory": "hold less at once, or ask the host to raise Limits.memory_bytes",
    "output": "return less: a patch instead of a whole value",
    "input": "ask for fewer fields in the manifest's needs",
    "outcome_invalid": "return what the point allows: see guest_sdk/schema",
    "validation": "give arguments that fit the toolSchema of the context",
    "protocol": "build the hook with an SDK of ABI 1",
}


def _next(called: Called) -> str:
    return _HINTS.get(called.error_code or "", "see the README's table of errors for the code")
