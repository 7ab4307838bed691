"""Guest text is printable, on one line, bounded, and says where it was cut."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookcell_sandbox import GuestLog, escape


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, Ünïcode 漢字 🙂", "plain text, Ünïcode 漢字 🙂"),
        ("a\nb\tc\r", r"a\x0ab\x09c\x0d"),
        ("\x1b[2J\x07", r"\x1b[2J\x07"),
        ("\u202e\u2066x\u2069", r"\u202e\u2066x\u2069"),
        ("a\u00a0b\u2003c\u2028d", r"a\xa0b\u2003c\u2028d"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
        (b"bytes \xff\xfe", r"bytes \xff\xfe"),
        ("", ""),
    ],
)
def test_what_is_no_plain_character_is_written_out(text: str | bytes, shown: str) -> None:
    assert escape(text) == shown


@given(st.text() | st.binary())
def test_the_result_is_one_printable_line_whatever_goes_in(text: str | bytes) -> None:
    shown = escape(text)
    assert shown.isprintable()
    assert len(shown.splitlines()) <= 1
    assert all(c == " " or not unicodedata.category(c).startswith(("C", "Z")) for c in shown)


@pytest.mark.parametrize("text", ["x" * 11, b"x" * 11, "é" * 11, ("é" * 11).encode()])
def test_n_characters_are_kept_and_one_more_is_cut_with_a_mark(text: str | bytes) -> None:
    assert not escape(text, characters=11).endswith("…")
    cut = escape(text, characters=10)
    assert cut.endswith("…")
    assert len(cut) == 11


def test_a_megabyte_costs_no_more_than_what_is_kept() -> None:
    shown = escape(b"\xff" * 1_000_000, characters=10)
    assert len(shown) < 100


def test_every_character_has_one_way_to_be_shown() -> None:
    for point in range(0, sys.maxunicode + 1, 7):
        assert escape(chr(point)).isprintable()


def test_a_log_knows_its_lines_and_that_it_was_cut() -> None:
    assert GuestLog(b"one\ntwo\n").lines == ("one", "two")
    assert GuestLog(b"one\n\ntwo").lines == ("one", "", "two")
    assert GuestLog(b"one", cut=True).lines == ("one", "… [log cut at the limit]")
    assert not GuestLog()
    assert GuestLog(b"", cut=True)
