"""Text that a guest chose, made fit for a log, a terminal or a page.

A guest's bytes are never printed as they are: control characters move a terminal's cursor, bidirectional marks
reorder what a reader sees, and a megabyte of it floods a log.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cached_property

__all__ = ["GuestLog", "escape"]

# Everything but letters, marks, numbers, punctuation, symbols and the plain space: controls (Cc), format characters
# such as bidirectional marks (Cf), lone surrogates (Cs), private use (Co), unassigned (Cn), and every other space
# and separator (Zs, Zl, Zp), which pass for the plain space or for a new line.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp"})


def escape(text: str | bytes, *, characters: int = 200) -> str:
    """One line of printable text, at most ``characters`` of the guest's own, with a mark where it was cut.

    Args:
        text: Guest text; bytes are read as UTF-8, what is not becomes ``\\xNN``.
        characters: Most characters of ``text`` that are kept; an escape may print as several.
    """
    if isinstance(text, bytes):
        # A character is at most 4 bytes, so this bounds the decoding without cutting what would be kept.
        cut = len(text) > 4 * characters
        text = text[: 4 * characters].decode("utf-8", "backslashreplace")
        cut = cut or len(text) > characters
    else:
        cut = len(text) > characters
    kept = text[:characters]
    if not (kept.isascii() and kept.isprintable()):
        kept = "".join(_escaped(character) for character in kept)
    return f"{kept}…" if cut else kept


def _escaped(character: str) -> str:
    if character == " " or unicodedata.category(character) not in _UNSAFE:
        return character
    point = ord(character)
    if point <= 0xFF:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"


@dataclass(frozen=True)
class GuestLog:
    """What a guest logged in one call: guest text, with the secrecy of the context it was given.

    Attributes:
        raw: The bytes as the guest left them, at most ``limits.log_bytes``.
        cut: True when the guest wrote more than that; the rest was not copied.
    """

    raw: bytes = b""
    cut: bool = False

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The log's lines, each escaped; a cut log ends with a line that says so."""
        # A byte that is not UTF-8 becomes four characters, so this keeps every line whole.
        lines = [escape(line, characters=4 * len(line)) for line in self.raw.split(b"\n")]
        if lines and not lines[-1]:
            lines.pop()
        if self.cut:
            lines.append("… [log cut at the limit]")
        return tuple(lines)

    def __bool__(self) -> bool:
        return bool(self.raw) or self.cut


EMPTY_LOG = GuestLog()
