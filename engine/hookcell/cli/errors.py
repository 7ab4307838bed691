"""What ends a command, and with which exit code."""

from __future__ import annotations

from typing import Final

__all__ = ["EXIT_DECIDED", "EXIT_INTERRUPTED", "EXIT_PIPE", "EXIT_REFUSED", "EXIT_USAGE", "CommandFailed", "Misused"]

EXIT_REFUSED: Final = 1
"""Something that was given is refused: a module, a config, a line of recorded runs."""

EXIT_USAGE: Final = 2
"""The command line cannot be carried out: an unknown option, a file that is not there."""

EXIT_DECIDED: Final = 3
"""Only with ``--exit-code``: a hook denied a call, or failed."""

EXIT_INTERRUPTED: Final = 130
"""Ctrl-C, as a shell counts it: 128 + SIGINT."""

EXIT_PIPE: Final = 141
"""Whoever read the output has gone, as a shell counts it: 128 + SIGPIPE."""


class CommandFailed(Exception):
    """Ends the command with a message for a person. What a guest or a file wrote is escaped in it already.

    Attributes:
        message: What happened; may have several lines.
        code: For programs.
        place: File, line and column, as far as they are known.
        hint: The next step.
    """

    exit_code = EXIT_REFUSED
    code = "refused"

    def __init__(
        self, message: str, *, code: str | None = None, place: str | None = None, hint: str | None = None
    ) -> None:
        self.message = message
        self.code = code or self.code
        self.place = place
        self.hint = hint
        first, newline, more = message.partition("\n")
        shown = f"{place}: {first}" if place else first
        shown = f"{shown} [{code}]" if code else shown
        super().__init__(f"{shown}{newline}{more}" + (f"\n  next: {hint}" if hint else ""))

    def record(self) -> dict[str, object]:
        """The error as JSON."""
        return {"code": self.code, "message": self.message, "place": self.place, "hint": self.hint}


class Misused(CommandFailed):
    """The command line, or a file that it names, is at fault."""

    exit_code = EXIT_USAGE
    code = "usage"
