from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from amlstack.sandbox import nvidia_smi
from amlstack.sandbox.gpu_code import programs

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["-L"], 4),
        (["--query-gpu=name", "--format=csv,noheader"], 4),
        (["--query-gpu=index,memory.total", "--format=csv"], 5),
        ([], 1),
    ],
)
def test_as_many_lines_as_gpus_are_printed(words: list[str], lines: int) -> None:
    assert nvidia_smi.answer(words, 4).count("\n") == lines


def test_what_it_does_not_know_is_not_available() -> None:
    assert nvidia_smi.answer(["--query-gpu=index,memory.total", "--format=csv,noheader"], 2) == "0, [N/A]\n1, [N/A]\n"


def test_the_program_counts_for_a_shell(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    path = programs(tmp_path, str(tmp_path / "empty"))

    done = subprocess.run(
        ["/bin/sh", "-c", "nvidia-smi -L | /usr/bin/wc -l"],
        env={"PATH": path, "AMLSTACK_SANDBOX_GPUS": "8"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == "8"


def test_a_program_of_the_machine_stays(tmp_path: Path) -> None:
    own = tmp_path / "nvidia-smi"
    own.touch(mode=0o700)

    assert programs(tmp_path, str(tmp_path)) == str(tmp_path)
