"""Shell completion: what bash's own `complete -C` gets, and the lines for each shell."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

import pytest

from amlstack.cli.completion import SHELLS, candidates
from amlstack.cli.main import VERBS, app_of, main
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

APPS = {name: partial(app_of, verb) for name, verb in VERBS.items()}


@for_each(
    "line, found",
    [
        ("amlstack rehe", ["rehearse"]),
        ("amlstack s", ["sandbox", "schema", "shell", "show", "sizes", "status", "submit"]),
        ("amlstack gitops ad", ["add"]),
        ("amlstack gitops add --own", ["--owners"]),
        ("amlstack up --prev", ["--preview"]),
        ("amlstack up --stack sand", ["sandbox"]),
        ("amlstack check a.yml --size Standard_ND96asr", ["Standard_ND96asr_v4"]),
        ("amlstack init --location westeu", ["westeurope"]),
        ("amlstack check workloads/t", []),
        ("amlstack nothing --s", []),
    ],
)
def test_verbs_options_and_values_are_completed(line: str, found: list[str]) -> None:
    assert candidates(APPS, {"COMP_LINE": line, "COMP_POINT": str(len(line))}) == found


def test_what_stands_behind_the_cursor_is_left_out() -> None:
    line = "amlstack rehe job.py"
    assert candidates(APPS, {"COMP_LINE": line, "COMP_POINT": "13"}) == ["rehearse"]


def test_bash_completes_by_the_line_that_is_shown(tmp_path: Path) -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "amlstack.cli.main", "--show-completion", "bash"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    command = tmp_path / "amlstack"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m amlstack.cli.main "$@"\n')
    command.chmod(0o755)
    script = (
        f'{shown}\ncomplete -p amlstack\nCOMP_LINE="amlstack rehe" COMP_POINT=13 amlstack --complete amlstack rehe x'
    )
    bash = shutil.which("bash")
    assert bash
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run([bash, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "rehearse"
    assert "amlstack --complete" in done.stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_has_its_lines(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--show-completion", shell]) == 0
    assert "amlstack --complete" in capsys.readouterr().out


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--show-completion", "tcsh"]) == 2
    assert "bash, zsh, fish" in capsys.readouterr().err
