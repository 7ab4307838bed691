"""The error tree: every error survives a copy and a pickle, as a job queue or a worker process makes them."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from hookcell import (
    ChainExhausted,
    ConfigInvalid,
    ContextInvalid,
    HookcellError,
    HookCrashed,
    HookThrew,
    OutcomeInvalid,
    StorageConflict,
    TraceEntry,
)
from hookcell_sandbox.errors import Finding, FuelExhausted, GuestTrap, InputTooLarge, ModuleRejected, SandboxBusy
from hookcell_sandbox.guest_text import GuestLog
from hookcell_sandbox.limits import Limits

LOG = GuestLog(raw=b"so far")
GUEST: dict[str, Any] = {"entry": "pre_tool_call", "digest": "ab", "limits": Limits(), "fuel_used": 7, "log": LOG}
AT: dict[str, Any] = {"hook": "h", "point": "pre_tool_call"}

ERRORS = [
    SandboxBusy("no slot"),
    InputTooLarge("too large", size=2, limit=1),
    ModuleRejected([Finding(code="import", what="an import", value=1, limit=0)], digest="ab" * 32),
    FuelExhausted("out of fuel", **GUEST),
    GuestTrap("trapped", trap="unreachable", backtrace=("f",), **GUEST),
    HookThrew(**AT, name="E", message="m", stack="s", log=LOG),
    OutcomeInvalid(**AT, path="/deny", reason="r", hint="do"),
    ContextInvalid(**AT, path="/args", type="set"),
    ConfigInvalid(hook="h", path="", reason="r"),
    StorageConflict("changed", **AT),
    ChainExhausted("spent", **AT),
    HookCrashed(**AT, cause=FuelExhausted("out of fuel", **GUEST), log=LOG),
]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_comes_out_of_a_copy_as_it_went_in(error: HookcellError, again: Any) -> None:
    if isinstance(error, HookThrew):
        entry = TraceEntry(
            hook="h", point="pre_tool_call", kind="guest", digest="ab", outcome="failed", elapsed_us=1.0, log=LOG
        )
        error.trace = (entry,)
    made = again(error)
    assert type(made) is type(error)
    assert (str(made), made.code, made.args) == (str(error), error.code, error.args)
    assert {key: repr(value) for key, value in vars(made).items()} == {
        key: repr(value) for key, value in vars(error).items()
    }
