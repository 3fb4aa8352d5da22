"""`amlstack check --changed`: repositories made here, each with one change, and which jobs and stacks it touches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amlstack.cli.main import main
from tests.support.cli.changed_repository import (
    PIPE,
    PY,
    TRAIN,
    commit,
    edited,
    git,
    touched,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("train/job.yml", {TRAIN: "job file"}),
        ("train/code/train.py", {TRAIN: "code"}),
        ("-train/code/train.py", {TRAIN: "code"}),
        ("train/code/new.py", {TRAIN: "code"}),
        ("train/code/notes/n.txt", {}),
        ("train/code/__pycache__/x.pyc", {}),
        ("train/code/.amlignore", {TRAIN: "code"}),
        ("train/raw/a.txt", {TRAIN: "data of inputs.raw"}),
        ("data/tokens/a.txt", {TRAIN: "data asset `tokens`"}),
        ("data/tokens/new.txt", {TRAIN: "data asset `tokens`"}),
        ("envs/own.yml", {TRAIN: "conda file of the environment"}),
        ("pipe/parts/one.yml", {PIPE: "read by the job file"}),
        ("pipe/steps/one.py", {PIPE: "code"}),
        ("pipe/conda.yml", {PIPE: "conda file of the environment"}),
        ("python/shape.json", {PY: "read by the job file"}),
        ("python/shared/common.py", {PY: "imported by the job file"}),
        ("python/shared/deeper.py", {PY: "imported by the job file"}),
        ("python/src/second_job.yml", {"python/src/second_job.yml": "job file"}),
        ("along/lib.py", {PY: "goes along with the code"}),
        ("unlisted/job.yml", {"unlisted/job.yml": "job file"}),
        ("README.md", {}),
        ("new.ignored", {}),
        ("Pulumi.prod.yaml: img:1\", conda -> img:2\", conda", {TRAIN: "settings: environments `own`"}),
        ("Pulumi.prod.yaml: {max: 5} -> {max: 3}", {PY: "settings: clusters `small`"}),
        ("clusters/more.yml: max: 2 -> max: 3", {PIPE: "settings: clusters `included`"}),
        ("Pulumi.prod.yaml: file: pipe/ -> rerun: x\\n      file: pipe/", {PIPE: f"settings: jobs `{PIPE}`"}),
        ("Pulumi.prod.yaml: data/tokens -> data/tokens, description: all", {TRAIN: "settings: data `tokens`"}),
        ("Pulumi.prod.yaml: workspace: aml -> workspace: aml2", {}),
    ],
)  # fmt: skip
def test_a_change_touches_the_jobs_that_it_means_something_for(
    repository: Path, changed: Callable[..., Any], change: str, expected: dict[str, str]
) -> None:
    edited(change)(repository)
    found = touched(changed("HEAD"))
    assert found == expected


def test_a_committed_change_counts_as_one_that_is_not(repository: Path, changed: Callable[..., Any]) -> None:
    base = git(repository, "rev-parse", "HEAD")
    edited("train/code/new.py")(repository)
    edited("python/src/train.py")(repository)
    loose = changed(base)
    commit(repository)
    found = changed(base)
    assert touched(found) == touched(loose) == {TRAIN: "code", PY: "code"}
    assert (loose["uncommitted"], found["uncommitted"]) == (2, 0)


@pytest.mark.parametrize(
    ("change", "stacks"),
    [
        ("train/code/train.py", {"prod": "job: code"}),
        ("data/tokens/a.txt", {"prod": "data asset `tokens`"}),
        ("policies.json", {"prod": "configuration of the policies"}),
        ("Pulumi.prod.yaml: workspace: aml -> workspace: aml2", {"prod": "settings: `workspace`"}),
        ("Pulumi.prod.yaml: config: -> # a comment\\nconfig:", {}),
        ("clusters/more.yml: max: 2 -> max: 3", {"prod": "settings: clusters `included`"}),
        ("infra/__main__.py", {"prod": "the stack's program", "dev": "the stack's program"}),
        ("Pulumi.yaml", {"prod": "the stack's program", "dev": "the stack's program"}),
        ("Pulumi.dev.yaml: dev -> dev2", {"dev": "settings: `workspace`"}),
        ("README.md", {}),
    ],
)
def test_a_change_touches_the_stacks_that_it_means_something_for(
    repository: Path, changed: Callable[..., Any], change: str, stacks: dict[str, str]
) -> None:
    edited(change)(repository)
    found = changed("HEAD")
    assert {each["stack"]: each["reasons"][0]["what"] for each in found["stacks"]} == stacks


def test_a_job_that_is_gone_is_listed_apart_and_a_renamed_one_is_both(
    repository: Path, changed: Callable[..., Any]
) -> None:
    git(repository, "mv", "train", "trained")
    edited("Pulumi.prod.yaml: train/job.yml -> trained/job.yml")(repository)
    found = changed("HEAD")
    assert touched(found) == {"trained/job.yml": "job file"}
    assert [(job["file"], job["stacks"]) for job in found["removed"]] == [(TRAIN, ["prod"])]
    assert found["removed"][0]["reasons"][0]["what"] == "deleted, and no longer listed"
    (repository / "python" / "job.py").unlink()
    still = changed("HEAD")["removed"][0]
    assert (still["file"], still["reasons"][0]["what"]) == (PY, "deleted, and still listed")
    (repository / "Pulumi.dev.yaml").unlink()
    assert changed("HEAD")["removed_stacks"] == ["dev"]


def test_names_and_stacks_are_one_a_line_as_a_command_takes_them(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    edited("train/code/train.py")(repository)
    edited("python/src/train.py")(repository)
    assert main(["check", "--changed", "HEAD", "--format", "names"]) == 0
    assert capsys.readouterr().out == f"{TRAIN}\n{PY}\n"
    assert main(["check", "--changed", "HEAD", "--format", "stacks"]) == 0
    assert capsys.readouterr().out == "prod\n"
    monkeypatch.chdir(repository / "train")
    assert main(["check", "--changed", "HEAD", "--format", "names"]) == 0
    assert "job.yml\n" in capsys.readouterr().out


def test_a_line_says_so_when_nothing_was_touched(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edited("README.md")(repository)
    assert main(["check", "--changed", "HEAD"]) == 0
    head = git(repository, "rev-parse", "HEAD")[:10]
    assert capsys.readouterr().out == (
        f"since {head} (`HEAD`): 1 file changed, 1 of them not committed\nno jobs touched\nno stacks touched\n"
    )
    assert main(["check", "--changed", "HEAD", "--format", "names"]) == 0
    assert capsys.readouterr().out == ""


def test_job_files_that_no_stack_lists_are_looked_at_when_they_are_named(
    repository: Path, changed: Callable[..., Any]
) -> None:
    write(repository, "unlisted/code/train.py", "x = 1\n")
    assert touched(changed("HEAD")) == {}
    assert touched(changed("HEAD", "unlisted/job.yml")) == {"unlisted/job.yml": "code"}


def test_a_python_file_that_holds_the_text_of_a_job_file_is_none(repository: Path, changed: Callable[..., Any]) -> None:
    text = "from jobs import Job\njob = Job(name='a')\n"
    write(repository, "tests/test_texts.py", f'TEXT = """\\\n{text}"""\n')
    write(repository, "more/own.py", text)
    assert touched(changed("HEAD")) == {"more/own.py": "job file"}


def test_one_stack_may_be_meant(repository: Path, changed: Callable[..., Any]) -> None:
    edited("train/code/train.py")(repository)
    assert touched(changed("HEAD", "--stack", "dev")) == {}
    assert "there is no Pulumi.none.yaml" in changed("HEAD", "--stack", "none", code=2)["error"]


def test_a_job_file_that_cannot_be_read_is_touched_by_what_lies_beside_it(
    repository: Path, changed: Callable[..., Any]
) -> None:
    edited("train/job.yml: command: python -> command: [python")(repository)
    commit(repository)
    edited("train/code/train.py")(repository)
    assert touched(changed("HEAD")) == {TRAIN: "beside a job file that cannot be read"}
