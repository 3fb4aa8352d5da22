"""`amlstack check --changed`: repositories made here, each with one change, and which jobs and stacks it touches."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base.paths import PROJECT
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


pytestmark = pytest.mark.tools


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("train/job.yml", {}),
        ("train/job.yml: python train.py -> python -u train.py", {TRAIN: "declaration: command"}),
        ("train/code/train.py", {TRAIN: "code: train.py changed"}),
        ("-train/code/train.py", {TRAIN: "code: train.py removed"}),
        ("train/code/new.py", {TRAIN: "code: new.py added"}),
        ("train/code/notes/n.txt", {}),
        ("train/code/__pycache__/x.pyc", {}),
        ("train/code/.amlignore", {}),
        ("train/code/.amlignore: notes -> other", {TRAIN: "code: notes/n.txt added"}),
        ("train/job.yml: code: code -> code: ../pipe/steps", {TRAIN: "code: another folder"}),
        ("train/raw/a.txt", {TRAIN: "data of inputs.raw"}),
        ("data/tokens/a.txt", {TRAIN: "data asset `tokens`"}),
        ("data/tokens/new.txt", {TRAIN: "data asset `tokens`"}),
        ("envs/own.yml", {TRAIN: "declaration: environment.conda_file"}),
        ("pipe/parts/one.yml", {}),
        ("pipe/parts/one.yml: one.py -> two.py", {PIPE: "declaration: jobs.one.component.command"}),
        ("pipe/steps/one.py", {PIPE: "code: one.py changed"}),
        ("pipe/conda.yml", {PIPE: "declaration: jobs.one.component.environment.conda_file"}),
        ("python/shape.json", {}),
        ("python/shape.json: 1 -> 2", {PY: "declaration: nodes"}),
        ("python/shared/common.py", {}),
        ("python/shared/deeper.py: train.py -> other.py", {PY: "declaration: command"}),
        ("python/src/second_job.yml", {}),
        ("python/src/second_job.yml: python -> python3", {"python/src/second_job.yml": "declaration: command"}),
        ("along/lib.py", {PY: "code: along/lib.py changed"}),
        ("unlisted/job.yml", {}),
        ("unlisted/job.yml: python -> python3", {"unlisted/job.yml": "declaration: command"}),
        ("README.md", {}),
        ("new.ignored", {}),
        ("Pulumi.prod.yaml: img:1\", conda -> img:2\", conda", {TRAIN: "declaration: environment.image"}),
        ("Pulumi.prod.yaml: {max: 5} -> {max: 3}", {PY: "cluster `small`"}),
        ("clusters/more.yml: max: 2 -> max: 3", {PIPE: "cluster `included`"}),
        ("Pulumi.prod.yaml: file: pipe/ -> rerun: x\\n      file: pipe/", {PIPE: "settings: `rerun`"}),
        ("Pulumi.prod.yaml: data/tokens -> data/tokens, description: all", {TRAIN: "data asset `tokens`"}),
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
    assert touched(found) == touched(loose) == {TRAIN: "code: new.py added", PY: "code: train.py changed"}
    assert (loose["uncommitted"], found["uncommitted"]) == (2, 0)


@pytest.mark.parametrize(
    ("change", "stacks"),
    [
        ("train/code/train.py", {"prod": "train/job.yml: code: train.py changed"}),
        ("data/tokens/a.txt", {"prod": "data asset `tokens`"}),
        ("policies.json", {"prod": "configuration of the policies"}),
        ("Pulumi.prod.yaml: workspace: aml -> workspace: aml2", {"prod": "settings: workspace"}),
        ("Pulumi.prod.yaml: config: -> # a comment\\nconfig:", {}),
        ("clusters/more.yml: max: 2 -> max: 3", {"prod": "settings: clusters[2].nodes.max"}),
        ("infra/__main__.py", dict.fromkeys(("dev", "prod"), "the stack's program: infra/__main__.py")),
        ("Pulumi.yaml", dict.fromkeys(("dev", "prod"), "the stack's program: Pulumi.yaml")),
        ("Pulumi.dev.yaml: dev -> dev2", {"dev": "settings: workspace"}),
        ("README.md", {}),
    ],
)
def test_a_change_touches_the_stacks_that_it_means_something_for(
    repository: Path, changed: Callable[..., Any], change: str, stacks: dict[str, str]
) -> None:
    edited(change)(repository)
    found = changed("HEAD")
    assert {each["stack"]: each["reasons"][0] for each in found["stacks"]} == stacks


def test_a_job_that_is_gone_is_listed_apart(repository: Path, changed: Callable[..., Any]) -> None:
    edited("Pulumi.prod.yaml: - train/job.yml -> # not this")(repository)
    found = changed("HEAD")
    assert touched(found) == {}
    assert found["removed"] == [{"file": TRAIN, "stacks": ["prod"], "reasons": ["no longer listed"]}]
    (repository / "train" / "job.yml").unlink()
    assert changed("HEAD")["removed"][0]["reasons"] == ["deleted, and no longer listed"]
    (repository / "python" / "job.py").unlink()
    still = next(each for each in changed("HEAD")["removed"] if each["file"] == PY)
    assert still["reasons"] == ["deleted, and still listed"]
    (repository / "Pulumi.dev.yaml").unlink()
    assert changed("HEAD")["removed_stacks"] == ["dev"]


def test_a_moved_job_file_declares_the_same_run(repository: Path, changed: Callable[..., Any]) -> None:
    git(repository, "mv", "train", "trained")
    edited("Pulumi.prod.yaml: train/job.yml -> trained/job.yml")(repository)
    found = changed("HEAD")
    assert (touched(found), found["removed"]) == ({}, [])


def test_a_base_reads_modules_of_its_own(repository: Path, changed: Callable[..., Any]) -> None:
    edited("python/shared/deeper.py: train.py -> other.py")(repository)
    assert touched(changed("HEAD")) == {PY: "declaration: command"}
    commit(repository)
    assert touched(changed("HEAD")) == {}
    assert touched(changed("HEAD~1")) == {PY: "declaration: command"}


def test_the_program_itself_is_not_read_from_the_base(repository: Path) -> None:
    write(repository, "infra/__init__.py", "raise SystemExit(7)\n")
    commit(repository)
    edited("train/code/train.py")(repository)
    code = f"import sys; sys.path.insert(0, {str(PROJECT)!r}); sys.path.append({str(repository)!r})\n"
    code += "from amlstack.cli.main import main; sys.exit(main(['check', '--changed', 'HEAD', '--format', 'names']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{TRAIN}\n"), done.stderr


def test_ignored_data_touch_nothing(repository: Path, changed: Callable[..., Any]) -> None:
    write(repository, ".gitignore", "train/raw\n")
    git(repository, "rm", "-q", "--cached", "-r", "train/raw")
    commit(repository)
    write(repository, "train/raw/a.txt", "other data")
    write(repository, "README.md", "other words")
    assert touched(changed("HEAD")) == {}


def test_no_trace_of_the_base_is_left(repository: Path, changed: Callable[..., Any], tmp_path: Path) -> None:
    edited("train/code/train.py")(repository)
    before = sorted(path for path in (repository / ".git").rglob("*") if path.is_file())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tempfile.tempdir", str(tmp_path))
        changed("HEAD")
    assert list(tmp_path.glob("amlstack-commit-*")) == []
    assert sorted(path for path in (repository / ".git").rglob("*") if path.is_file()) == before


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
    assert touched(changed("HEAD", "unlisted/job.yml")) == {"unlisted/job.yml": "code: train.py added"}


def test_a_python_file_that_holds_the_text_of_a_job_file_is_none(repository: Path, changed: Callable[..., Any]) -> None:
    text = "from jobs import Job\njob = Job(name='a', command='true', environment='azureml:x:1')\n"
    write(repository, "tests/test_texts.py", f'TEXT = """\\\n{text}"""\n')
    write(repository, "more/own.py", text)
    assert touched(changed("HEAD")) == {"more/own.py": "new"}


def test_one_stack_may_be_meant(repository: Path, changed: Callable[..., Any]) -> None:
    edited("train/code/train.py")(repository)
    assert touched(changed("HEAD", "--stack", "dev")) == {}
    assert "there is no Pulumi.none.yaml" in changed("HEAD", "--stack", "none", code=2)["error"]


def test_a_job_file_that_cannot_be_read_is_touched(repository: Path, changed: Callable[..., Any]) -> None:
    edited("train/job.yml: command: python -> command: [python")(repository)
    commit(repository)
    edited("train/code/train.py")(repository)
    assert touched(changed("HEAD")) == {TRAIN: "cannot be read"}
