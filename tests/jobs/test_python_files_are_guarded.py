"""A Python job file runs in the process that reads it, and neither ends it nor takes its input and output."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

import jobs

if TYPE_CHECKING:
    from pathlib import Path

JOB = "from jobs import Job\njob = Job(command='echo', environment='azureml:e:1')\n"
ENDS = {
    "os._exit": "import os\nos._exit(0)\n",
    "os.abort": "import os\nos.abort()\n",
    "os.kill": "import os\nos.kill(os.getpid(), 9)\n",
    "os.killpg": "import os\nos.killpg(0, 9)\n",
    "os.execv": "import os\nos.execv('/bin/true', ['true'])\n",
    "os.execve": "import os\nos.execlpe('true', 'true', {})\n",
    "signal.raise_signal": "import signal\nsignal.raise_signal(9)\n",
}


def codes(path: Path, text: str) -> list[str]:
    path.write_text(text)
    return [finding.code for finding in jobs.load(path).findings]


@pytest.mark.parametrize("call", ENDS)
def test_a_call_that_would_end_the_process_is_a_finding_with_its_line(call: str, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(ENDS[call])
    (found,) = jobs.load(tmp_path / "job.py").findings
    assert (found.code, found.line) == ("python-ends-process", 2)
    assert f"`{call}`" in found.seen


def test_a_call_that_the_file_catches_is_a_finding_all_the_same(tmp_path: Path) -> None:
    text = f"import os\ntry:\n    os._exit(0)\nexcept BaseException:\n    pass\n{JOB}"
    assert codes(tmp_path / "job.py", text) == ["python-ends-process"]


def test_a_child_may_end_as_it_wants(tmp_path: Path) -> None:
    child = "child = os.fork() or os._exit(3)\nassert os.waitpid(child, 0)[1] >> 8 == 3\n"
    assert codes(tmp_path / "job.py", f"import os\n{child}os.kill(os.getpid(), 0)\n{JOB}") == []


RAISES = [
    "import sys\nsys.exit(0)\n",
    "raise GeneratorExit\n",
    "class E(BaseException): pass\nraise E\n",
    "class E(Exception):\n    def __str__(self): raise ValueError\nraise E\n",
    "input('name? ')\n",
    "import sys\nsys.stdin.read()\n",
    "import sys\nfor line in sys.stdin: pass\n",
    "def f(): f()\nf()\n",
]


@pytest.mark.parametrize("text", RAISES)
def test_whatever_a_file_raises_is_a_finding(text: str, tmp_path: Path) -> None:
    assert codes(tmp_path / "job.py", text) == ["python-raised"]


def test_what_a_file_prints_goes_to_standard_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = f"import subprocess\nprint('its own')\nsubprocess.run(['echo', 'of a child'])\n{JOB}"
    assert codes(tmp_path / "job.py", text) == []
    out, err = capfd.readouterr()
    assert out == ""
    assert {"its own", "of a child"} <= set(err.splitlines())


def test_what_a_file_changes_of_paths_is_undone(tmp_path: Path) -> None:
    before = (list(sys.path), os.getcwd(), os._exit, sys.stdin)  # noqa: PTH109
    text = f"import os, sys\n{JOB}os.chdir('/')\nsys.path.clear()\n"
    assert codes(tmp_path / "job.py", text) == []
    assert (sys.path, os.getcwd(), os._exit, sys.stdin) == before  # noqa: PTH109
