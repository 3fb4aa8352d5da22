"""`amlstack add`: new files and lines in settings, with comments kept, and nothing overwritten."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import jobs
from amlstack.base import paths
from amlstack.cli.additions import AdditionError, with_item
from amlstack.cli.main import main
from infra.settings import read_file
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The repository that `init` makes."""
    assert main(["init", str(tmp_path), "--yes", "--name", "vision", "--amlstack", "amlstack"]) == 0
    monkeypatch.setattr(paths, "PROJECT", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def comments(path: Path) -> list[str]:
    return [line.partition("#")[2] for line in path.read_text().splitlines() if "#" in line]


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["cluster", "h100", "--size", "Standard_ND96isr_H100_v5"], "clusters"),
        (["environment", "mine", "--image", "contoso.azurecr.io/train:7"], "environments"),
        (["environment", "acpt-pytorch-2.2-cuda12.1"], "environments"),
        (["job", "finetune", "--nodes", "1"], "jobs"),
        (["schedule", "nightly", "--starts", "azureml:train", "--begin", "2026-12-01T00:00:00"], "jobs"),
    ],
)
def test_an_addition_is_one_item_more_and_every_comment_stays(
    words: list[str], key: str, team: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = team / "Pulumi.dev.yaml"
    before, text = read_file(file).settings, file.read_text()
    said = comments(file)
    capsys.readouterr()
    assert main(["add", *words, "--dry-run"]) == 0
    assert "+" in capsys.readouterr().out
    assert file.read_text() == text
    assert main(["add", *words, "--yes"]) == 0
    after = read_file(file)
    assert after.findings == ()
    assert len(getattr(after.settings, key)) == len(getattr(before, key)) + 1
    assert comments(file) == said
    assert len(file.read_text().splitlines()) == len(text.splitlines()) + 1


def test_a_job_that_was_added_is_one_that_check_reads(team: Path) -> None:
    assert main(["add", "job", "finetune", "--cluster", "gpu", "--nodes", "3", "--yes"]) == 0
    loaded = jobs.load(team / "workloads/finetune/job.py")
    assert (loaded.findings, loaded.jobs[0].name, loaded.jobs[0].nodes) == ((), "finetune", 3)
    assert [job.file for job in read_file(team / "Pulumi.dev.yaml").settings.jobs][-1] == "workloads/finetune/job.py"


def test_a_stack_is_like_another_with_its_own_workspace_and_no_secret(team: Path) -> None:
    dev = team / "Pulumi.dev.yaml"
    dev.write_text(f"encryptionsalt: v1:abc\n{dev.read_text()}")
    assert main(["add", "stack", "prod", "--yes"]) == 0
    prod = team / "Pulumi.prod.yaml"
    assert comments(prod) == comments(dev)
    assert "encryptionsalt" not in prod.read_text()
    assert (read_file(prod).settings.workspace.name, read_file(dev).settings.workspace.name) == (
        "aml-prod",
        "aml-vision",
    )
    dev.write_text(f"{dev.read_text()}  own:token:\n    secure: abc\n")
    assert main(["add", "stack", "test", "--yes"]) == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["job", "train"], "`workloads/train/job.py` is there already"),
        (["stack", "dev"], "`Pulumi.dev.yaml` is there already"),
        (["stack", "Prod"], "small letters"),
        (["clutser", "h100"], "Did you mean `cluster`"),
        (["cluster", "h100", "--image", "a"], "takes --size, --nodes, and no --image"),
        (["schedule", "nightly", "--starts", "azureml:train"], "`--begin` must be a time"),
        (["stack", "test", "--like", "none"], "Pulumi.none.yaml"),
        (["cluster", "gpu"], "gpu"),
        (["cluster", "h100", "--stack", "none"], "Pulumi.none.yaml"),
        (["schedule", "nightly", "--starts", "none.yml", "--begin", "2026-12-01T00:00:00"], "got `none.yml`"),
    ],
)
def test_what_cannot_be_added_is_said_and_nothing_is_written(
    words: list[str], says: str, team: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in team.rglob("*") if path.is_file() and ".git" not in path.parts}
    assert main(["add", *words, "--yes"]) == 2
    assert says in capsys.readouterr().err
    assert {
        path: path.read_bytes() for path in team.rglob("*") if path.is_file() and ".git" not in path.parts
    } == before


def test_without_a_terminal_and_without_yes_nothing_is_written(team: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["add", "job", "finetune"]) == 1
    assert "--yes" in capsys.readouterr().out
    assert not (team / "workloads/finetune").exists()


@for_each(
    "text, made",
    [
        ("config:\n  a:\n    - x # one\n  # end\n  b: 1\n", "config:\n  a:\n    - x # one\n    - y\n  # end\n  b: 1\n"),
        ("config:\n  a:\n  - x\n", "config:\n  a:\n  - x\n  - y\n"),
        ("config:\n  a: [x] # one\n", "config:\n  a: [x, y] # one\n"),
        ("config:\n  b: 1\n", "config:\n  b: 1\n  a:\n    - y\n"),
        ("config:\n  a:\n    - n: x\n      m: 1 # one\n", "config:\n  a:\n    - n: x\n      m: 1 # one\n    - y\n"),
        ("config:\n  a:\n    - x", "config:\n  a:\n    - x\n    - y"),
        ("config: {a: [x]}\n", "config: {a: [x, y]}\n"),
    ],
)
def test_an_item_is_put_where_the_list_ends_in_each_form(text: str, made: str) -> None:
    assert with_item(text, "a", "y", "f") == made


@for_each("text", ["config:\n  a: 1\n", "a: 1\n", "config:\n  a: []\n", "config:\n  a: |\n    x\n", "- 1\n"])
def test_a_form_that_cannot_be_edited_is_refused(text: str) -> None:
    with pytest.raises(AdditionError):
        with_item(text, "a", "y", "f")
