"""Five teams with three stacks each in a repository: a change touches the stacks that lead to it, and no others.

The workflows of such a repository run in tests/stack/test_a_teams_repository.py.
"""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from amlstack.cli.gitops import touched
from amlstack.cli.main import main
from tests.support.gitops.five_teams import STACKS, filled

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of five teams, without an environment."""
    (tmp_path / "workloads").mkdir()
    (tmp_path / "Pulumi.dev.yaml").write_text("config: {'amlstack:clusters': [{name: gpu, size: s}]}\n")
    filled(tmp_path)
    (tmp_path / "Pulumi.review.yaml").write_text("config: {}\n")
    (tmp_path / "README.md").write_text("five teams\n")
    monkeypatch.chdir(tmp_path)
    for words in (("init", "--quiet", "--initial-branch=main"), ("add", "--all"), ("commit", "--quiet", "-m", "a")):
        git(tmp_path, *words)
    return tmp_path


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


OF_ALFA = ("alfa-dev", "alfa-prod", "alfa-test")


@pytest.mark.parametrize(
    ("path", "stacks"),
    [
        ("Pulumi.alfa-dev.yaml", ("alfa-dev",)),
        ("teams/alfa/code/train.py", OF_ALFA),
        ("teams/alfa/new/job.yml", OF_ALFA),
        ("README.md", ()),
        ("uv.lock", STACKS),
        ("Pulumi.review.yaml", STACKS),
        ("teams/shared.py", STACKS),
    ],
)
def test_a_file_touches_the_stacks_that_lead_to_it_or_to_its_folder(
    path: str, stacks: tuple[str, ...], repository: Path
) -> None:
    file = repository / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text((file.read_text() if file.exists() else "") + "# more\n")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "-m", "b")
    assert touched.touched("HEAD", "HEAD~1") == stacks


def test_a_stack_that_comes_is_touched_and_one_that_goes_is_not(repository: Path) -> None:
    (repository / "Pulumi.alfa-dev.yaml").rename(repository / "Pulumi.foxtrot-dev.yaml")
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "-m", "b")
    assert touched.touched("HEAD", "HEAD~1") == ("foxtrot-dev",)


def test_a_commit_that_is_not_there_means_all_stacks(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gitops", "stacks", "--since", "0" * 40]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == list(STACKS)
    assert "all stacks are meant" in printed.err
