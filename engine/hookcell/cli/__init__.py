"""The ``hookcell`` command: replay recorded runs through hooks, look at a module, see a demo.

Data goes to standard output, everything else to standard error. A decision of a hook never becomes the exit code unless
that is asked for.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Final

from hookcell_sandbox.errors import HookcellError
from hookcell_sandbox.guest_text import escape

from .arguments import parser
from .errors import EXIT_INTERRUPTED, EXIT_PIPE, EXIT_REFUSED, CommandFailed, Misused
from .terminal import Terminal

if TYPE_CHECKING:
    from hookcell_sandbox.limits import Limits

__all__ = ["main"]

_ERROR_CHARACTERS: Final = 2_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, ``sys.argv`` by default; the exit code. Only ``argparse`` itself exits, with 0 or 2."""
    terminal = _terminal()
    try:
        asked = _parsed(arguments, terminal)
        with _logging(terminal):
            code = _command(asked, terminal)
        terminal.out.flush()
    except CommandFailed as error:
        terminal.note(f"hookcell: {error}", "red")
        return error.exit_code
    except HookcellError as error:
        terminal.note(f"hookcell: {error}", "red")
        return EXIT_REFUSED
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


def _command(asked: argparse.Namespace, terminal: Terminal) -> int:
    # Each command is imported when it is called for: `--help` and `inspect` need not wait for wasmtime.
    if asked.command == "inspect":
        from .inspect import inspect

        return inspect(asked.hook, terminal, as_json=asked.json)
    if asked.command == "demo":
        from .demo import demo

        return demo(terminal)
    from .guests import Asked, config_option
    from .run import Run, run

    if asked.show < 0:
        raise Misused(f"--show {asked.show}: give 0 or more")
    configs: dict[str, object] = {}
    for name, config in map(config_option, asked.config):
        if name in configs:
            raise Misused(f"--config {escape(name)} is given twice; give it once")
        configs[name] = config
    wanted = Run(
        asked=Asked(modules=asked.hooks, configs=configs, on_failure=asked.on_failure, limits=_limits(asked)),
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
