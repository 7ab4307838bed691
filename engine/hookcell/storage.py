"""A hook's own persistent value, and where it lives (SEMANTICS G3).

A storage holds opaque bytes under a key and a revision. Its two methods may be plain or ``async``: the chain awaits
what they return when there is something to await, as it does with host hooks. So one protocol serves a dictionary
under `run_point_sync` and a database driver under `run_point`, and neither needs a second set of methods.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Literal, Protocol

__all__ = ["HookStorage", "InMemoryStorage", "StorageFull", "StorageKey", "StorageScope", "Stored"]

StorageScope = Literal["run", "session", "hook"]
"""How long a hook's storage lasts and who shares it: one run, one session, or every run of the hook."""

# What a dictionary entry costs beside its text and value, so that a million empty values cannot hide under the bound.
_ENTRY_BYTES = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageKey:
    """Whose value it is. The module's digest is not part of it: storage survives new versions of a hook.

    Attributes:
        hook: The hook's name.
        scope: See `StorageScope`.
        owner: The run's or the session's id; empty for the scope ``hook``.
        tenant: The host's customer; values never cross tenants.
        environment: For example ``production``; values never cross environments.
    """

    hook: str
    scope: StorageScope
    owner: str
    tenant: str
    environment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A value as read.

    Attributes:
        revision: Changes with every write of the key; 0 when nothing is stored.
        value: One msgpack value, or None when nothing is stored.
    """

    revision: int
    value: bytes | None


class HookStorage(Protocol):
    """Where hooks' values live. Both methods may be plain or ``async``."""

    def get(self, key: StorageKey, /) -> Stored | Awaitable[Stored]:
        """The value and its revision."""
        ...

    def compare_and_set(self, key: StorageKey, revision: int, value: bytes | None, /) -> bool | Awaitable[bool]:
        """Store ``value`` (None removes it) if the key is still at ``revision``; False, and nothing stored, if not."""
        ...


class StorageFull(Exception):
    """The storage has no room for the value; nothing was stored."""


class InMemoryStorage:
    """Values in this process, bounded in bytes, safe from several threads. Gone with the process."""

    def __init__(self, *, total_bytes: int = 16 * 1024 * 1024) -> None:
        self._total_bytes = total_bytes
        self._used_bytes = 0
        self._values: dict[StorageKey, Stored] = {}
        # One counter for all keys: a key that was removed and made again never shows an old revision.
        self._revisions = itertools.count(1)
        self._lock = threading.Lock()

    @property
    def used_bytes(self) -> int:
        """What all entries take, their keys and a fixed cost for each included."""
        return self._used_bytes

    def get(self, key: StorageKey, /) -> Stored:
        return self._values.get(key, _NOTHING)

    def compare_and_set(self, key: StorageKey, revision: int, value: bytes | None, /) -> bool:
        """As `HookStorage`.

        Raises:
            StorageFull: All values together would be over ``total_bytes``.
        """
        with self._lock:
            before = self._values.get(key, _NOTHING)
            if before.revision != revision:
                return False
            used = self._used_bytes - _size(key, before.value) + _size(key, value)
            if used > self._total_bytes and used > self._used_bytes:
                raise StorageFull(
                    f"hook storage would hold {used:_} bytes (limit {self._total_bytes:_}); "
                    "store less, remove old values or give InMemoryStorage more"
                )
            self._used_bytes = used
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = Stored(revision=next(self._revisions), value=value)
            return True


_NOTHING = Stored(revision=0, value=None)


def _size(key: StorageKey, value: bytes | None) -> int:
    if value is None:
        return 0
    text = len(key.hook) + len(key.owner) + len(key.tenant) + len(key.environment)
    return _ENTRY_BYTES + 4 * text + len(value)
