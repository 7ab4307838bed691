"""What one hook returned, once it is known to keep the rules (P8)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

__all__ = ["ABSENT", "Absent", "Outcome", "ThrownError"]


class Absent(Enum):
    """The key is not there. ``None`` is a value (P5, C2), so absence needs a mark of its own."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrownError:
    """The outcome's ``error``: the hook threw. Guest text."""

    name: str
    message: str
    stack: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One hook's outcome. Every attribute is `ABSENT`, or empty, when its key was not there.

    ``storage`` present and ``None`` empties the storage.
    """

    deny: str | Absent = ABSENT
    result: object = ABSENT
    input: dict[str, object] | Absent = ABSENT
    replace: object = ABSENT
    error: ThrownError | Absent = ABSENT
    storage: object = ABSENT
    patch: tuple[dict[str, object], ...] = ()
    events: tuple[dict[str, object], ...] = ()
    meta: dict[str, object] = field(default_factory=dict[str, object])
