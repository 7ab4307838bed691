"""Where a command writes: data to standard output, decoration to standard error, and how wide and colourful each is."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
import unicodedata
from collections.abc import Mapping
from typing import Final, Literal, TextIO

__all__ = ["Progress", "Style", "Terminal", "clipped", "columns_of", "folded", "padded"]

Style = Literal["bold", "dim", "red", "green", "yellow"]

_CODES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}
_COLUMNS: Final = 80
_FEWEST_COLUMNS: Final = 40
_REDRAW_SECONDS: Final = 0.1
_BAR_CELLS: Final = 24


class Terminal:
    """The two streams of one command.

    Args:
        out: For data.
        err: For decoration and errors.
        environment: Where ``NO_COLOR``, ``TERM`` and ``COLUMNS`` are looked up.
    """

    def __init__(
        self, out: TextIO | None = None, err: TextIO | None = None, environment: Mapping[str, str] = os.environ
    ) -> None:
        self.out = sys.stdout if out is None else out
        self.err = sys.stderr if err is None else err
        # https://no-color.org: present and not empty, whatever its value.
        plain = bool(environment.get("NO_COLOR")) or environment.get("TERM") == "dumb"
        self._coloured = {id(stream): not plain and _is_terminal(stream) for stream in (self.out, self.err)}
        # Without a terminal the size is COLUMNS or the usual one, so that what is piped looks the same everywhere.
        columns = shutil.get_terminal_size((_COLUMNS, 24)).columns if _is_terminal(self.out) else _COLUMNS
        asked = environment.get("COLUMNS", "")
        columns = int(asked) if asked.isascii() and asked.isdigit() and int(asked) > 0 else columns
        self.columns = max(columns, _FEWEST_COLUMNS)
        self.unicode = _takes_unicode(self.out)

    def print(self, text: str = "") -> None:
        """One line of data."""
        self.out.write(f"{text}\n")

    def note(self, text: str, style: Style | None = None) -> None:
        """One line of decoration: news, warnings, errors."""
        # Data that was written before stands before it where both go to one terminal.
        self.out.flush()
        self.err.write(f"{self._paint(text, style, self.err)}\n")
        self.err.flush()

    def paint(self, text: str, *styles: Style) -> str:
        """Text for standard output, coloured if that is a terminal."""
        for style in styles:
            text = self._paint(text, style, self.out)
        return text

    def _paint(self, text: str, style: Style | None, stream: TextIO) -> str:
        if style is None or not self._coloured[id(stream)]:
            return text
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m"

    @property
    def shows_progress(self) -> bool:
        """Whether a line that is drawn over and over makes sense on standard error."""
        return _is_terminal(self.err)


class Progress:
    """A bar of one line on standard error, drawn at most ten times a second, and only on a terminal.

    Args:
        terminal: Where.
        what: What is counted, in the plural.
    """

    def __init__(self, terminal: Terminal, what: str) -> None:
        self._terminal = terminal
        self._what = what
        self._due = 0.0
        self._drawn = 0

    def show(self, fraction: float, count: int) -> None:
        """Draw how far it is: a fraction from 0 to 1, and how many were counted."""
        if not self._terminal.shows_progress or time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _REDRAW_SECONDS
        full = round(min(max(fraction, 0.0), 1.0) * _BAR_CELLS)
        bar = "#" * full + "-" * (_BAR_CELLS - full)
        line = f"[{bar}] {count:,} {self._what}"
        self._write(f"\r{line}")
        self._drawn = len(line)

    def clear(self) -> None:
        """Take the bar away, for what is written next."""
        if self._drawn:
            self._write(f"\r{' ' * self._drawn}\r")
            self._drawn = 0

    def _write(self, text: str) -> None:
        self._terminal.err.write(text)
        self._terminal.err.flush()


def columns_of(text: str) -> int:
    """How many columns printable text takes: two for a wide character, none for one that combines."""
    if text.isascii():
        return len(text)
    return sum(_cell(character) for character in text)


def padded(text: str, columns: int, *, right: bool = False) -> str:
    """The text with spaces to the width; ``right`` aligns it there."""
    space = " " * max(columns - columns_of(text), 0)
    return space + text if right else text + space


def clipped(text: str, columns: int) -> str:
    """The text, or as much of its beginning as fits with a mark that it was cut."""
    if columns_of(text) <= columns:
        return text
    taken = 0
    for index, character in enumerate(text):
        taken += _cell(character)
        if taken > columns - 1:
            return f"{text[:index]}…"
    return text


def folded(text: str, columns: int, *, first: str = "", rest: str = "") -> list[str]:
    """The text in lines of at most ``columns``, the first behind ``first`` and the others behind ``rest``.

    A word that is longer, such as a path, stays whole so that it can be copied.
    """
    lines = textwrap.wrap(
        text,
        max(columns, 20 + len(rest)),
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return lines or [first.rstrip()]


def _cell(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:
        return False  # closed


def _takes_unicode(stream: TextIO) -> bool:
    try:
        "µ…·≤█".encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
