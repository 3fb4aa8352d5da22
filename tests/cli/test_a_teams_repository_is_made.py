"""`amlstack init`: a repository with the team's files alone."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

import pytest
import yaml

import jobs
from amlstack.cli.main import main
from infra.settings import read_file

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    ".gitignore", "Makefile", "Pulumi.dev.yaml", "Pulumi.yaml", "README.md", "__main__.py", "pyproject.toml",
    "rules/example.py", "rules/policies.json", "workloads/train/job.py", "workloads/train/train.py",
}  # fmt: skip


def made(folder: Path, *words: str) -> int:
    return main(["init", str(folder), "--yes", "--name", "vision", *words])


def files(folder: Path) -> set[str]:
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {str(path) for path in found if path.parts[0] != ".git"}


def test_an_empty_folder_gets_a_stack_a_job_and_its_program(tmp_path: Path) -> None:
    team = tmp_path / "team"
    assert made(team, "--nodes", "3", "--location", "eastus", "--amlstack", "amlstack==9.1") == 0
    assert files(team) == FILES
    assert (team / ".git").is_dir()
    assert not [path for path in FILES if re.search("@[a-z]+@", (team / path).read_text())]
    assert tomllib.loads((team / "pyproject.toml").read_text())["project"]["dependencies"] == ["amlstack==9.1"]
    assert yaml.safe_load((team / "Pulumi.yaml").read_text())["name"] == "vision"
    reading = read_file(team / "Pulumi.dev.yaml")
    assert reading.findings == ()
    assert (reading.settings.location, reading.settings.clusters[0].nodes.max) == ("eastus", 3)
    loaded = jobs.load(team / "workloads/train/job.py")
    assert (loaded.findings, loaded.jobs[0].nodes) == ((), 3)


def test_files_that_are_there_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "README.md").write_text("ours\n")
    assert made(tmp_path) == 0
    assert (tmp_path / "README.md").read_text() == "ours\n"
    assert files(tmp_path) == FILES
    first = capsys.readouterr().out
    assert made(tmp_path) == 0
    assert "kept README.md, which is yours" in first
    assert "wrote" not in capsys.readouterr().out


def test_a_dry_run_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert made(tmp_path / "team", "--dry-run") == 0
    assert "would write Pulumi.dev.yaml" in capsys.readouterr().out
    assert not (tmp_path / "team").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--size", "Standard_NC24r"], "take Standard_ND40rs_v2"),
        (["--size", "Standard_ND96asr_v5"], "`Standard_ND96asr_v5` is no known size"),
        (["--location", "westeurop"], "Did you mean `westeurope`?"),
        (["--nodes", "0"], "`--nodes` must be 1 or more, got 0"),
        (["--workspace", "My_Workspace"], "`--workspace` must be 2 to 32 small letters"),
    ],
)
def test_a_wrong_answer_writes_nothing(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert made(tmp_path / "team", *words) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "team").exists()
