"""The harness itself: both kinds do and see the same, or a test says which kind cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hookcell import POINTS, HookCrashed, HookThrew, OutcomeInvalid

from .driving import facts, run
from .scripting import LIMITS

Scripted = Callable[..., Any]


@pytest.mark.parametrize("point", POINTS)
def test_both_kinds_see_the_same_context(scripted: Scripted, point: str) -> None:
    host, guest = (scripted(kind, kind, {point: None}) for kind in ("host", "guest"))
    run(point, host, guest, on=facts(state={"rounds": 1}, data={"user": "u"}))
    assert host.called_at == guest.called_at == [point]
    assert host.seen == guest.seen
    assert set(guest.seen[0][1]) >= {"agentId", "agentName", "sessionId", "messages", "metadata"}


def test_the_key_with_the_tool_counts_first(scripted: Scripted, kind: str) -> None:
    script = {"pre_tool_call/read": {"deny": "mine"}, "pre_tool_call": {"deny": "any"}, "pre_tool_call/rea": None}
    hook = scripted(kind, "h", script)
    assert run("pre_tool_call", hook).reason == "mine"
    assert run("pre_tool_call", hook, own={"toolName": "write"}).reason == "any"
    call = {"before_tool/read": {"replace": {"id": "c1", "name": "read", "args": {"path": "b"}}}, "before_tool": None}
    assert run("before_tool", scripted(kind, "h", call)).args == {"path": "b"}


def test_a_throw_is_a_throw(scripted: Scripted, kind: str) -> None:
    hook = scripted(kind, "h", {"pre_tool_call": {"!throw": {"name": "Boom", "message": "why"}}})
    with pytest.raises(HookThrew) as caught:
        run("pre_tool_call", hook)
    assert (caught.value.name, caught.value.message) == ("Boom", "why")
    assert len(hook.seen) == 1


@pytest.mark.parametrize(("special", "code"), [("!trap", "trap"), ("!spin", "fuel"), ("!hoard", "memory")])
def test_a_guest_crashes_as_told_and_still_says_what_it_saw(scripted: Scripted, special: str, code: str) -> None:
    hook = scripted("guest", "h", {"pre_tool_call": {special: True}})
    with pytest.raises(HookCrashed) as caught:
        run("pre_tool_call", hook)
    assert caught.value.code == code
    assert hook.saw("toolName") == ["read"]


@pytest.mark.parametrize("script", [{"!garbage": True}, {"!raw": b"\x81"}, {"!raw": "no map"}, {"!raw": ""}])
def test_a_guest_returns_raw_bytes_as_told(scripted: Scripted, script: dict[str, Any]) -> None:
    with pytest.raises(OutcomeInvalid):
        run("pre_tool_call", scripted("guest", "h", {"pre_tool_call": script}))
    assert run("pre_tool_call", scripted("guest", "h", {"pre_tool_call": {"!raw": b"\x81\xa4deny\xa1x"}})).reason == "x"


@pytest.mark.parametrize("outcome", [{"!trap": True}, {"!raw": b""}, {"storage": 1}])
def test_a_host_hook_refuses_a_script_that_only_a_guest_can_play(scripted: Scripted, outcome: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="with a guest alone"):
        scripted("host", "h", {"pre_tool_call": outcome})
    with pytest.raises(TypeError, match="with a guest alone"):
        scripted("host", "h", {"before_tool": {"deny": "x"}})
    with pytest.raises(TypeError, match="has no needs"):
        scripted("host", "h", {"pre_tool_call": None}, needs=["args"])


def test_an_echo_that_is_not_whole_is_never_taken_for_one(scripted: Scripted) -> None:
    cut = scripted("guest", "h", {"pre_tool_call": None}, limits=replace(LIMITS, log_bytes=100))
    with pytest.raises(AssertionError, match="no whole echo"):
        run("pre_tool_call", cut)
    big = scripted("guest", "h", {"pre_tool_call": None})
    with pytest.raises(AssertionError, match="too much to echo"):
        run("pre_tool_call", big, own={"args": {"path": "x" * 600_000}})
    at_most = scripted("guest", "h", {"pre_tool_call": None})
    run("pre_tool_call", at_most, own={"args": {"path": "x" * 500_000}})
    assert len(at_most.saw("args")[0]["path"]) == 500_000
