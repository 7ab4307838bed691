"""Which hooks a turn runs, and in which order (SEMANTICS P14, P17, C1).

```
the lead agent's pipeline hooks → the agent class's methods → the agent's own hooks → compaction
```
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hookcell.host_hook import HostHook
from hookcell.points import POINTS
from hookcell.registry import HookSource, Registered, Snapshot

from .compaction import COMPACTION_HOOK

__all__ = ["Arrangement"]

_PIPELINE: Final = frozenset(name for name, row in POINTS.items() if row.family == "pipeline")


class Arrangement:
    """A `HookSource` made of an agent's hooks, which may change while it runs, and what stands round them.

    Args:
        own: The agent's hooks.
        lead: The lead agent's, as they were when its call of this agent began (P18).
        agent_class: The agent class's methods.
        compaction: The compaction hook.
    """

    def __init__(
        self,
        own: HookSource,
        *,
        lead: Sequence[Registered] = (),
        agent_class: HostHook | None = None,
        compaction: HostHook | None = None,
    ) -> None:
        self._source = own
        self._lead = tuple(lead)
        self._agent_class = agent_class
        self._compaction = compaction
        self._seen: Snapshot | None = None
        self._arranged = Snapshot()

    def snapshot(self) -> Snapshot:
        """The hooks as they are now.

        Raises:
            ValueError: Two of different making have one name: a sub-agent cannot replace a hook of its lead's (P17),
                nor anybody the agent class or compaction.
        """
        own = self._source.snapshot()
        if own is not self._seen:
            self._arranged = self._arrange(own)
            self._seen = own
        return self._arranged

    def inherited(self, hooks: Snapshot) -> tuple[Registered, ...]:
        """What a sub-agent gets of a snapshot of these (P17)."""
        return tuple(hook for hook in hooks.hooks if hook is not self._compaction and hook.points & _PIPELINE)

    def _arrange(self, own: Snapshot) -> Snapshot:
        # A hook that the host gave to both agents is one hook, and runs once.
        hooks = [hook for hook in own.hooks if not any(_same(hook, lead) for lead in self._lead)]
        if self._agent_class is not None:
            hooks.insert(0, self._agent_class)
        taken = {hook.name: "the lead agent" for hook in self._lead} | {COMPACTION_HOOK: "compaction"}
        for hook in hooks:
            if hook.name in taken:
                raise ValueError(f"hook {hook.name!r} has the name of one of {taken[hook.name]}'s; give it another")
            taken[hook.name] = "this agent"
        if self._compaction is not None:
            hooks.append(self._compaction)
        return Snapshot(hooks, lead=self._lead)


def _same(one: Registered, other: Registered) -> bool:
    if isinstance(one, HostHook) and isinstance(other, HostHook):
        return one.implementation is other.implementation
    return one is other
