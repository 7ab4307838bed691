"""What a terminal shows: widths, colours, and the line that is drawn over and over."""

from __future__ import annotations

import io

import pytest

from hookcell.cli.table import Column, table
from hookcell.cli.terminal import Progress, Terminal, clipped, columns_of, folded, padded


class _Screen(io.StringIO):
    encoding = "utf-8"

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


class _AsciiScreen(_Screen):
    encoding = "ascii"


def _terminal(*, out: bool = True, err: bool = True, **environment: str) -> Terminal:
    return Terminal(_Screen(terminal=out), _Screen(terminal=err), environment)


def test_each_stream_is_coloured_only_where_it_is_a_terminal() -> None:
    both = _terminal()
    assert both.paint("x", "red") == "\x1b[31mx\x1b[0m"
    piped = _terminal(out=False)
    assert piped.paint("x", "red") == "x"
    piped.note("x", "red")
    assert "\x1b[31m" in piped.err.getvalue()


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({"NO_COLOR": "1"}, False), ({"NO_COLOR": "0"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_no_color_is_honoured_when_it_is_not_empty(environment: dict[str, str], coloured: bool) -> None:
    terminal = _terminal(**environment)
    terminal.note("x", "red")
    assert ("\x1b" in terminal.paint("x", "bold") + terminal.err.getvalue()) is coloured


@pytest.mark.parametrize(("columns", "width"), [("", 80), ("100", 100), ("39", 40), ("0", 80), ("-5", 80), ("²", 80)])
def test_without_a_terminal_the_width_is_the_usual_one_unless_told(columns: str, width: int) -> None:
    assert _terminal(out=False, COLUMNS=columns).columns == width


def test_what_the_encoding_lacks_is_known() -> None:
    assert _terminal().unicode
    assert not Terminal(_AsciiScreen(terminal=False), _Screen(terminal=False), {}).unicode


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("", 0), ("µ", 1)])
def test_wide_characters_take_two_columns_and_combining_ones_none(text: str, columns: int) -> None:
    assert columns_of(text) == columns
    assert columns_of(padded(text, 6)) == columns_of(padded(text, 6, right=True)) == 6


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [("abcd", 4, "abcd"), ("abcde", 4, "abc…"), ("日本語", 6, "日本語"), ("日本語", 5, "日本…")],
)
def test_a_text_is_cut_only_when_it_does_not_fit(text: str, columns: int, shown: str) -> None:
    assert clipped(text, columns) == shown


def test_a_long_text_is_folded_behind_its_indents() -> None:
    assert folded("one two three four five", 23, first="- ", rest="  ") == ["- one two three four", "  five"]
    assert folded("", 80, first="- ") == ["-"]


def test_columns_line_up_whatever_stands_in_them() -> None:
    columns = [Column(head="hook", right=False, least=8), Column(head="calls")]
    lines = table(columns, [["日本", "1"], ["plain", "1,000"]], width=80)
    assert lines == ["hook   calls", "日本       1", "plain  1,000"]
    assert len({columns_of(line) for line in lines}) == 1


def test_where_the_usual_gaps_do_not_fit_they_are_narrow() -> None:
    columns = [Column(head="hook", right=False), Column(head="calls")]
    for width, head in ((11, "hook  calls"), (10, "hook calls"), (9, "hook calls")):
        assert table(columns, [["a", "1"]], width=width)[0] == head


def test_a_group_stands_in_the_middle_over_its_columns() -> None:
    columns = [Column(head="hook"), Column(head="p50", group="fuel"), Column(head="p99", group="fuel")]
    assert table(columns, [["a", "1", "2"]], width=80) == [
        "        fuel",
        "hook  p50  p99",
        "   a    1    2",
    ]


def test_a_long_name_gives_way_to_the_figures() -> None:
    columns = [Column(head="hook", right=False, least=8), Column(head="calls")]
    lines = table(columns, [["n" * 100, "1"]], width=30)
    assert [columns_of(line) for line in lines] == [30, 30]
    assert lines[1].endswith("…     1")


def test_progress_is_drawn_on_a_terminal_alone_and_leaves_nothing() -> None:
    for screen in (True, False):
        terminal = _terminal(out=False, err=screen)
        progress = Progress(terminal, "runs")
        progress.show(0.5, 7)
        drawn = terminal.err.getvalue()
        assert ("7 runs" in drawn) is screen
        progress.clear()
        progress.clear()
        rest = terminal.err.getvalue()[len(drawn) :]
        assert rest == (f"\r{' ' * (len(drawn) - 1)}\r" if screen else "")
    assert terminal.out.getvalue() == ""


def test_progress_past_its_ends_is_a_full_or_an_empty_bar() -> None:
    for fraction, bar in ((1.5, "#" * 24), (-1.0, "-" * 24)):
        terminal = _terminal()
        Progress(terminal, "runs").show(fraction, 1)
        assert f"[{bar}]" in terminal.err.getvalue()
