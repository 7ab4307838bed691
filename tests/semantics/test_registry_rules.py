"""P18: `HookRegistry`, an ordered collection of hooks of both kinds."""

from __future__ import annotations

import logging
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from hookcell import HookRegistry, ToolPipeline, run_point_sync

from .driving import CALL, facts

Scripted = Callable[..., Any]

WATCH = {"pre_tool_call": None}


def names(registry: HookRegistry) -> list[str]:
    return [hook.name for hook in registry.list()]


def ask(registry: HookRegistry) -> list[str]:
    """The hooks that run before a tool call, in order."""
    decision = run_point_sync(registry, "pre_tool_call", facts().context({"args": {}}))
    return [entry.hook for entry in decision.trace]


def test_P18_a_registry_is_an_ordered_collection(scripted: Scripted, kind: str) -> None:
    """``register, register_many, get, has, list, unregister, clear, size``: each does what it says."""
    made = {name: scripted(kind, name, WATCH) for name in "cabd"}
    registry = HookRegistry([made["c"]])
    registry.register(made["a"])
    registry.register_many([made["b"], made["d"]])
    assert names(registry) == ask(registry) == ["c", "a", "b", "d"]
    assert (registry.size, registry.has("a"), registry.has("x"), registry.get("x")) == (4, True, False, None)
    assert [hook.name for hook in (registry.get("a"), registry.get("d")) if hook is not None] == ["a", "d"]
    assert (registry.unregister("a"), registry.unregister("a")) == (True, False)
    assert names(registry) == ask(registry) == ["c", "b", "d"]
    assert (registry.size, registry.has("a")) == (3, False)
    registry.clear()
    assert (registry.size, registry.list(), ask(registry)) == (0, [], [])
    registry.register(made["a"])
    assert names(registry) == ["a"]


def test_P18_get_and_list_give_what_was_registered(scripted: Scripted) -> None:
    """The very objects, of either kind."""
    host, guest = SimpleNamespace(name="host", pre_tool_call=lambda _: None), scripted("guest", "guest", WATCH)
    registry = HookRegistry([host, guest])
    assert [registry.get("host"), registry.get("guest")] == list(registry.list()) == [host, guest]


@pytest.mark.parametrize(("first", "second"), [("host", "host"), ("guest", "guest"), ("guest", "host")])
def test_P18_a_second_hook_of_a_name_replaces_the_first_in_its_place(
    scripted: Scripted, first: str, second: str, caplog: pytest.LogCaptureFixture
) -> None:
    """And logs a warning. ▸ It keeps the first one's place."""
    old, new = scripted(first, "a", WATCH), scripted(second, "a", {"pre_tool_call": {"deny": "new"}})
    registry = HookRegistry([scripted("host", "before", WATCH), old, scripted("host", "after", WATCH)])
    with caplog.at_level(logging.WARNING, logger="hookcell"):
        registry.register(new)
    assert names(registry) == ["before", "a", "after"]
    assert registry.size == 3
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "'a'" in caplog.text
    assert ask(registry) == ["before", "a"]
    assert (len(old.seen), len(new.seen)) == (0, 1)


def test_P18_another_name_replaces_nothing_and_warns_of_nothing(
    scripted: Scripted, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Names are compared as they are, and one that was unregistered is free again, at the end."""
    registry = HookRegistry([scripted(kind, "a", WATCH), scripted(kind, "A", WATCH)])
    registry.unregister("a")
    registry.register(scripted(kind, "a", WATCH))
    assert names(registry) == ["A", "a"]
    assert caplog.records == []


def test_P18_a_guest_never_replaces_a_host_hook(scripted: Scripted) -> None:
    """▸ That is an error, and the host hook stays. Also under the name that a manifest gives it."""
    guard = scripted("host", "guard", {"pre_tool_call": {"deny": "no"}})
    registry = HookRegistry([guard])
    for guest in (scripted("guest", "guard", WATCH), scripted("guest", None, WATCH, more={"name": "guard"})):
        with pytest.raises(ValueError, match="would replace a host hook"):
            registry.register(guest)
        with pytest.raises(ValueError, match="would replace a host hook"):
            registry.register_many([guest])
        assert guest.name == "guard"
        assert ask(registry) == ["guard"]
        assert guest.seen == []
    assert len(guard.seen) == 2


def test_P18_a_running_chain_works_on_a_snapshot(scripted: Scripted, kind: str) -> None:
    """▸ What a hook registers, replaces or removes takes effect with the next call. The meddler is a host object."""
    registry = HookRegistry()
    removed, added = scripted(kind, "removed", WATCH), scripted(kind, "added", WATCH)
    old, new = scripted("guest", "replaced", WATCH), scripted(kind, "replaced", WATCH)

    def meddle(_: object) -> None:
        registry.unregister("removed")
        registry.register(new)
        registry.register(added)

    registry.register_many([SimpleNamespace(name="meddler", pre_tool_call=meddle), removed, old])
    assert ask(registry) == ["meddler", "removed", "replaced"]
    assert (len(removed.seen), len(old.seen), len(new.seen), len(added.seen)) == (1, 1, 0, 0)
    assert ask(registry) == ["meddler", "replaced", "added"]
    assert (len(removed.seen), len(old.seen), len(new.seen), len(added.seen)) == (1, 1, 1, 1)


def test_P18_a_running_tool_call_keeps_its_hooks_to_its_end(scripted: Scripted, kind: str) -> None:
    """▸ A running call: the post-hooks are those of its beginning, whatever the tool or the host does meanwhile."""
    script = {"pre_tool_call": None, "post_tool_call": None}
    stays, comes = scripted(kind, "stays", script), scripted(kind, "comes", script)
    registry = HookRegistry([stays])
    pipeline = ToolPipeline(hooks=registry, run=facts())

    def tool(_: object) -> None:
        registry.clear()
        registry.register(comes)

    anyio.run(pipeline.call, CALL, tool)
    assert (stays.called_at, comes.called_at) == (["pre_tool_call", "post_tool_call"], [])
    anyio.run(pipeline.call, CALL, lambda _: None)
    assert (len(stays.seen), comes.called_at) == (2, ["pre_tool_call", "post_tool_call"])
