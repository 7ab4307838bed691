"""P17's order and P18: the ordered collection of hooks."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

import hookcell
from hookcell import HookRegistry, HostHook, run_point_sync
from hookcell.agent import create_agent, mock_model

from .fake_sandbox import FakeSandbox, host


def _nothing(_: object) -> None: ...


def _watcher(name: str) -> object:
    return host(name, pre_tool_call=_nothing)


def _names(registry: HookRegistry) -> list[str]:
    return [hook.name for hook in registry.list()]


def test_hooks_are_listed_in_the_order_of_registration() -> None:
    """SEMANTICS P18."""
    registry = HookRegistry([_watcher("b"), _watcher("a")])
    registry.register_many([_watcher("d"), _watcher("c")])
    assert _names(registry) == ["b", "a", "d", "c"]
    assert registry.size == len(registry) == 4


def test_get_gives_the_object_that_was_registered() -> None:
    """SEMANTICS P18."""
    hook = _watcher("a")
    guest = FakeSandbox().guest("g", pre_tool_call=_nothing)
    registry = HookRegistry([hook, guest])
    assert registry.get("a") is hook
    assert registry.get("g") is guest
    assert registry.get("x") is None
    assert registry.has("a")
    assert not registry.has("x")


def test_a_second_hook_of_a_name_takes_the_first_ones_place_and_warns(caplog: pytest.LogCaptureFixture) -> None:
    """SEMANTICS P18."""
    registry = HookRegistry([_watcher("a"), _watcher("b")])
    replacement = _watcher("a")
    with caplog.at_level(logging.WARNING, logger="hookcell"):
        registry.register(replacement)
    assert _names(registry) == ["a", "b"]
    assert registry.get("a") is replacement
    assert "'a' replaces" in caplog.text


def test_a_guest_never_replaces_a_host_hook() -> None:
    """SEMANTICS P18."""
    hook = _watcher("a")
    registry = HookRegistry([hook])
    with pytest.raises(ValueError, match="would replace a host hook"):
        registry.register(FakeSandbox().guest("a", pre_tool_call=_nothing))
    assert registry.get("a") is hook


def test_a_host_hook_and_a_guest_replace_a_guest() -> None:
    """SEMANTICS P18: the other three pairs are allowed."""
    sandbox = FakeSandbox()
    registry = HookRegistry([sandbox.guest("a", pre_tool_call=_nothing)])
    second = sandbox.guest("a", pre_tool_call=_nothing)
    registry.register(second)
    assert registry.get("a") is second
    registry.register(_watcher("a"))
    assert registry.size == 1


def test_unregister_says_whether_there_was_one_and_clear_leaves_none() -> None:
    """SEMANTICS P18."""
    registry = HookRegistry([_watcher("a"), _watcher("b")])
    assert registry.unregister("a")
    assert not registry.unregister("a")
    assert _names(registry) == ["b"]
    registry.clear()
    assert registry.size == 0
    assert registry.list() == []


def test_a_running_call_works_on_a_snapshot() -> None:
    """SEMANTICS P18: what a hook registers or removes does not change the chain it stands in."""
    ran: list[str] = []
    registry = HookRegistry()

    def first(_: object) -> None:
        ran.append("first")
        registry.unregister("second")
        registry.register(host("third", pre_tool_call=lambda _: ran.append("third")))

    registry.register(host("first", pre_tool_call=first))
    registry.register(host("second", pre_tool_call=lambda _: ran.append("second")))
    run_point_sync(registry, "pre_tool_call", {"args": {}})
    assert ran == ["first", "second"]
    run_point_sync(registry, "pre_tool_call", {"args": {}})
    assert ran == ["first", "second", "first", "third"]


def test_a_leads_hooks_come_first_and_cannot_be_replaced() -> None:
    """SEMANTICS P17."""
    lead = HookRegistry([_watcher("guard")])
    registry = HookRegistry.inherit(lead)
    registry.register(_watcher("own"))
    assert _names(registry) == ["guard", "own"]
    with pytest.raises(ValueError, match="lead agent's"):
        registry.register(_watcher("guard"))
    assert not registry.unregister("guard")
    registry.clear()
    assert _names(registry) == ["guard"]
    assert _names(lead) == ["guard"]


def test_a_sub_agent_of_a_sub_agent_inherits_from_both() -> None:
    """SEMANTICS P17."""
    middle = HookRegistry.inherit(HookRegistry([_watcher("a")]))
    middle.register(_watcher("b"))
    last = HookRegistry.inherit(middle)
    last.register(_watcher("c"))
    assert _names(last) == ["a", "b", "c"]


def test_a_leads_agent_class_methods_are_not_inherited() -> None:
    """SEMANTICS P17: agent-class hooks belong to their class alone."""
    ran: list[str] = []
    both = host(
        "both",
        pre_tool_call=lambda _: ran.append("pre_tool_call"),
        before_prompt=lambda _prompt, _ctx: ran.append("before_prompt"),
    )
    only = host("only", after_response=lambda _response, _ctx: ran.append("after_response"))
    registry = HookRegistry.inherit(HookRegistry([both, only]))
    assert _names(registry) == ["both"]
    run_point_sync(registry, "pre_tool_call", {"args": {}})
    run_point_sync(registry, "before_prompt", {"prompt": "p"})
    assert ran == ["pre_tool_call"]


@pytest.mark.parametrize("point", ["pre_generate", "before_prompt"])
def test_deny_is_refused_at_registration_where_there_is_no_tool_call(point: str) -> None:
    """SEMANTICS P11."""
    hook = host("a", pre_tool_call=_nothing, **{point: _nothing})
    with pytest.raises(ValueError, match=f"{point} has no tool call"):
        HookRegistry().register(hook, on_failure="deny")
    guest = FakeSandbox().guest("a", **{point: _nothing})
    with pytest.raises(ValueError, match=f"{point} has no tool call"):
        HookRegistry().register(guest, on_failure="deny")


@pytest.mark.parametrize("point", ["pre_tool_call", "post_tool_call", "before_tool", "after_tool"])
def test_deny_is_taken_at_tool_points(point: str) -> None:
    """SEMANTICS P11."""
    registry = HookRegistry()
    registry.register(host("a", **{point: _nothing}), on_failure="deny")
    registry.register(FakeSandbox().guest("b", **{point: _nothing}), on_failure="deny")
    assert [hook.on_failure for hook in registry.snapshot().hooks] == ["deny", "deny"]


def test_a_new_policy_keeps_what_else_was_decided_about_a_hook() -> None:
    taken = HostHook.of(host("a", pre_tool_call=_nothing))
    registry = HookRegistry()
    registry.register(replace(taken, edits_system_messages=False), on_failure="deny")
    hook = registry.snapshot().hooks[0]
    assert (hook.on_failure, hook.edits_system_messages) == ("deny", False)


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(ValueError, match="use 'raise', 'deny' or 'skip'"):
        HookRegistry().register(_watcher("a"), on_failure="ignore")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "x" * 129, "two\nlines", "\ud800", "left\u202eright", " redact", "redact "])
def test_a_name_that_cannot_stand_in_a_log_line_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="does not do"):
        HookRegistry([_watcher(name)])


def test_the_longest_name_is_taken() -> None:
    assert HookRegistry([_watcher("x" * 128)]).size == 1


def test_a_method_in_the_javascript_spelling_is_refused() -> None:
    """It would never be called, and a guard that is never called allows everything."""
    with pytest.raises(TypeError, match="name it pre_tool_call"):
        HookRegistry([host("a", preToolCall=_nothing)])


def test_a_hook_that_implements_nothing_is_taken() -> None:
    """SEMANTICS P1: every point is optional."""
    assert HookRegistry([host("a")]).has("a")


@pytest.mark.parametrize("value", [None, "redact", object(), {"name": "x"}])
def test_what_has_no_name_is_no_hook(value: Any) -> None:
    with pytest.raises(TypeError, match="is no hook"):
        HookRegistry().register(value)


def test_a_method_that_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="not callable"):
        HostHook.of(host("a", pre_tool_call="deny"))  # type: ignore[arg-type]


def test_the_public_surface_is_sorted_and_there() -> None:
    # Constants, then classes, then functions, as the linter sorts it.
    assert hookcell.__all__ == sorted(hookcell.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name))
    assert all(hasattr(hookcell, name) for name in hookcell.__all__)


@pytest.mark.parametrize("name", ["pre_toolcall", "pre_tool_cal", "post_tool_calls", "before_tol", "on_errors"])
def test_a_method_that_nearly_has_a_points_name_is_refused(name: str) -> None:
    """Never called, it would be a guard that fails open."""
    with pytest.raises(TypeError, match=f"'h' has {name}, which is never called; is .* meant"):
        HookRegistry([host("h", **{name: lambda *_: None})])
    with pytest.raises(TypeError, match=f"has {name}, which is never called"):
        create_agent(provider=mock_model([]), agent_class=type("Step", (), {name: lambda *_: None}))


def test_other_methods_are_the_hooks_own() -> None:
    HookRegistry([host("h", pre_tool_call=lambda _: None, close=print, tool_calls=print, generate=print, before=print)])
