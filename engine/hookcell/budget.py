"""What all guests of one chain may use together (SEMANTICS G8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hookcell_sandbox.guest_text import EMPTY_LOG, GuestLog
from hookcell_sandbox.limits import KIB, Limits

from .crossing import encode_value
from .errors import ChainExhausted
from .malformed import Malformed

__all__ = ["Budget", "ChainLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLimits:
    """Ceilings of one chain run, beside those of each call.

    Attributes:
        hooks_per_point: Most hooks, host and guest, that one point may have.
        fuel: Of all guests together: ten hooks that use all of their default budget.
        deadline_ms: Wall clock of all guests together, waits for a slot included. Host hooks are not billed: one of
            them may wait for a human.
        storage_bytes: The largest value that a hook may store (G3), msgpack bytes.
        bag_bytes: The most that ``metadata``, and ``state`` without its history, may hold when a guest has written
            there, msgpack bytes each: they last as long as the run and cross to every other hook. Host hooks are not
            bound.
    """

    hooks_per_point: int = 32
    fuel: int = 200_000_000
    deadline_ms: int = 5_000
    storage_bytes: int = 64 * KIB
    bag_bytes: int = 256 * KIB

    def __post_init__(self) -> None:
        for name in ("hooks_per_point", "fuel", "deadline_ms", "storage_bytes", "bag_bytes"):
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise ValueError(f"{name} is {value!r}; give a whole number from 0")


class Budget:
    """What guests may still use of a chain while it runs: its fuel and wall clock, and room in the run's bags."""

    __slots__ = ("_limits", "fuel_left", "ms_left")

    def __init__(self, limits: ChainLimits) -> None:
        self._limits = limits
        self.fuel_left = limits.fuel
        self.ms_left = float(limits.deadline_ms)

    def spend(self, *, fuel: int, ms: float) -> None:
        """Bill a call."""
        self.fuel_left -= fuel
        self.ms_left -= ms

    def tightened(self, limits: Limits, payload_bytes: int, *, deadline_ms: float, hook: str, point: str) -> Limits:
        """A call's limits within what is left; the very same object when nothing had to be tightened.

        Args:
            limits: The hook's own.
            payload_bytes: Payload of the call, for the fuel that comes with it.
            deadline_ms: What is left of the hook's own deadline, which all attempts share (G3).
            hook: Named when nothing is left.
            point: Likewise.

        Raises:
            ChainExhausted: No fuel or not a millisecond is left for the hook to start with.
        """
        wanted = limits.fuel_for(payload_bytes)
        whole_deadline = deadline_ms >= limits.deadline_ms
        if whole_deadline and wanted <= self.fuel_left and limits.deadline_ms <= self.ms_left:
            return limits
        if self.fuel_left <= 0 or self.ms_left < 1:
            raise self.exhausted("before it could start", hook=hook, point=point)
        if wanted > self.fuel_left:
            limits = replace(limits, fuel=self.fuel_left, fuel_per_kib=0)
        return replace(limits, deadline_ms=max(1, int(min(limits.deadline_ms, deadline_ms, self.ms_left))))

    def check_bag(self, field: str, before: Mapping[str, object], after: Mapping[str, object]) -> None:
        """Check how much a bag holds that a guest has written to.

        Args:
            field: ``metadata`` or ``state``.
            before: What was in it.
            after: What the guest would have in it.

        Raises:
            Malformed: It is over ``bag_bytes`` and grew: what is too big already may always shrink.
            Uncrossable: It holds what no guest could have written; somebody else put it there meanwhile.
        """
        limit = self._limits.bag_bytes
        used = _bag_bytes(field, after)
        if used > limit and used > _bag_bytes(field, before):
            hint = "keep less there, or ask the host to raise ChainLimits.bag_bytes"
            raise Malformed(f"/{field}", f"it would hold {used:_} bytes (limit {limit:_})", hint)

    def exhausted(self, when: str, *, hook: str, point: str, log: GuestLog = EMPTY_LOG) -> ChainExhausted:
        """The error that names the hook which was running."""
        fuel, ms = self._limits.fuel, self._limits.deadline_ms
        return ChainExhausted(
            f"the chain's budget ran out {when}: {max(0, self.fuel_left):_} of {fuel:_} fuel and "
            f"{max(0.0, self.ms_left):.0f} of {ms:_} ms left; raise ChainLimits or register fewer hooks",
            hook=hook,
            point=point,
            log=log,
        )


def _bag_bytes(field: str, bag: Mapping[str, object]) -> int:
    """The bag's msgpack in bytes; a state's history aside, which has the rules of messages."""
    own = {key: value for key, value in bag.items() if key != "history"} if field == "state" else bag
    return len(encode_value(own, f"/{field}", enclosing=1))
