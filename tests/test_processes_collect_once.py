"""Fast tests run in forks of one process: what they say, and that one of them ended, is in its report."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from amlstack.base.paths import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

FIRST = """
import os, pathlib, warnings

with pathlib.Path("collected").open("a") as file:
    file.write("x")

def test_good(tmp_path):
    warnings.warn("an odd thing")

def test_ends():
    os._exit(7)

def test_after_it():
    pass
"""
SECOND = """
import gc
import pytest

@pytest.fixture(scope="module")
def ground():
    yield
    raise OSError("a fixture's end")

@pytest.mark.parametrize("number", range(3))
def test_number(number, ground):
    print("captured", number)
    assert number != 1

@pytest.mark.skip(reason="a reason")
def test_skipped():
    pass

class Left:
    def __del__(self):
        raise ValueError("left open")

def test_leaves_an_error(ground):
    left = Left()
    left.itself = left
    gc.disable()
"""


def test_outcomes_warnings_and_ends_of_processes_are_reported(tmp_path: Path) -> None:
    (tmp_path / "test_first.py").write_text(FIRST)
    (tmp_path / "test_second.py").write_text(SECOND)
    words = f"-c /dev/null --rootdir {tmp_path} -p tests.support.processes -p no:randomly -p no:cacheprovider -ra"
    errors = "error::pytest.PytestUnraisableExceptionWarning"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words.split(), "--processes", "2", "-W", errors, tmp_path],
        cwd=tmp_path,
        env={"PYTHONPATH": str(PROJECT), "COLUMNS": "200", "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "3 failed, 4 passed, 1 skipped, 1 warning, 1 error in" in done.stdout
    assert "FAILED test_first.py::test_ends - the process ended with 7" in done.stdout
    assert "FAILED test_second.py::test_number[1] - assert 1 != 1" in done.stdout
    assert "FAILED test_second.py::test_leaves_an_error - the process ended with 1" in done.stdout
    assert "ERROR test_second.py::test_leaves_an_error - OSError: a fixture's end" in done.stdout
    assert "ValueError: left open" in done.stderr
    assert "captured 1\n" in done.stdout
    assert "captured 0\n" not in done.stdout
    assert (tmp_path / "collected").read_text() == "x"
    (kept,) = tmp_path.glob("pytest-of-*/pytest-[0-9]*")
    assert sorted(path.name for path in kept.glob("process-*")) == ["process-0", "process-1"]
