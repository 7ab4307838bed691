"""The ``hookcell`` command: write, build, check and test a hook, replay recorded runs through hooks, see a demo.

Data goes to standard output, everything else to standard error. A decision of a hook never becomes the exit code unless
that is asked for.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import sys
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Final

from hookcell_sandbox.errors import HookcellError
from hookcell_sandbox.guest_text import escape

from .arguments import parser
from .errors import EXIT_INTERRUPTED, EXIT_PIPE, CommandFailed, Misused
from .terminal import Terminal

if TYPE_CHECKING:
    from hookcell_sandbox.limits import Limits

__all__ = ["main"]

_ERROR_CHARACTERS: Final = 2_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, ``sys.argv`` by default; the exit code. Only ``argparse`` itself exits, with 0 or 2."""
    terminal = _terminal()
    asked = argparse.Namespace(json=False)
    try:
        asked = _parsed(arguments, terminal)
        with _logging(terminal):
            code = _command(asked, terminal)
        terminal.out.flush()
    except CommandFailed as error:
        return _failed(error, terminal, as_json=getattr(asked, "json", False))
    except HookcellError as error:
        return _failed(CommandFailed(str(error), code=error.code), terminal, as_json=getattr(asked, "json", False))
    except KeyboardInterrupt:
        terminal.note("hookcell: interrupted")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # What is still buffered has nowhere to go, and the interpreter would complain about it as it exits.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PIPE
    return code


def _parsed(arguments: Sequence[str] | None, terminal: Terminal) -> argparse.Namespace:
    try:
        return parser().parse_args(arguments)
    except SystemExit:
        terminal.out.flush()  # help goes to a pipe too, and one that was closed is met here
        raise


def _failed(error: CommandFailed, terminal: Terminal, *, as_json: bool) -> int:
    """Say why the command ended: to a person, and to a program that wanted JSON."""
    terminal.note(f"hookcell: {error}", "red")
    if as_json:
        terminal.print(json.dumps({"error": error.record()}, indent=2))
        terminal.out.flush()
    return error.exit_code


def _command(asked: argparse.Namespace, terminal: Terminal) -> int:
    # Each command is imported when it is called for: `--help` and `inspect` need not wait for wasmtime.
    if asked.command == "inspect":
        from .inspect import inspect

        return inspect(asked.hook, terminal, as_json=asked.json)
    if asked.command == "demo":
        from .demo import demo

        return demo(terminal)
    from .author_commands import author_command

    if (code := author_command(asked, terminal)) is not None:
        return code
    return _run_on_context(asked, terminal) if asked.context is not None else _run_on_records(asked, terminal)


def _run_on_context(asked: argparse.Namespace, terminal: Terminal) -> int:
    from .run_context import ContextRun, run_context

    for option in ("tools", "ndjson", "show", "exit_code", "on_failure"):
        if getattr(asked, option):
            raise Misused(f"--{option.replace('_', '-')} goes with --on; leave it out, or give recorded runs")
    if len(asked.hooks) > 1 or len(asked.config) > 1:
        raise Misused("--context calls one hook with one config; give one of each")
    wanted = ContextRun(
        hook=asked.hooks[0],
        context=asked.context,
        config=asked.config[0] if asked.config else None,
        point=asked.point,
        limits=_limits(asked),
    )
    return run_context(wanted, terminal, as_json=asked.json)


def _run_on_records(asked: argparse.Namespace, terminal: Terminal) -> int:
    from .guests import Asked, config_option
    from .run import Run, run

    if asked.point is not None:
        raise Misused("--point goes with --context; recorded runs have points of their own")
    if asked.show < 0:
        raise Misused(f"--show {asked.show}: give 0 or more")
    configs: dict[str, object] = {}
    for name, config in map(config_option, asked.config):
        if name in configs:
            raise Misused(f"--config {escape(name)} is given twice; give it once")
        configs[name] = config
    on_failure = asked.on_failure or "skip"
    wanted = Run(
        asked=Asked(modules=asked.hooks, configs=configs, on_failure=on_failure, limits=_limits(asked)),
        source=asked.on,
        tools=asked.tools,
        output="json" if asked.json else "ndjson" if asked.ndjson else "text",
        show=asked.show,
        decisions_exit=asked.exit_code,
    )
    return run(wanted, terminal)


def _limits(asked: argparse.Namespace) -> Limits:
    from hookcell_sandbox.limits import MIB, Limits

    given = {
        "fuel": asked.fuel,
        "deadline_ms": asked.deadline,
        "memory_bytes": None if asked.memory is None else asked.memory * MIB,
    }
    try:
        return Limits(**{name: value for name, value in given.items() if value is not None})
    except ValueError as error:
        raise Misused(f"limits of a call: {error}") from error


def _terminal() -> Terminal:
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            # A name that the terminal's encoding lacks is shown as its number, instead of ending the command.
            reconfigure(errors="backslashreplace")
    return Terminal()


@contextlib.contextmanager
def _logging(terminal: Terminal) -> Generator[None]:
    """Warnings of the sandbox as notes. The engine's are left out: the report counts every failure it logs."""
    sandbox, engine = logging.getLogger("hookcell_sandbox"), logging.getLogger("hookcell")
    shown, nothing = _Notes(terminal), logging.NullHandler()
    sandbox.addHandler(shown)
    engine.addHandler(nothing)
    before, engine.propagate = engine.propagate, False
    try:
        yield
    finally:
        sandbox.removeHandler(shown)
        engine.removeHandler(nothing)
        engine.propagate = before


class _Notes(logging.Handler):
    """Log records as notes on standard error."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__(logging.WARNING)
        self._terminal = terminal

    def emit(self, record: logging.LogRecord) -> None:
        self._terminal.note(f"hookcell: {escape(record.getMessage(), characters=_ERROR_CHARACTERS)}", "yellow")
