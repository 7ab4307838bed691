"""Permission rules: allow, deny or ask, by tool and by argument (SEMANTICS P3).

The strictest rule that matches a call counts, so that their order means nothing and a rule added later can never
loosen an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final, Literal

from pydantic_core import to_json

from hookcell.shapes import is_list, is_map

__all__ = ["Effect", "Permissions", "Rule", "allow", "ask", "deny"]

Effect = Literal["allow", "ask", "deny"]

_STRICTER: Final[dict[Effect, int]] = {"allow": 0, "ask": 1, "deny": 2}
_NO_ARGS: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. It matches a call when the tool's name and each named argument match their pattern.

    Attributes:
        effect: What it says of a call that matches.
        tool: A pattern: ``*``, ``?`` and ``[…]`` as in a shell, case counts.
        args: Argument → pattern. The key is an argument's name, or a path into it with dots: ``options.force``. A
            number, ``true``, ``false`` and ``null`` are compared as they are written in JSON. An absent argument does
            not match. A list or a map cannot be judged by a pattern: it matches in a rule that denies or asks, and not
            in one that allows.
        reason: For the model, and for the human who is asked.
    """

    effect: Effect
    tool: str
    args: Mapping[str, str] = field(default_factory=dict[str, str])
    reason: str = ""

    def matches(self, tool: str, args: Mapping[str, object]) -> bool:
        """Whether the rule is about this call."""
        return fnmatchcase(tool, self.tool) and all(
            _matches(_at(args, path), pattern, strict=self.effect != "allow") for path, pattern in self.args.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """Rules, and what holds where none matches.

    Attributes:
        rules: In any order.
        default: For a call that no rule matches.
    """

    rules: tuple[Rule, ...] = ()
    default: Effect = "allow"

    @classmethod
    def of(cls, rules: Permissions | Iterable[Rule] | None) -> Permissions:
        """From what a host gives."""
        return rules if isinstance(rules, Permissions) else cls(rules=tuple(rules or ()))

    def judge(self, tool: str, args: Mapping[str, object]) -> Rule:
        """The strictest rule about a call; one with the default effect where there is none."""
        matching = [rule for rule in self.rules if rule.matches(tool, args)]
        if not matching:
            reason = "no permission rule allows it" if self.default == "deny" else ""
            return Rule(effect=self.default, tool=tool, reason=reason)
        return max(matching, key=lambda rule: _STRICTER[rule.effect])


def allow(tool: str, *, args: Mapping[str, str] = _NO_ARGS) -> Rule:
    """A rule that allows; of use where the default is stricter. The tool's own ``needs_approval`` is asked still."""
    return Rule(effect="allow", tool=tool, args=args)


def ask(tool: str, *, args: Mapping[str, str] = _NO_ARGS, reason: str = "") -> Rule:
    """A rule that has a human asked."""
    return Rule(effect="ask", tool=tool, args=args, reason=reason)


def deny(tool: str, *, args: Mapping[str, str] = _NO_ARGS, reason: str = "") -> Rule:
    """A rule that denies."""
    return Rule(effect="deny", tool=tool, args=args, reason=reason)


_ABSENT: Final = object()


def _at(args: Mapping[str, object], path: str) -> object:
    if path in args:
        return args[path]  # a name that has dots of its own
    value: object = args
    for name in path.split("."):
        if not is_map(value) or name not in value:
            return _ABSENT
        value = value[name]
    return value


def _matches(value: object, pattern: str, *, strict: bool) -> bool:
    if value is _ABSENT:
        return False
    if is_map(value) or is_list(value):
        return strict
    return fnmatchcase(value if isinstance(value, str) else to_json(value).decode(), pattern)
