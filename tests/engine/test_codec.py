"""Codec: what crosses to a guest, and what of a guest's bytes is believed."""

from __future__ import annotations

import copy
import datetime as dt
import enum
import math
import pickle
import struct
import sys
from typing import Any, NamedTuple

import msgpack
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hookcell.codec import (
    CONTEXT_DEPTH,
    OUTCOME_DEPTH,
    OUTCOME_NODES,
    Encoded,
    History,
    Malformed,
    Uncrossable,
    decode,
    encode_context,
    encode_value,
    scan,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
    | st.binary(max_size=12)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4), max_leaves=20
)
MESSAGES = st.fixed_dictionaries({"role": st.sampled_from(["user", "tool"]), "content": VALUES})


def nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


# Context to msgpack


@settings(deadline=None)
@given(fields=st.dictionaries(TEXT, VALUES, max_size=5), messages=st.lists(MESSAGES, max_size=4))
def test_a_context_crosses_unchanged(fields: dict[str, Any], messages: list[Any]) -> None:
    context = {**fields, "point": "p", "messages": History(messages)}
    raw = encode_context(context, [*fields, "messages"])
    assert msgpack.unpackb(raw) == {**fields, "point": "p", "messages": messages}


def test_only_the_fields_asked_for_cross_and_point_always_does() -> None:
    """SEMANTICS G4."""
    context = {"point": "p", "args": {"a": 1}, "metadata": {}, "messages": History([{"role": "user"}])}
    assert msgpack.unpackb(encode_context(context, ("args", "subagent"))) == {"point": "p", "args": {"a": 1}}


def test_a_hook_that_does_not_ask_for_messages_never_has_them_encoded() -> None:
    """SEMANTICS G4: a message that cannot cross is not even looked at."""
    context = {"point": "p", "args": {}, "messages": History([{"content": {1, 2}}])}  # type: ignore[dict-item]
    assert msgpack.unpackb(encode_context(context, ("args",))) == {"point": "p", "args": {}}


def test_extra_fields_go_beside_and_encoded_ones_as_they_are() -> None:
    extra = {"config": {"a": 1}, "storage": Encoded(msgpack.packb([1, 2]))}
    assert msgpack.unpackb(encode_context({"point": "p"}, (), extra)) == {
        "point": "p",
        "config": {"a": 1},
        "storage": [1, 2],
    }


def test_the_history_inside_the_state_crosses_by_its_kept_bytes() -> None:
    """SEMANTICS C7: ``state.history`` is the conversation itself."""
    history = History([{"role": "user", "content": "hi"}])
    raw = encode_context({"point": "p", "state": {"a": 1, "history": history, "b": 2}}, ("state",))
    assert msgpack.unpackb(raw)["state"] == {"a": 1, "b": 2, "history": list(history)}
    assert history._whole is not None


@pytest.mark.parametrize("count", [15, 16])
def test_a_context_of_many_fields_gets_a_longer_header(count: int) -> None:
    context: dict[str, object] = {f"f{index}": index for index in range(count - 2)}
    context |= {"point": "p", "messages": History([{"role": "user"}] * count)}
    assert msgpack.unpackb(encode_context(context, context)) == context


class Colour(enum.StrEnum):
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


class Pair(NamedTuple):
    a: int
    b: int


def test_subclasses_of_plain_types_cross_as_the_plain_value() -> None:
    value = {"colour": Colour.RED, "number": Number.ONE, "pair": Pair(1, 2), "tuple": (3,), Colour.RED: bytearray(b"x")}
    assert msgpack.unpackb(encode_value(value)) == {
        "colour": "red",
        "number": 1,
        "pair": [1, 2],
        "tuple": [3],
        "red": b"x",
    }


CYCLE: list[Any] = [1]
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("\ud800", "string with a lone surrogate"),
        (dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "datetime"),
        (math.nan, "NaN"),
        (math.inf, "infinity"),
        (-math.inf, "infinity"),
        ({1, 2}, "set"),
        (object(), "object"),
        (1 + 2j, "complex"),
        (2**64, "whole number over 64 bits"),
        (-(2**63) - 1, "whole number over 64 bits"),
        ({1: 2}, "map with a key of type int"),
        ({b"a": 2}, "map with a key of type bytes"),
        (memoryview(b"x"), "memoryview"),
        (msgpack.ExtType(1, b"x"), "ExtType"),
        (msgpack.Timestamp(0), "Timestamp"),
    ],
)
def test_what_cannot_cross_is_named_with_its_path_and_type(value: object, kind: str) -> None:
    """Issue 2, case (n)."""
    context = {"point": "p", "args": {"ok": 1.5, "list": [None, {"a/b": value}]}}
    with pytest.raises(Uncrossable) as caught:
        encode_context(context, ("args",))
    assert (caught.value.path, caught.value.type) == ("/args/list/1/a~1b", kind)


def test_a_key_with_a_lone_surrogate_is_named_escaped() -> None:
    with pytest.raises(Uncrossable) as caught:
        encode_value({"\udfff": 1}, "/args")
    assert (caught.value.path, caught.value.type) == ("/args/\\udfff", "key with a lone surrogate")


def test_a_value_inside_itself_is_named() -> None:
    with pytest.raises(Uncrossable, match="list inside itself"):
        encode_value({"a": CYCLE})


def test_a_message_that_cannot_cross_is_named_by_its_index() -> None:
    history = History([{"role": "user", "content": "a"}, {"role": "user", "content": math.nan}])
    for _ in range(2):  # a failed encoding leaves nothing behind
        with pytest.raises(Uncrossable) as caught:
            encode_context({"point": "p", "messages": history}, ("messages",))
        assert caught.value.path == "/messages/1/content"


def test_context_depth_is_met_and_not_passed() -> None:
    context = {"point": "p", "args": nested(CONTEXT_DEPTH - 1)}
    assert encode_context(context, ("args",))
    with pytest.raises(Uncrossable, match="nested over 72 deep"):
        encode_context({"point": "p", "args": nested(CONTEXT_DEPTH)}, ("args",))


def test_the_bytes_of_a_nan_in_text_and_in_numbers_are_no_nan() -> None:
    text = b"\xcb\x7f\xf0".decode("latin-1")
    number = int.from_bytes(b"\xcb\x7f\xf0\x00\x00\x00\x00\x00")
    value = {"text": text, "modifier letter": "\u02ff", "bytes": b"\xcb\xff\xff", "number": number}
    assert msgpack.unpackb(encode_value(value)) == value


# The history's kept bytes

EDITS = st.lists(
    st.sampled_from(
        [
            lambda h, m: h.append(m),
            lambda h, m: h.extend([m, m]),
            lambda h, m: h.insert(1, m),
            lambda h, m: h.insert(-1, m),
            lambda h, m: h and h.pop(),
            lambda h, m: h and h.pop(0),
            lambda h, m: h and h.remove(h[-1]),
            lambda h, m: h.clear(),
            lambda h, m: h.reverse(),
            lambda h, m: h.sort(key=repr),
            lambda h, m: h and h.__setitem__(0, m),
            lambda h, m: h.__setitem__(slice(1, 3), iter([m, m, m])),
            lambda h, m: h.__setitem__(slice(None, None, 2), [m] * len(h[::2])),
            lambda h, m: h and h.__delitem__(-1),
            lambda h, m: h.__delitem__(slice(0, 2)),
            lambda h, m: h.__iadd__([m]),
            lambda h, m: h.__imul__(2) if len(h) < 20 else None,
            lambda h, m: list.append(h, m),  # below the class
        ]
    ),
    max_size=12,
)


@settings(deadline=None)
@given(start=st.lists(MESSAGES, max_size=4), edits=EDITS, message=MESSAGES)
def test_every_way_of_changing_a_history_keeps_its_bytes_right(
    start: list[Any], edits: list[Any], message: Any
) -> None:
    history, plain = History(start), list(start)
    for edit in edits:
        edit(history, message)
        edit(plain, message)
        assert history == plain
        assert msgpack.unpackb(history.encoded()) == plain


def test_an_unchanged_history_is_encoded_once_and_an_added_message_alone() -> None:
    history = History([{"role": "user", "content": "a"}])
    first = history.encoded()
    assert history.encoded() is first
    part = history._parts[0]
    history.append({"role": "user", "content": "b"})
    assert history.encoded() != first
    assert history._parts[0] is part


def test_a_sort_that_fails_half_way_leaves_the_bytes_of_what_it_left() -> None:
    class Key:
        compared = 0

        def __init__(self, number: int) -> None:
            self.number = number

        def __lt__(self, other: Key) -> bool:
            Key.compared += 1
            if Key.compared > 20:
                raise TypeError
            return self.number < other.number

    history = History([{"role": "user", "content": str(number)} for number in (5, 3, 1, 4, 2, 0, 9, 7, 8, 6)])
    before = list(history)
    history.encoded()
    with pytest.raises(TypeError):
        history.sort(key=lambda message: Key(int(str(message["content"]))))
    assert history != before
    assert msgpack.unpackb(history.encoded()) == list(history)


def test_an_edit_in_place_is_seen_after_changed() -> None:
    history = History([{"role": "user", "content": "a"}])
    history.encoded()
    history[0]["content"] = "b"
    history.changed()
    assert msgpack.unpackb(history.encoded()) == [{"role": "user", "content": "b"}]


@pytest.mark.parametrize("count", [0, 15, 16, 65_535, 65_536])
def test_the_array_header_fits_the_count(count: int) -> None:
    history = History([{}] * count)
    assert len(msgpack.unpackb(history.encoded())) == count


def test_copies_keep_the_bytes_and_go_their_own_way() -> None:
    history = History([{"role": "user", "content": "a"}])
    history.encoded()
    for twin in (history.copy(), copy.copy(history), copy.deepcopy(history)):
        assert type(twin) is History
        assert twin._whole is history._whole
        twin.append({"role": "user", "content": "b"})
        assert len(msgpack.unpackb(twin.encoded())) == 2
    assert len(msgpack.unpackb(history.encoded())) == 1
    assert copy.deepcopy(history)[0] is not history[0]
    assert pickle.loads(pickle.dumps(history)) == history


def test_a_history_adopts_another_in_place() -> None:
    history, other = History([{"a": 1}]), History([{"b": 2}, {"c": 3}])
    other.encoded()
    history.adopt(other)
    assert history == other
    assert history.encoded() is other.encoded()


# A guest's bytes


def reference(raw: bytes) -> dict[str, Any] | None:
    """The same judgement by msgpack and a slow walk; None refuses."""
    try:
        value = msgpack.unpackb(raw, object_pairs_hook=lambda pairs: Pairs(pairs), strict_map_key=False)
    except Exception:
        return None
    count = 0

    def walk(item: Any, room: int) -> Any:
        nonlocal count
        count += 1
        if isinstance(item, Pairs | list) and room == 0:
            raise ValueError
        if isinstance(item, Pairs):
            count += len(item)
            if len({key for key, _ in item}) != len(item) or not all(isinstance(key, str) for key, _ in item):
                raise ValueError
            return {key: walk(child, room - 1) for key, child in item}
        if isinstance(item, list):
            return [walk(child, room - 1) for child in item]
        if isinstance(item, msgpack.ExtType | msgpack.Timestamp) or (
            isinstance(item, float) and not math.isfinite(item)
        ):
            raise ValueError
        return item

    try:
        walked = walk(value, OUTCOME_DEPTH)
    except (ValueError, TypeError):
        return None
    return walked if isinstance(walked, dict) and count <= OUTCOME_NODES else None


class Pairs(tuple):  # type: ignore[type-arg]
    """A map as msgpack saw it, duplicate keys and all."""

    __slots__ = ()


def judged(raw: bytes) -> dict[str, Any] | None:
    try:
        return decode(raw)
    except Malformed:
        return None


@settings(deadline=None)
@given(st.binary(max_size=60) | st.binary(max_size=60).map(lambda tail: b"\x81\xa1a" + tail))
@example(b"\x82\xa1a\x01\xa1a\x02")
@example(b"\x81\xc4\x01a\x01")
@example(b"\x81\x01\x01")
@example(b"\x81\x90\x01")
@example(b"\x81\xa1a\xca\x7f\x80\x00\x00")
@example(b"\x81\xa1a\xca\x7f\x7f\xff\xff")
@example(b"\x81\xa1a\xd6\xff\x00\x00\x00\x00")
def test_any_bytes_are_judged_as_a_slow_reader_judges_them(raw: bytes) -> None:
    expected, found = reference(raw), judged(raw)
    assert repr(found) == repr(expected)  # repr tells 1, 1.0 and True apart


@settings(deadline=None)
@given(st.dictionaries(TEXT, VALUES, max_size=4), st.data())
def test_an_outcome_is_read_back_and_any_damage_to_it_is_judged(value: dict[str, Any], data: st.DataObject) -> None:
    raw = msgpack.packb(value)
    assert decode(raw) == value
    place = data.draw(st.integers(0, len(raw) - 1))
    damaged = bytearray(raw)
    damaged[place] = data.draw(st.integers(0, 255))
    assert repr(judged(bytes(damaged))) == repr(reference(bytes(damaged)))
    assert judged(raw[:place]) is None


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "it is empty"),
        (b"\x81", "1 bytes end before"),
        (b"\x81\xa4deny\xa5stop", "11 bytes end before"),
        (b"\x81\xa4deny\xd9", "7 bytes end before"),
        (b"\x81\xa4deny\xcb\x7f", "8 bytes end before"),
        (b"\x80\x00", "1 bytes follow its end"),
        (b"\x90", "it is no map"),
        (b"\xc0", "it is no map"),
        (b"\xc1", "never uses"),
        (b"\x81\xa1a\xd4\x01\x00", "extension type"),
        (b"\x81\xa1a\xc7\x00\x01", "extension type"),
        (b"\x81\xa1a\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", "NaN"),
        (b"\x81\xa1a\xca\xff\x80\x00\x00", "infinity"),
        (b"\x81\xa1a\xa3\xed\xa0\x80", "not UTF-8"),
        (b"\x81\xa2\xff\xff\x01", "not UTF-8"),
        (b"\x82\xa1a\x01\xa1a\x02", "key 'a' twice"),
        (b"\x81\x01\x01", "a key that is no string"),
        (b"\x81\x80\x01", "a key that is no string"),
        (b"\x81\xc0\x01", "a key that is no string"),
        (b"\x81\xc4\x01a\x01", "a key that is no string"),
    ],
)
def test_bytes_that_are_no_outcome_are_refused_with_a_hint(raw: bytes, reason: str) -> None:
    """Issue 2, case (g): never a raw parser error."""
    with pytest.raises(Malformed, match=reason) as caught:
        decode(raw)
    assert caught.value.path == ""
    assert caught.value.hint


@pytest.mark.parametrize(
    "head", [b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff"]
)
def test_a_length_is_not_believed_before_the_bytes_are_there(head: bytes) -> None:
    with pytest.raises(Malformed, match="end before"):
        scan(head * 60)


def test_headers_that_share_the_same_bytes_are_refused() -> None:
    """Each of 64 arrays claims the bytes that the others claim: built, they would be 64 times as large."""
    room = 10_000
    with pytest.raises(Malformed, match="end before"):
        scan(b"".join(b"\xdc" + struct.pack(">H", room) for _ in range(60)) + b"\xc0" * room)


def test_outcome_depth_is_met_and_not_passed() -> None:
    assert decode(msgpack.packb(nested(OUTCOME_DEPTH)))
    with pytest.raises(Malformed, match="more than 64 deep"):
        decode(msgpack.packb(nested(OUTCOME_DEPTH + 1)))


def test_outcome_nodes_are_met_and_not_passed() -> None:
    """The map, its key, the list, and the list's items."""
    assert decode(msgpack.packb({"a": [0] * (OUTCOME_NODES - 3)}))
    with pytest.raises(Malformed, match="more than 20_000 items"):
        decode(msgpack.packb({"a": [0] * (OUTCOME_NODES - 2)}))


def test_a_long_key_that_stands_twice_gives_a_short_error() -> None:
    key = b"\xda\xff\xff" + b"k" * 65_535
    with pytest.raises(Malformed) as caught:
        decode(b"\x82" + key + b"\x01" + key + b"\x01")
    assert len(str(caught.value)) < 400


SHORT, LONG = b"", b"\xa1p" + b"\xc5\x0b\xb8" + b"x" * 3000


@pytest.mark.parametrize("padding", [SHORT, LONG], ids=["told by its bytes", "scanned"])
@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"\xcb\x7f\xf0" + b"\0" * 6, "NaN or an infinity"),
        (b"\xcb\xff\xff" + b"\0" * 6, "NaN or an infinity"),
        (b"\xca\x7f\x80\0\0", "NaN or an infinity"),
        (b"\xd6\xff\0\0\0\0", "extension"),
        (b"\xc7\0\1", "extension"),
        (b"\xc1", "never uses"),
        (b"\x91" * 64 + b"\xc0", "nests more than 64"),
        (b"\xdd\xff\xff\xff\xff", "before the last value"),
        (b"\x82\xa1a\1\xa1a\2", "'a' twice"),
        (b"\x81\xc4\1a\1", "no string"),
        (b"\xc0\xc0", "follow its end"),
    ],
)
def test_a_short_outcome_is_refused_as_a_long_one_is(padding: bytes, value: bytes, said: str) -> None:
    raw = (b"\x82" + padding if padding else b"\x81") + b"\xa1v" + value
    with pytest.raises(Malformed, match=said):
        decode(raw)


@pytest.mark.parametrize("padding", [SHORT, LONG], ids=["told by its bytes", "scanned"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"\xcb\x7f\xef" + b"\xff" * 6, sys.float_info.max),
        (b"\xca\x7f\x7f\xff\xff", 3.4028234663852886e38),
        # Bytes that would be a NaN, an extension and a reserved head, were they not inside a string and a number.
        (b"\xc4\6\xcb\x7f\xf0\xd6\xff\xc1", b"\xcb\x7f\xf0\xd6\xff\xc1"),
        (b"\xcf\xcb\x7f\xf0\0\0\0\0\0", 0xCB7FF00000000000),
    ],
)
def test_a_short_outcome_is_read_as_a_long_one_is(padding: bytes, value: bytes, expected: object) -> None:
    raw = (b"\x82" + padding if padding else b"\x81") + b"\xa1v" + value
    assert decode(raw)["v"] == expected
