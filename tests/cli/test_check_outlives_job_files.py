"""Whatever a Python job file does, `amlstack check` says what became of it and fails."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.tools

GOOD = "from jobs import Job\njob = Job(command='echo', environment='azureml:e:1', limits={'timeout': 60})\n"


def check(*args: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "amlstack.cli.main", "check", *args]
    # Standard input stays open and empty: what reads it would wait for ever.
    with subprocess.Popen(["sleep", "infinity"], stdout=subprocess.PIPE) as silent:
        try:
            return subprocess.run(
                command, cwd=folder, stdin=silent.stdout, capture_output=True, text=True, check=False, timeout=120
            )
        finally:
            silent.kill()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("import ctypes\nctypes.CDLL(None)._exit(0)\n", "check-ended"),
        ("import ctypes\nctypes.string_at(0)\n", "check-ended"),
        ("import os\nos._exit(0)\n", "python-ends-process"),
        (
            "import subprocess\nassert subprocess.run(['cat'], capture_output=True).stdout == b''\n",
            "python-starts-process",
        ),
    ],
)
def test_a_file_that_ends_the_process_is_named(text: str, code: str, tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "bad.py").write_text(text)
    done = check("good.py", "bad.py", "--json", folder=tmp_path)
    assert done.returncode == 1, done.stderr
    answer = json.loads(done.stdout)
    found = [*answer["findings"], *(each for file in answer["files"] for each in file["findings"])]
    assert [each["file"] for each in found if each["code"] == code] == ["bad.py"]


def test_what_a_file_leaves_for_the_end_of_the_process_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(f"print('x')\nimport atexit, os\natexit.register(os._exit, 5)\n{GOOD}")
    done = check("job.py", "--json", folder=tmp_path)
    assert (done.returncode, json.loads(done.stdout)["ok"]) == (0, True)
    assert "x\n" in done.stderr


def test_a_wrong_option_gives_the_usual_error(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(GOOD)
    done = check("job.py", "--stack", "nowhere", folder=tmp_path)
    assert "Traceback" not in done.stderr
    assert done.returncode != 0
