"""Figures as a table shows them."""

from __future__ import annotations

import pytest

from hookcell.cli import replay_report


@pytest.mark.parametrize(
    ("figure", "shown"),
    [
        (0.4, "0"),
        (9_999, "9,999"),
        (9_999.6, "10.0k"),
        (10_000, "10.0k"),
        (99_900, "99.9k"),
        (99_960, "100k"),
        (999_400, "999k"),
        (999_600, "1.0M"),
        (20_000_000, "20.0M"),
        (5e12, "5,000G"),
    ],
)
def test_a_figure_of_the_table_takes_five_columns_at_most(figure: float, shown: str) -> None:
    assert replay_report._short(figure) == shown
