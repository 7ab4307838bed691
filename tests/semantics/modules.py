"""The module of `scripted.c` and its variants: fewer entry points, another manifest. Each is compiled once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hookcell import POINTS, admission_policy
from hookcell_guest.build_c import build

if TYPE_CHECKING:
    from hookcell_sandbox import Program, Sandbox

__all__ = ["Modules", "build_scripted", "variant"]

_CUSTOM, _EXPORTS = 0, 7


class Modules:
    """Variants of one module in one sandbox."""

    def __init__(self, sandbox: Sandbox, wasm: bytes) -> None:
        self.sandbox = sandbox
        self.wasm = wasm
        self._programs: dict[tuple[frozenset[str], str], Program] = {}

    def program(self, points: Iterable[str], manifest: Mapping[str, object]) -> Program:
        """The variant with these entry points and this manifest.

        Raises:
            ModuleRejected: The manifest is refused.
        """
        key = (frozenset(points), json.dumps(manifest))
        if key not in self._programs:
            wasm = variant(self.wasm, points=key[0], manifest=key[1].encode())
            self._programs[key] = self.sandbox.load(wasm, admission_policy())
        return self._programs[key]


def build_scripted(folder: Path) -> bytes:
    """Compile `scripted.c`; raises `BuildFailed` where the compiler is missing, for without it no rule is tested."""
    out = folder / "scripted.wasm"
    build(Path(__file__).with_name("scripted.c"), out)
    return out.read_bytes()


def variant(wasm: bytes, *, points: frozenset[str], manifest: bytes) -> bytes:
    """A module without the other hook points among its exports, and with a manifest section at its end."""
    out = bytearray(wasm[:8])
    for number, content in _sections(wasm):
        out += _section(number, _without_points(content, points) if number == _EXPORTS else content)
    return bytes(out + _section(_CUSTOM, _sized(b"hookcell") + manifest))


def _without_points(exports: bytes, points: frozenset[str]) -> bytes:
    kept: list[bytes] = []
    count, at = _number(exports, 0)
    for _ in range(count):
        start = at
        length, at = _number(exports, at)
        name = exports[at : at + length].decode()
        _, at = _number(exports, at + length + 1)  # a byte of kind, then the index
        if name in points or name not in POINTS:
            kept.append(exports[start:at])
    return _leb(len(kept)) + b"".join(kept)


def _sections(wasm: bytes) -> Iterator[tuple[int, bytes]]:
    at = 8
    while at < len(wasm):
        size, start = _number(wasm, at + 1)
        yield wasm[at], wasm[start : start + size]
        at = start + size


def _section(number: int, content: bytes) -> bytes:
    return bytes((number,)) + _sized(content)


def _sized(content: bytes) -> bytes:
    return _leb(len(content)) + content


def _number(raw: bytes, at: int) -> tuple[int, int]:
    """An unsigned LEB128 number, and where it ends."""
    value = shift = 0
    while True:
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _leb(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
