"""What can go wrong with a hook, under the same root as the sandbox's own errors.

```
HookcellError
├─ SandboxError              the sandbox's branch: see hookcell_sandbox.errors
└─ HookFailure(hook, point)  what the engine raises, or turns into a tool error or a skip by the hook's policy (P11)
   ├─ HookThrew              the hook threw: name, message, stack
   ├─ OutcomeInvalid         what it returned breaks a rule: path, reason, hint
   ├─ StorageConflict        its storage changed under it three times (G3)
   ├─ StorageFailed          its storage could not be read or written, or is full (G3); __cause__ says why
   ├─ ChainExhausted         the chain's shared budget ran out while it was running (G8)
   ├─ HookRecursion          a host hook triggered itself, as by running an agent that has it too
   ├─ HookCrashed            the sandbox could not run it: cause is a SandboxError
   ├─ ConfigInvalid          at registration: path, reason
   └─ ContextInvalid         the host's: a value that cannot cross to a guest: path, type
```

Branch on the class and on ``code``, never on the text. Everything a hook wrote is escaped and bounded in messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hookcell_sandbox.errors import HookcellError, SandboxError
from hookcell_sandbox.guest_text import EMPTY_LOG, GuestLog, escape

if TYPE_CHECKING:
    from .hook import FailurePolicy
    from .trace import TraceEntry

__all__ = [
    "ChainExhausted",
    "ConfigInvalid",
    "ContextInvalid",
    "HookCrashed",
    "HookFailure",
    "HookRecursion",
    "HookThrew",
    "OutcomeInvalid",
    "StorageConflict",
    "StorageFailed",
    "exceptions_in",
]


def exceptions_in(error: BaseException) -> list[BaseException]:
    """The exceptions that groups hold, at any depth; one that is no group, alone."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    group = cast("BaseExceptionGroup[BaseException]", error)
    return [each for inner in group.exceptions for each in exceptions_in(inner)]


class HookFailure(HookcellError):
    """A hook failed. Never mistaken for a deny or an allow (P11).

    Attributes:
        hook: The hook's name.
        point: The hook point, or None at registration.
        log: What a guest logged until then.
        trace: When the failure rejects the run: what the chain's hooks did, this one last.
        policy: The hook's failure policy, once the chain applied it; None at registration.
    """

    code = "hook"

    def __init__(self, reason: str, *, hook: str, point: str | None, log: GuestLog = EMPTY_LOG) -> None:
        self.hook = hook
        self.point = point
        self.log = log
        self.trace: tuple[TraceEntry, ...] = ()
        self.policy: FailurePolicy | None = None
        where = f" at {point}" if point else ""
        super().__init__(f"hook '{escape(hook)}'{where}: {reason}")


class HookThrew(HookFailure):
    """The hook threw. ``name``, ``message`` and ``stack`` are as the hook gave them: escape before showing."""

    code = "threw"

    def __init__(
        self, *, hook: str, point: str, name: str, message: str, stack: str | None = None, log: GuestLog = EMPTY_LOG
    ) -> None:
        self.name = name
        self.message = message
        self.stack = stack
        super().__init__(f"threw {escape(name)}: {escape(message, characters=1000)}", hook=hook, point=point, log=log)


class OutcomeInvalid(HookFailure):
    """The outcome breaks a rule (P2, P8, C2, C3). ``path`` is a JSON Pointer into the outcome, "" for all of it."""

    code = "outcome_invalid"

    def __init__(
        self, *, hook: str, point: str, path: str, reason: str, hint: str | None = None, log: GuestLog = EMPTY_LOG
    ) -> None:
        self.path = path
        self.reason = reason
        self.hint = hint
        at = f" at {path}" if path else ""
        super().__init__(
            f"outcome invalid{at}: {reason}{f' - {hint}' if hint else ''}", hook=hook, point=point, log=log
        )


class StorageConflict(HookFailure):
    """The hook's storage was changed by somebody else during each of its attempts (G3)."""

    code = "storage_conflict"


class StorageFailed(HookFailure):
    """The hook's storage could not be read or written; ``__cause__`` is the storage's own error (G3)."""

    code = "storage_failed"


class ChainExhausted(HookFailure):
    """The chain's shared fuel or wall clock ran out while this hook was running, or before it could start (G8)."""

    code = "chain_exhausted"


class HookRecursion(HookFailure):
    """The hook is running already in this task: something it called came round to it. It does not run again."""

    code = "recursion"


class HookCrashed(HookFailure):
    """The sandbox could not run the hook; ``cause`` says how, and ``code`` is the cause's."""

    def __init__(self, *, hook: str, point: str, cause: SandboxError, log: GuestLog = EMPTY_LOG) -> None:
        self.cause = cause
        self.code = cause.code  # type: ignore[misc]  # an instance says more than its class here
        super().__init__(str(cause), hook=hook, point=point, log=log)
        self.__cause__ = cause


class ConfigInvalid(HookFailure):
    """The config does not fit the hook's schema, or the schema is not acceptable (G2)."""

    code = "config_invalid"

    def __init__(self, *, hook: str, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        at = f" at {path}" if path else ""
        super().__init__(f"config invalid{at}: {reason}", hook=hook, point=None)


class ContextInvalid(HookFailure):
    """The host's fault: a context value that cannot cross to a guest (a lone surrogate, a datetime, a NaN).

    ``path`` is a JSON Pointer into the context, ``type`` the Python type or the kind of value found there.
    """

    code = "context_invalid"

    def __init__(self, *, hook: str, point: str, path: str, type: str, hint: str | None = None) -> None:  # noqa: A002 the rule's own word
        self.path = path
        self.type = type
        super().__init__(
            f"context{path} is a {type}, which cannot cross{f' - {hint}' if hint else ''}", hook=hook, point=point
        )
