"""Calls that wait for a human: the pending state, its seal, and the store that lets it be used once (P15, P16).

A run that pauses gives out its whole state as text: serialised, so that another process can go on with it later, and
authenticated, so that nobody can change what was approved. It is not encrypted: it holds the conversation.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import threading
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, cast

from hookcell.packing import pack, unpack

from .errors import ApprovalInvalid, ApprovalUsed
from .tools import call_host_code

__all__ = ["Answer", "ApprovalStore", "Approvals", "Deny", "InMemoryApprovals", "PendingApproval", "PendingCall"]

_SEAL: Final = b"hookcell approval 1\n"
_KEY_BYTES: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Deny:
    """A human's no, with a reason for the model."""

    reason: str = ""


Answer = Literal["approve", "deny"] | Deny
"""What a human said of one call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCall:
    """A call that waits.

    Attributes:
        id: What to answer it by: the call's id; inside a sub-agent, with the ids of the calls that led there before it,
            ``outer/inner``.
        tool: The tool.
        args: The arguments as hooks made them: what runs, if it is approved (P15).
        agent: The agent that made the call.
        reason: Why a human is asked, if the rule says.
    """

    id: str
    tool: str
    args: Mapping[str, object]
    agent: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingApproval:
    """A run that waits.

    Attributes:
        token: The whole of it as text, for `Agent.resume`. As secret as the conversation.
        calls: The calls to answer, all of them at once.
    """

    token: str = field(repr=False)
    calls: tuple[PendingCall, ...]


class ApprovalStore(Protocol):
    """Knows which pending states are open. Both methods may be plain or ``async``."""

    def open(self, approval_id: str, digest: str, /) -> Awaitable[None] | None:
        """Note a pending state as open; ``digest`` is the sha256 of its contents, hex."""
        ...

    def claim(self, approval_id: str, digest: str, /) -> bool | Awaitable[bool]:
        """Close it, in one step for all processes: True for the first who asks with the digest it was opened with."""
        ...


class InMemoryApprovals:
    """Open pending states of this process, safe from several threads. The oldest make room: they can't be resumed then.

    Args:
        most: How many are open at once, 1 or more.

    Raises:
        ValueError: ``most`` is less.
    """

    def __init__(self, *, most: int = 10_000) -> None:
        if most < 1:
            raise ValueError(f"most is {most}; give 1 or more")
        self._most = most
        self._open: dict[str, str] = {}
        self._lock = threading.Lock()

    def open(self, approval_id: str, digest: str, /) -> None:
        with self._lock:
            while len(self._open) >= self._most:
                del self._open[next(iter(self._open))]
            self._open[approval_id] = digest

    def claim(self, approval_id: str, digest: str, /) -> bool:
        with self._lock:
            if self._open.get(approval_id) != digest:
                return False
            del self._open[approval_id]
            return True


class Approvals:
    """How pending states are sealed and where they are known.

    Args:
        key: A secret of 16 bytes or more, the same in every process that resumes. Default: this process's own, so that
            nothing it gave out is good anywhere else, or after it ended.
        store: Default: this process's memory.

    Raises:
        ValueError: The key is short.
        TypeError: It is no bytes.
    """

    def __init__(self, *, key: bytes | None = None, store: ApprovalStore | None = None) -> None:
        if key is not None and not isinstance(cast("object", key), bytes):
            raise TypeError(f"the approval key is bytes, not {type(key).__name__}")
        if key is not None and len(key) < _KEY_BYTES:
            raise ValueError(f"the approval key has {len(key)} bytes; give {_KEY_BYTES} or more of secrets.token_bytes")
        self._key = key or secrets.token_bytes(32)
        self._store: ApprovalStore = InMemoryApprovals() if store is None else store  # one that is empty may be false

    async def seal(self, contents: Mapping[str, object]) -> str:
        """The token of a pending state, noted in the store as open. ``contents`` are JSON values and bytes."""
        approval_id = secrets.token_hex(16)
        raw = pack({"id": approval_id, **contents})
        await call_host_code(self._store.open, approval_id, hashlib.sha256(raw).hexdigest())
        return base64.urlsafe_b64encode(self._mac(raw) + raw).decode()

    def open(self, token: str) -> dict[str, Any]:
        """The contents of a token. It can still be used once.

        Raises:
            ApprovalInvalid: It was not sealed with this key, or was changed.
        """
        try:
            sealed = base64.b64decode(token.encode(), altchars=b"-_", validate=True)
        except (ValueError, binascii.Error) as error:
            raise ApprovalInvalid("the pending state is no token of an approval; pass it on unchanged") from error
        mac, raw = sealed[:32], sealed[32:]
        if not hmac.compare_digest(mac, self._mac(raw)):
            raise ApprovalInvalid("the pending state was changed, or was sealed with another Approvals key")
        return unpack(raw)

    async def claim(self, token: str) -> None:
        """Use a token that `open` took.

        Raises:
            ApprovalUsed: The store has it open no more.
        """
        raw = base64.urlsafe_b64decode(token)[32:]
        approval_id = cast("str", unpack(raw)["id"])
        if not await call_host_code(self._store.claim, approval_id, hashlib.sha256(raw).hexdigest()):
            raise ApprovalUsed("the pending state was used before, or its store does not know it; ask anew")

    def _mac(self, raw: bytes) -> bytes:
        return hmac.digest(self._key, _SEAL + raw, "sha256")


def check_answers(answers: Mapping[str, object], calls: Iterable[str]) -> None:
    """Every call is answered, and nothing else.

    Raises:
        ApprovalInvalid: One is not, or an answer is none.
    """
    waiting = set(calls)
    if missing := sorted(waiting - answers.keys()):
        raise ApprovalInvalid(f"no answer for {', '.join(missing)}; answer every pending call with 'approve' or 'deny'")
    if unknown := sorted(answers.keys() - waiting):
        raise ApprovalInvalid(f"{', '.join(unknown)} does not wait for approval; {', '.join(sorted(waiting))} does")
    for call, answer in answers.items():
        if answer not in ("approve", "deny") and not isinstance(answer, Deny):
            raise ApprovalInvalid(f"the answer for {call} is {answer!r}; give 'approve', 'deny' or Deny(reason=…)")
