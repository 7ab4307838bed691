"""What a guest may see and change of the run's state: all of it, or all but the conversation (SEMANTICS C7, G4).

``state.history`` is the conversation itself, so it crosses only to a hook that receives ``messages``.
"""

from __future__ import annotations

from .malformed import Malformed
from .shapes import is_map

__all__ = ["overlaid", "view"]


def view(state: object, received: frozenset[str]) -> object:
    """The part of the state that crosses to a hook which receives these fields; the state itself where that is all."""
    if "messages" in received or not is_map(state) or "history" not in state:
        return state
    return {key: value for key, value in state.items() if key != "history"}


def overlaid(state: object, edited: object, received: frozenset[str]) -> object:
    """The whole state after a guest edited its view of it: a history that it could not see stays the very same list.

    Raises:
        Malformed: It made a history without having received one.
    """
    if "messages" in received or not is_map(edited):
        return edited
    if "history" in edited:
        hint = "add 'messages' to the manifest's needs"
        raise Malformed("/state/history", "the hook did not receive that field", hint)
    return {"history": state["history"], **edited} if is_map(state) and "history" in state else edited
