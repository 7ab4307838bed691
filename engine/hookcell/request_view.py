"""What a guest may see and change of a model request: an allowlist (SEMANTICS, "Points": `request`).

A request holds what a hook must never have: keys, endpoints, tool definitions. So a guest gets the named fields alone,
and what it hands back changes those alone. The host's own hooks see the request itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, cast

from hookcell_sandbox.guest_text import escape

from .malformed import Malformed
from .values import same

__all__ = ["REQUEST_FIELDS", "overlaid", "view"]

REQUEST_FIELDS: Final = frozenset({"model", "temperature", "topP", "maxTokens", "stop", "toolChoice", "headers"})
"""What crosses without a grant. ``model`` is read only; of the headers, those whose name speaks of no secret."""

_READ_ONLY: Final = frozenset({"model"})
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
        Malformed: It changed a read-only field, named one that is not granted, or a header that does not do.
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
    headers = whole.get("headers")
    after = {key: value for key, value in whole.items() if key not in seen} | dict(edited)
    if "headers" not in granted:
        open_headers = _checked_headers(edited.get("headers", {}), _headers(headers, secret=False))
        kept = {**_headers(headers, secret=True), **open_headers}
        after.pop("headers", None)
        if kept or "headers" in edited:
            after["headers"] = kept
    return after


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
