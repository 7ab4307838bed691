"""The one error of everything that reads an outcome."""

from __future__ import annotations

__all__ = ["Malformed"]


class Malformed(ValueError):
    """An outcome breaks a rule.

    Attributes:
        path: JSON Pointer into the outcome, "" for all of it.
        reason: What is wrong; guest text in it is escaped and bounded.
        hint: What the author can do about it.
    """

    def __init__(self, path: str, reason: str, hint: str | None = None) -> None:
        self.path = path
        self.reason = reason
        self.hint = hint
        super().__init__(f"{path or 'the outcome'}: {reason}{f' - {hint}' if hint else ''}")
