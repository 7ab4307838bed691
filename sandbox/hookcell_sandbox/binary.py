"""A bounded cursor over the WebAssembly binary format: bytes, LEB128 integers, and nothing past its end."""

from __future__ import annotations

__all__ = ["Cursor", "Malformed"]


class Malformed(Exception):
    """The bytes at ``offset`` are not what the format asks for; reading cannot go on from there.

    Never leaves the reader: the section walk turns it into a finding with the same ``code``.
    """

    def __init__(self, code: str, what: str, *, offset: int, value: int | str | None = None) -> None:
        self.code = code
        self.what = what
        self.offset = offset
        self.value = value
        super().__init__(what)


class Cursor:
    """Reads forward through ``buffer[offset:end]``, never past ``end``.

    Every method raises `Malformed`: ``truncated`` where ``end`` comes too soon, ``bad_integer`` for an integer with
    more bytes or more bits than its type has. Padding within the allowed bytes is legal (linkers emit it) and accepted.

    Source: WebAssembly core specification, "Binary Format", "Integers".
    """

    __slots__ = ("buffer", "end", "offset")

    def __init__(self, buffer: bytes, offset: int, end: int) -> None:
        self.buffer = buffer
        self.offset = offset
        self.end = end

    @property
    def left(self) -> int:
        """Bytes not yet read."""
        return self.end - self.offset

    def byte(self) -> int:
        offset = self.offset
        if offset >= self.end:
            raise self.truncated("a byte")
        self.offset = offset + 1
        return self.buffer[offset]

    def u32(self) -> int:
        # One byte is by far the most common, and this is the hottest call of the reader.
        offset = self.offset
        if offset < self.end:
            first = self.buffer[offset]
            if first < 0x80:
                self.offset = offset + 1
                return first
        return self._unsigned(32)

    def u64(self) -> int:
        return self._unsigned(64)

    def s32(self) -> int:
        return self._signed(32)

    def s33(self) -> int:
        """An integer of 33 bits: how a heap type is written, negative for an abstract one."""
        return self._signed(33)

    def s64(self) -> int:
        return self._signed(64)

    def take(self, size: int, what: str) -> bytes:
        """The next ``size`` bytes; ``size`` is untrusted and checked before anything is copied."""
        start = self.offset
        self.skip(size, what)
        return self.buffer[start : start + size]

    def skip(self, size: int, what: str) -> None:
        if size > self.end - self.offset:
            raise self.truncated(f"{what} of {size:_} bytes")
        self.offset += size

    def truncated(self, what: str) -> Malformed:
        return Malformed("truncated", f"{what} expected, {self.left:_} bytes left", offset=self.offset)

    def _unsigned(self, bits: int) -> int:
        # The bytes are read in place: a padded integer would be five calls, and a hostile module has a million of them.
        buffer, offset, end = self.buffer, self.offset, self.end
        value = shift = 0
        while True:
            if offset >= end:
                self.offset = offset
                raise self.truncated("a byte")
            byte = buffer[offset]
            offset += 1
            # In the last byte only the bits that the type has left may be set; the continuation bit is not among them.
            if shift + 7 > bits and byte >> (bits - shift):
                self.offset = offset
                raise self._too_long(bits)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                self.offset = offset
                return value
            shift += 7

    def _signed(self, bits: int) -> int:
        buffer, offset, end = self.buffer, self.offset, self.end
        value = shift = 0
        while True:
            if offset >= end:
                self.offset = offset
                raise self.truncated("a byte")
            byte = buffer[offset]
            offset += 1
            low = byte & 0x7F
            if byte < 0x80 or shift + 7 >= bits:
                signed = low - 0x80 if low & 0x40 else low
                spare = bits - shift
                self.offset = offset
                if byte >= 0x80 or (spare < 7 and not -(1 << (spare - 1)) <= signed < 1 << (spare - 1)):
                    raise self._too_long(bits)
                return value + (signed << shift)
            value |= low << shift
            shift += 7

    def _too_long(self, bits: int) -> Malformed:
        return Malformed("bad_integer", f"integer of more than {bits} bits", offset=self.offset - 1)
