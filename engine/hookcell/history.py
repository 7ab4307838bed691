"""The conversation, encoded once.

A chain hands the same messages to every hook. Each message's msgpack is kept beside it, and the whole once spliced, so
that one more message costs its own encoding and a copy, and a hook call costs a copy.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any, Self, SupportsIndex, cast, overload

from .crossing import encode_value, pointer

__all__ = ["History", "array_header"]

Message = dict[str, object]


def array_header(count: int) -> bytes:
    """The msgpack header of an array of ``count`` items."""
    if count < 16:
        return bytes((0x90 | count,))
    return b"\xdc" + count.to_bytes(2) if count < 2**16 else b"\xdd" + count.to_bytes(4)


class History(list[Message]):
    """A list of messages that keeps their encoded bytes.

    Every way of changing the list keeps the bytes right. Editing a message in place is not seen: whoever let trusted
    code do that calls `changed` afterwards.
    """

    __slots__ = ("_parts", "_whole")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        super().__init__(messages)
        self._parts: list[bytes | None] = [None] * len(self)
        self._whole: bytes | None = None

    def changed(self) -> None:
        """Drop all kept bytes: a message may have been edited in place."""
        self._parts = [None] * len(self)
        self._whole = None

    def encoded(self, path: str = "/messages") -> bytes:
        """The msgpack array of all messages.

        Args:
            path: JSON Pointer of the list, for the error.

        Raises:
            Uncrossable: A message holds a value that cannot cross.
        """
        if len(self._parts) != len(self):
            self.changed()  # something changed the list below these methods, e.g. heapq or list.append(history, …)
        elif self._whole is not None:
            return self._whole
        parts = self._parts
        for index, part in enumerate(parts):
            if part is None:
                # Three containers around it at most: the context, its state (C7) and this list.
                parts[index] = encode_value(self[index], path + pointer(index), enclosing=3)
        # One join and no sum: a megabyte's copy costs what its fresh pages cost.
        self._whole = b"".join((array_header(len(parts)), *cast("list[bytes]", parts)))
        return self._whole

    def append(self, message: Message, /) -> None:
        super().append(message)
        self._parts.append(None)
        self._whole = None

    def extend(self, messages: Iterable[Message], /) -> None:
        added = list(messages)
        super().extend(added)
        self._parts.extend([None] * len(added))
        self._whole = None

    def insert(self, index: SupportsIndex, message: Message, /) -> None:
        super().insert(index, message)
        self._parts.insert(index, None)
        self._whole = None

    def pop(self, index: SupportsIndex = -1, /) -> Message:
        message = super().pop(index)
        self._parts.pop(index)
        self._whole = None
        return message

    def remove(self, message: Message, /) -> None:
        del self[self.index(message)]

    def clear(self) -> None:
        super().clear()
        self.changed()

    def reverse(self) -> None:
        super().reverse()
        self._parts.reverse()
        self._whole = None

    def sort(self, *, key: Callable[[Message], Any] | None = None, reverse: bool = False) -> None:  # type: ignore[override]  # a message has no order of its own, so the overload without a key is of no use
        try:
            super().sort(key=key, reverse=reverse)  # type: ignore[arg-type]  # as above
        finally:
            self.changed()  # a comparison that raises leaves the list in some other order

    @overload
    def __setitem__(self, index: SupportsIndex, message: Message, /) -> None: ...
    @overload
    def __setitem__(self, index: slice, message: Iterable[Message], /) -> None: ...
    def __setitem__(self, index: Any, message: Any, /) -> None:
        if isinstance(index, slice):
            messages = list(cast("Iterable[Message]", message))
            super().__setitem__(cast("slice", index), messages)
            self._parts[index] = [None] * len(messages)
        else:
            super().__setitem__(index, message)
            self._parts[index] = None
        self._whole = None

    def __delitem__(self, index: SupportsIndex | slice, /) -> None:
        super().__delitem__(index)
        del self._parts[index]
        self._whole = None

    def __iadd__(self, messages: Iterable[Message], /) -> Self:
        self.extend(messages)
        return self

    def __imul__(self, times: SupportsIndex, /) -> Self:
        super().__imul__(times)
        self._parts *= times
        self._whole = None
        return self

    def adopt(self, other: History) -> None:
        """Become a list of ``other``'s messages, with the bytes it kept: whoever holds this list sees the change."""
        super().__setitem__(slice(None), other)
        other._with_bytes_of(self)

    def copy(self) -> History:
        """A list of the same messages, with the bytes kept so far."""
        return self._with_bytes_of(History(self))

    def __copy__(self) -> History:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> History:
        return self._with_bytes_of(History(copy.deepcopy(list(self), memo)))

    def __reduce__(self) -> tuple[type[History], tuple[list[Message]]]:
        return History, (list(self),)

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> tuple[type[History], tuple[list[Message]]]:
        return self.__reduce__()

    def _with_bytes_of(self, twin: History) -> History:
        if len(self._parts) == len(self):
            twin._parts = list(self._parts)
            twin._whole = self._whole
        else:
            twin.changed()
        return twin
