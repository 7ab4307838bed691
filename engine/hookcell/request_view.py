"""What a guest may see and change of a model request: an allowlist (SEMANTICS, "Points": `request`).

A request holds what a hook must never have: keys, endpoints, tool definitions. So a guest gets the named fields alone,
and what it hands back changes those alone. The host's own hooks see the request itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, cast

from hookcell_sandbox.guest_text import escape

from .hints import kind_of
from .malformed import Malformed
from .shapes import is_list, is_object
from .values import same

__all__ = ["REQUEST_FIELDS", "overlaid", "view"]

REQUEST_FIELDS: Final = frozenset({"model", "temperature", "topP", "maxTokens", "stop", "toolChoice", "headers"})
"""What crosses without a grant. ``model`` is read only; of the headers, those whose name speaks of no secret."""

_READ_ONLY: Final = frozenset({"model"})
_STOPS: Final = 16
# Header names that carry a credential, or a session that is one.
_SECRET: Final = re.compile(r"auth|cookie|token|secret|key|credential|password|session|signature", re.IGNORECASE)
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_BYTES: Final = 4_096
# Where the request goes and how its body is framed: one of these sends it, credentials and all, elsewhere or in two.
_ROUTING: Final = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


def view(request: object, granted: frozenset[str]) -> object:
    """The part of a request that crosses to a guest.

    Args:
        request: The host's request; what is no map crosses as nothing.
        granted: Fields that the host grants beyond `REQUEST_FIELDS`.
    """
    if not isinstance(request, Mapping):
        return {}
    allowed = REQUEST_FIELDS | granted
    seen = {key: value for key, value in cast("Mapping[str, object]", request).items() if key in allowed}
    if "headers" in seen and "headers" not in granted:
        seen["headers"] = _headers(seen["headers"], secret=False)
    return seen


def overlaid(request: object, edited: Mapping[str, object], granted: frozenset[str]) -> dict[str, object]:
    """The whole request after a guest edited its view of it: what it could not see stays as it is.

    Raises:
        Malformed: It changed a read-only field, named one that is not granted, gave a field of the allowlist a value
            of another kind, or a header that does not do.
    """
    whole = dict(cast("Mapping[str, object]", request)) if isinstance(request, Mapping) else {}
    seen = cast("Mapping[str, object]", view(whole, granted))
    allowed = REQUEST_FIELDS | granted
    for key in edited:
        if key not in allowed:
            hint = f"these may be set: {', '.join(sorted(allowed - (_READ_ONLY - granted)))}"
            raise Malformed("/request", f"'{escape(key)}' is no field that a hook may set", hint)
    for key in _READ_ONLY - granted:
        if (key in edited) != (key in seen) or not same(edited.get(key), seen.get(key)):
            raise Malformed(f"/request/{key}", "it is read only", "ask the host to grant it")
    for key, (fits, wanted) in _KINDS.items():
        if key in edited and not (key in seen and same(edited[key], seen[key])) and not fits(edited[key]):
            hint = "to be rid of it, remove it" if edited[key] is None else None
            raise Malformed(f"/request/{key}", f"it is {_shown(edited[key])}, not {wanted}", hint)
    headers = whole.get("headers")
    after = {key: value for key, value in whole.items() if key not in seen} | dict(edited)
    if "headers" not in granted:
        open_headers = _checked_headers(edited.get("headers", {}), _headers(headers, secret=False))
        kept = {**_headers(headers, secret=True), **open_headers}
        after.pop("headers", None)
        if kept or "headers" in edited:
            after["headers"] = kept
    return after


def _is_number(value: object, most: int) -> bool:
    """Whether it is a number from 0 to ``most``: a NaN is not, and neither is a boolean, which Python counts as one."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most


def _is_stop(value: object) -> bool:
    return isinstance(value, str) or (
        is_list(value) and len(value) <= _STOPS and all(isinstance(each, str) for each in value)
    )


# What a guest may set beside headers: whether a value does, and what would. A client may do anything with another.
_KINDS: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = {
    "temperature": (lambda value: _is_number(value, 10), "a number from 0 to 10"),
    "topP": (lambda value: _is_number(value, 1), "a number from 0 to 1"),
    "maxTokens": (lambda value: type(value) is int and value >= 1, "a whole number from 1"),
    "stop": (_is_stop, f"a string or a list of at most {_STOPS} strings"),
    "toolChoice": (lambda value: isinstance(value, str) or is_object(value), "a string or a map"),
}


def _shown(value: object) -> str:
    """A value in an error: a number as it is, of a list how long it is."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value!r}"
    return f"a list of {len(value):_}" if is_list(value) else kind_of(value)


def _headers(headers: object, *, secret: bool) -> dict[str, object]:
    """Those whose name speaks of a secret, or the others."""
    if not isinstance(headers, Mapping):
        return {}
    named = cast("Mapping[str, object]", headers)
    return {name: value for name, value in named.items() if bool(_SECRET.search(name)) == secret}


def _checked_headers(headers: object, seen: Mapping[str, object]) -> dict[str, object]:
    """Headers from a guest: names are tokens, values one line, so that none can split a header in two.

    Args:
        headers: As the guest left them.
        seen: As it was given them: the host's own may be anything and stay.
    """
    if not isinstance(headers, Mapping):
        raise Malformed("/request/headers", "it is no map", "give a map of names to strings")
    for name, value in cast("Mapping[str, object]", headers).items():
        if name in seen and same(value, seen[name]):
            continue
        if not _HEADER_NAME.fullmatch(name):
            raise Malformed("/request/headers", f"'{escape(name)}' is no header name", "use letters, digits and dashes")
        if _SECRET.search(name):
            raise Malformed("/request/headers", f"'{escape(name)}' may hold a credential", "ask the host to grant it")
        if name.lower() in _ROUTING:
            raise Malformed("/request/headers", f"'{escape(name)}' is the HTTP client's own", "leave it as it is")
        if not isinstance(value, str) or len(value) > _HEADER_BYTES or not value.isprintable():
            reason = f"the value of '{escape(name)}' is not one line of at most {_HEADER_BYTES:_} characters"
            raise Malformed("/request/headers", reason, "give a short printable string")
    return dict(cast("Mapping[str, object]", headers))
