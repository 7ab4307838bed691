"""What a case of the table is: a call, and what must come of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["INVALID", "NOTHING", "Case", "Effect", "Fails"]

Effect = dict[str, Any]
"""What a call came to, in the wire's words; a key is there when the call did that:

- ``deny``, ``result``, ``replace``: the outcome's value;
- ``args``: the arguments as they stand, changed by ``input`` or in place;
- ``appended``: messages added at a tool point; ``messages``: the whole conversation after an edit elsewhere;
- ``metadata``, ``request``, ``state``: the whole field after a change, ``state`` with its history;
- ``events``, ``meta``: as emitted and noted;
- ``stored``: the storage after a write, None when it was emptied;
- ``log``: the lines of the log.
"""

NOTHING: Final[Effect] = {}


@dataclass(frozen=True, kw_only=True)
class Fails:
    """A call that must fail, never an allow and never a deny (P11).

    Attributes:
        codes: The failure's code is one of these.
        name: Of a thrown error.
        message: Likewise.
        log: Lines of the log that reached the host all the same (G5).
    """

    codes: tuple[str, ...]
    name: str | None = None
    message: str | None = None
    log: tuple[str, ...] = ()


INVALID: Final = Fails(codes=("outcome_invalid",))
"""The outcome breaks a rule. An SDK that sees it first and throws is as good: see `running.Guests.throws_early`."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One row of the table.

    Attributes:
        name: Unique.
        point: Where the hook is called.
        does: The hook's config: which behaviour, and what it needs (README.md).
        expect: What comes of it.
        own: Fields of the context where they are not the usual ones (`contexts`).
        needs: As in the manifest (G4); None says nothing.
        storage: Whether the manifest asks for storage (G3).
        stored: What the storage holds before the call; None when there is nothing yet.
        conflicts: How many times somebody else writes 100 to the storage while the hook runs (G3).
        output_bytes: The host's limit; None for the default.
        grants_system_messages: The host's grant (P2).
        not_host: Why a host hook cannot take part; empty when it can.
    """

    name: str
    point: str
    does: Mapping[str, Any]
    expect: Effect | Fails
    own: Mapping[str, Any] = field(default_factory=dict[str, Any])
    needs: tuple[str, ...] | None = None
    storage: bool = False
    stored: object = None
    conflicts: int = 0
    output_bytes: int | None = None
    grants_system_messages: bool = False
    not_host: str = ""
