"""Permission rules: allow, deny or ask, by tool and by argument (SEMANTICS P3).

The strictest rule that matches a call counts, so that their order means nothing and a rule added later can never
loosen an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final, Literal, cast

from pydantic_core import to_json

from hookcell.shapes import is_map

__all__ = ["Effect", "Permissions", "Rule", "allow", "ask", "deny"]

Effect = Literal["allow", "ask", "deny"]

_STRICTER: Final[dict[Effect, int]] = {"allow": 0, "ask": 1, "deny": 2}
_JUDGED: Final = (str, bool, int, float, type(None))
_NO_ARGS: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. It matches a call when the tool's name and each named argument match their pattern.

    Attributes:
        effect: What it says of a call that matches.
        tool: A pattern: ``*``, ``?`` and ``[…]`` as in a shell, case counts.
        args: Argument → pattern. The key is an argument's name, or a path into it with dots: ``options.force``. Where
            a name has dots of its own and both are there, a rule that denies or asks looks at each, and one that allows
            needs all to match. A number, ``true``, ``false`` and ``null`` are compared as they are written in JSON, a
            whole number without a fraction. An absent argument does not match. A list or a map at the path's end, or a
            list on its way, cannot be judged by a pattern: it matches in a rule that denies or asks, and not in one
            that allows.
        reason: For the model, and for the human who is asked.

    Raises:
        ValueError: There is no such effect.
        TypeError: A pattern is no text.
    """

    effect: Effect
    tool: str
    args: Mapping[str, str] = field(default_factory=dict[str, str])
    reason: str = ""

    def __post_init__(self) -> None:
        _check_effect(self.effect)
        for pattern in (self.tool, *self.args.values()):
            if not isinstance(cast("object", pattern), str):
                raise TypeError(f"a pattern is text, not {pattern!r}; write a number or true as in JSON, e.g. 'true'")

    def matches(self, tool: str, args: Mapping[str, object]) -> bool:
        """Whether the rule is about this call."""
        return fnmatchcase(tool, self.tool) and all(
            _matches(list(_at(args, path.split("."))), pattern, strict=self.effect != "allow")
            for path, pattern in self.args.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """Rules, and what holds where none matches.

    Attributes:
        rules: In any order.
        default: For a call that no rule matches.

    Raises:
        ValueError: There is no such effect.
    """

    rules: tuple[Rule, ...] = ()
    default: Effect = "allow"

    def __post_init__(self) -> None:
        _check_effect(self.default)

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


def _check_effect(effect: str) -> None:
    # A misspelt default would be none of those that stop a call.
    if effect not in _STRICTER:
        raise ValueError(f"there is no effect {effect!r}; a rule says {', '.join(_STRICTER)}")


def _at(value: object, names: Sequence[str]) -> Iterator[object]:
    """Every value that a path may mean: ``a.b`` is the ``b`` of ``a``, and also a name with a dot of its own."""
    if not names:
        yield value
    elif is_map(value):
        for count in range(1, len(names) + 1):
            name = ".".join(names[:count])
            if name in value:
                yield from _at(value[name], names[count:])
    elif not isinstance(value, _JUDGED):
        yield value  # what the path means in there cannot be said


def _matches(values: Sequence[object], pattern: str, *, strict: bool) -> bool:
    if strict:
        return any(_fits(value, pattern, unjudged=True) for value in values)
    return bool(values) and all(_fits(value, pattern, unjudged=False) for value in values)


def _fits(value: object, pattern: str, *, unjudged: bool) -> bool:
    if not isinstance(value, _JUDGED):
        return unjudged
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 1.0 is the same number to a tool, and must not slip past a rule about 1
    return fnmatchcase(value if isinstance(value, str) else to_json(value).decode(), pattern)
