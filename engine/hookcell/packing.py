"""msgpack's two calls. The package has no annotations, so their types are given here, once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import msgpack  # type: ignore[import-untyped]  # no stubs exist

__all__ = ["ExtType", "pack", "unpack"]

_msgpack: Final = cast("Any", msgpack)

pack: Final = cast("Callable[[object], bytes]", _msgpack.packb)
"""The value's msgpack; text is encoded strictly, a number over 64 bits or another type is an error."""

unpack: Final = cast("Callable[..., dict[str, object]]", _msgpack.unpackb)
"""One value of bytes that `codec.scan` passed."""

ExtType: Final = cast("type[tuple[int, bytes]]", _msgpack.ExtType)
