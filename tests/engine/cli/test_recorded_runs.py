"""Lines of recorded runs: plain, packed and broken ones."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from hookcell.cli import recorded_runs
from hookcell.cli.errors import Misused
from hookcell.cli.recorded_runs import Line, RefusedLine, RunFile


def _read(path: Path) -> list[Line | RefusedLine]:
    with RunFile(path) as source:
        return list(source)


def _file(tmp_path: Path, raw: bytes) -> Path:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(raw)
    return path


def test_plain_and_gzipped_lines_read_the_same_whatever_the_file_is_called(tmp_path: Path) -> None:
    raw = b'{"a": 1}\n\n{"b": 2}'
    expected = [Line(number=1, record={"a": 1}), Line(number=3, record={"b": 2})]
    assert _read(_file(tmp_path, raw)) == expected
    assert _read(_file(tmp_path, gzip.compress(raw))) == expected


def test_a_byte_order_mark_before_the_first_line_is_no_fault(tmp_path: Path) -> None:
    assert _read(_file(tmp_path, b'\xef\xbb\xbf{"a": 1}\n')) == [Line(number=1, record={"a": 1})]


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b"{", "column"),
        (b"nonsense", "column"),
        (b'{"a": NaN}', "NaN"),
        (b"[" * 100_000, "deep"),
        (b'{"a": "\xff"}', "UTF-8"),
        (b"[1]", "array"),
        (b"null", "constant"),
        (b'"text"', "string"),
        (b"12", "number"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "JSON"),
    ],
)
def test_a_bad_line_is_refused_by_its_number_and_those_round_it_are_read(tmp_path: Path, bad: bytes, why: str) -> None:
    first, refused, last = _read(_file(tmp_path, b'{"a": 1}\n' + bad + b'\n{"b": 2}\n'))
    assert isinstance(first, Line)
    assert last == Line(number=3, record={"b": 2})
    assert isinstance(refused, RefusedLine)
    assert refused.number == 2
    assert why in refused.reason
    assert "one JSON object a line" in refused.reason


@pytest.mark.parametrize(("start", "advice"), [(b"{\n", "jq -c '.'"), (b"[\n", "jq -c '.[]'")])
def test_a_file_that_is_one_document_is_told_how_to_become_lines(tmp_path: Path, start: bytes, advice: str) -> None:
    first = _read(_file(tmp_path, start + b'"a"\n'))[0]
    assert isinstance(first, RefusedLine)
    assert advice in first.reason


def test_a_line_may_be_as_long_as_the_limit_and_no_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_runs, "LINE_BYTES", 20)
    fits = b'{"a": "' + b"x" * 10 + b'"}\n'
    assert len(fits) == 20
    over = fits.replace(b"x", b"x" * 6, 1)
    read = _read(_file(tmp_path, fits + over + b'{"b": 2}\n'))
    assert [type(each) for each in read] == [Line, RefusedLine, Line]
    assert [each.number for each in read] == [1, 2, 3]


@pytest.mark.parametrize("damage", ["cut", "garbage"])
def test_a_damaged_archive_gives_what_can_be_read_and_then_says_so(tmp_path: Path, damage: str) -> None:
    packed = gzip.compress(b'{"a": 1}\n' * 5_000)
    damaged = packed[:-12] if damage == "cut" else packed[:20] + b"\x00" * 40
    *_, last = _read(_file(tmp_path, damaged))
    assert isinstance(last, RefusedLine)
    assert "cannot be read any further" in last.reason


@pytest.mark.parametrize("name", ["missing.jsonl", "", "with\0zero"])
def test_a_file_that_does_not_open_is_a_mistake_of_the_command_line(tmp_path: Path, name: str) -> None:
    with pytest.raises(Misused):
        RunFile(tmp_path / name)


def test_the_fraction_goes_from_nothing_to_the_whole(tmp_path: Path) -> None:
    with RunFile(_file(tmp_path, b'{"a": 1}\n')) as source:
        list(source)
        assert source.fraction == 1.0
