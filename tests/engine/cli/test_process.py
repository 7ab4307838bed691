"""The command as a process: what it imports, and how it ends when it is interrupted or nobody reads it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .small_guests import GUARD, one_call, record, written

COMMAND = [sys.executable, "-m", "hookcell.cli"]


def _popen(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["--version"], ["inspect", str(GUARD)]])
def test_what_runs_nothing_does_not_import_wasmtime(arguments: list[str]) -> None:
    code = (
        "import sys; from hookcell.cli import main\n"
        f"try: main({arguments!r})\n"
        "except SystemExit: pass\n"
        "sys.exit('wasmtime' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no /dev/stdin and interrupts otherwise")
def test_an_interrupt_ends_it_with_130_and_without_a_traceback() -> None:
    process = _popen("run", GUARD, "--on", "/dev/stdin", "--ndjson", stdin=subprocess.PIPE)
    assert process.stdin
    assert process.stdout
    process.stdin.write(json.dumps(record(one_call())).encode() + b"\n")
    process.stdin.flush()
    process.stdout.readline()  # it is replaying by now
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert err.decode().strip() == "hookcell: interrupted"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows tells of closed pipes otherwise")
def test_a_reader_that_leaves_ends_it_quietly(tmp_path: Path) -> None:
    runs = written(tmp_path / "runs.jsonl", *(record(one_call(), f"r{index}") for index in range(200)))
    process = _popen("run", GUARD, "--on", runs, "--ndjson")
    assert process.stdout
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


def test_an_encoding_without_the_signs_does_not_stop_it(tmp_path: Path) -> None:
    runs = written(tmp_path / "runs.jsonl", record(one_call(name="déjà"), "run é"))
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    process = _popen("run", GUARD, "--on", runs, "--show", "1", env=environment)
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert b" us (p99)" in out
    inspected = _popen("inspect", GUARD, env=environment)
    assert b"#" in inspected.communicate()[0]


def test_the_version_is_the_packages() -> None:
    out, _ = _popen("--version").communicate()
    assert out.decode().split()[0] == "hookcell"
