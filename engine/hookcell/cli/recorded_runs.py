"""Recorded runs in a file, one JSON object a line, plain or gzip; read one at a time, each line bounded.

A line that cannot be read is handed out as one, with its reason: nothing is skipped in silence.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import Final, NoReturn, Self

from hookcell.shapes import is_map
from hookcell_sandbox.guest_text import escape

from .errors import Misused

__all__ = ["LINE_BYTES", "Line", "RefusedLine", "RunFile", "opened"]

LINE_BYTES: Final = 64 * 1024 * 1024
"""The longest line that is read, decompressed; a longer one is refused, so that a bomb takes no more than this."""

_GZIP_MAGIC: Final = b"\x1f\x8b"
_ONE_A_LINE: Final = "give one JSON object a line"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line that holds a JSON object; ``number`` counts from 1."""

    number: int
    record: dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedLine:
    """A line that does not; ``reason`` says why and what to do, escaped."""

    number: int
    reason: str


class RunFile:
    """An open file of recorded runs. Iterate over it once; a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._raw = opened(path)
        self._size = path.stat().st_size
        # A pipe is looked into, for it cannot be wound back.
        packed = self._raw.peek(len(_GZIP_MAGIC)).startswith(_GZIP_MAGIC)
        self._lines = gzip.GzipFile(fileobj=self._raw) if packed else self._raw

    @property
    def fraction(self) -> float:
        """How much of the file was read, from 0 to 1; 0 of a pipe, whose size nobody knows."""
        return self._raw.tell() / self._size if self._size else 0.0

    def __iter__(self) -> Iterator[Line | RefusedLine]:
        number = 0
        while True:
            number += 1
            try:
                raw = self._lines.readline(LINE_BYTES + 1)
                if len(raw) > LINE_BYTES:
                    self._skip_line(raw)
                    yield RefusedLine(number=number, reason=f"the line is over {LINE_BYTES:_} bytes; split the run")
                    continue
            except (EOFError, OSError, zlib.error) as error:
                reason = f"the file cannot be read any further ({escape(str(error))}); make or copy it again"
                yield RefusedLine(number=number, reason=reason)
                return
            if not raw:
                return
            if number == 1:
                raw = raw.removeprefix(b"\xef\xbb\xbf")  # the mark that some editors put before UTF-8
            if raw.strip():
                yield _line(number, raw)

    def _skip_line(self, raw: bytes) -> None:
        while raw and not raw.endswith(b"\n"):
            raw = self._lines.readline(LINE_BYTES)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._raw.close()


def opened(path: Path) -> BufferedReader:
    """The file, open for reading.

    Raises:
        Misused: There is no such file, or it cannot be opened.
    """
    try:
        if path.is_dir():
            raise Misused(f"{escape(str(path))} is a directory; give a file")
        return path.open("rb")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise Misused(f"{escape(str(path))} cannot be opened: {why}") from error


def _line(number: int, raw: bytes) -> Line | RefusedLine:
    try:
        record: object = json.loads(raw.decode(), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        return RefusedLine(number=number, reason=f"byte {error.start + 1:_} is not UTF-8; {_ONE_A_LINE}, in UTF-8")
    except json.JSONDecodeError as error:
        hint = _ONE_A_LINE
        if number == 1 and raw.strip() in (b"{", b"["):
            each = "." if raw.strip() == b"{" else ".[]"
            hint = f"{hint}: `jq -c '{each}' FILE` makes that of this file"
        return RefusedLine(number=number, reason=f"no JSON at column {error.colno:_} ({escape(error.msg)}); {hint}")
    except (ValueError, RecursionError) as error:
        why = "it nests too deep" if isinstance(error, RecursionError) else escape(str(error))
        return RefusedLine(number=number, reason=f"no strict JSON ({why}); {_ONE_A_LINE}")
    if not is_map(record):
        return RefusedLine(number=number, reason=f"a JSON {_kind(record)}, not an object; {_ONE_A_LINE}")
    return Line(number=number, record=record)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _kind(value: object) -> str:
    if value is None or isinstance(value, bool):
        return "constant"
    if isinstance(value, list):
        return "array"
    return "string" if isinstance(value, str) else "number"
