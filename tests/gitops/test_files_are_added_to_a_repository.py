"""`amlstack gitops add`: the files of deploy/ in a repository, with the stack's name, and never over an edit."""

from __future__ import annotations

import re
import shutil
import tomllib
from typing import TYPE_CHECKING

import pytest

from amlstack.base import paths
from amlstack.cli.gitops import files
from amlstack.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FIRST = ".github/workflows/amlstack-pull-request.yml"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty git repository of a team, in which a person is."""
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def content(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text("utf-8") for path in root.rglob("*") if path.is_file()}


def targets() -> Iterator[str]:
    yield from (
        name
        for name, (first, *_) in files.TARGETS.items()
        if any((paths.shipped("deploy") / first.name).glob("**/*.y*ml"))
    )


@pytest.mark.parametrize("target", list(targets()))
def test_every_file_of_a_target_is_written_with_the_stacks_name(target: str, repository: Path) -> None:
    assert main(["gitops", "add", target, "--stack", "train-eu"]) == 0
    written = content(repository)
    assert written
    assert not [name for name, text in written.items() if re.search(r"\bprod\b", text)]
    assert all(("train-eu" in name) == ("train-eu" in text) for name, text in written.items()), "each stack has its own"


def test_files_as_they_were_written_stay_and_a_start_may_be_edited(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gitops", "add", "github", "--stack", "dev"]) == 0
    (repository / "Pulumi.review.yaml").write_text("config: {}\n")
    before = content(repository)
    capsys.readouterr()
    assert main(["gitops", "add", "github", "--stack", "dev"]) == 0
    assert content(repository) == before
    assert "wrote" not in capsys.readouterr().out


def test_an_edited_file_is_shown_and_nothing_is_written(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edited = repository / FIRST
    edited.parent.mkdir(parents=True)
    edited.write_text("name: ours\n")
    assert main(["gitops", "add", "github", "--stack", "dev"]) == 1
    printed = capsys.readouterr()
    assert "-name: ours" in printed.out
    assert "nothing was written" in printed.err
    assert content(repository) == {FIRST: "name: ours\n"}
    assert main(["gitops", "add", "github", "--stack", "dev", "--force"]) == 0
    assert "name: amlstack pull request" in edited.read_text()


@pytest.mark.parametrize("target", list(targets()))
def test_a_second_stack_adds_files_and_leaves_those_of_the_first(target: str, repository: Path) -> None:
    assert main(["gitops", "add", target, "--stack", "dev"]) == 0
    first = content(repository)
    (repository / "Pulumi.test.yaml").write_text("config:\n  amlstack:policies: rules/test.json\n")
    assert main(["gitops", "add", target, "--stack", "test"]) == 0
    now = content(repository)
    owners = [name for name in first if name.endswith("CODEOWNERS")]
    assert {name: now[name] for name in first if name not in owners} == {
        name: text for name, text in first.items() if name not in owners
    }
    assert [now[name].startswith(first[name]) for name in owners] == [True] * len(owners)
    assert all("test" in name for name in now.keys() - first.keys() - {"Pulumi.test.yaml"})


def test_a_dry_run_names_the_files_and_writes_none(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gitops", "add", "github", "--stack", "dev", "--dry-run"]) == 0
    assert f"would write {FIRST}" in capsys.readouterr().out
    assert content(repository) == {}


def test_the_only_stack_of_a_repository_is_meant(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gitops", "add", "github"]) == 2
    assert "--stack NAME" in capsys.readouterr().err
    for name in ("sandbox", "review", "dev"):
        (repository / f"Pulumi.{name}.yaml").write_text("config: {}\n")
    assert main(["gitops", "add", "github"]) == 0
    assert (repository / FIRST).is_file()


def test_what_must_be_set_once_is_printed(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gitops", "add", "github", "--stack", "dev"]) == 0
    printed = capsys.readouterr().out
    for words in (
        "gh variable set AZURE_TENANT_ID",
        "az role assignment create",
        "pulumi config set --path 'stacks.dev'",
        "Pulumi.yaml",
    ):
        assert words in printed, printed


@pytest.mark.parametrize(
    ("target", "place"), [("github", ".github/CODEOWNERS"), ("azure-pipelines", ".azure-pipelines/CODEOWNERS")]
)
def test_who_approves_what_decides_about_the_checks_is_written_whole(
    target: str, place: str, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = "config:\n  amlstack:location: westeurope\n  amlstack:workspace: aml-team\n"
    jobs = "  amlstack:jobs: [training/own.py, training/plain.yml]\n"
    (repository / "Pulumi.dev.yaml").write_text(f"{stack}  amlstack:policies: rules/team.json\n{jobs}")
    assert main(["gitops", "add", target, "--stack", "dev"]) == 0
    assert "--owners" in capsys.readouterr().out

    assert main(["gitops", "add", target, "--stack", "dev", "--owners", "@contoso/platform", "--force"]) == 0

    lines = [line.split() for line in (repository / place).read_text().splitlines() if line.startswith("/")]
    assert {owner for _, owner in lines} == {"@contoso/platform"}
    owned = {pattern for pattern, _ in lines}
    assert owned >= {"/Makefile", "/tools/", "/uv.lock", "/pyproject.toml", "/policies/", "/rules/team.json", "/jobs/"}
    assert owned >= {"/catalogue.yaml", "/review/", "/.github/", "/.azure-pipelines/", "/Pulumi*.yaml", "/deploy/"}
    assert owned >= {"/CODEOWNERS", "/training/own.py", "/amlstack/", "/infra/"}
    assert "/training/plain.yml" not in owned
    before = content(repository)
    assert main(["gitops", "add", target, "--stack", "dev"]) == 0, "the owner that the file has stays"
    assert content(repository) == before
    assert main(["gitops", "add", target, "--stack", "dev", "--owners", "a b"]) == 2


@pytest.mark.parametrize(("target", "stack"), [("github", "a b"), ("github", "$(x)"), ("kubernetes", "Dev_1")])
def test_a_stack_whose_name_cannot_stand_in_the_files_is_refused(
    target: str, stack: str, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gitops", "add", target, "--stack", stack]) == 2
    assert f"got `{stack}`" in capsys.readouterr().err
    assert content(repository) == {}


def test_outside_of_a_repository_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["gitops", "add", "github", "--stack", "dev"]) == 2
    assert "git init" in capsys.readouterr().err


def test_an_installed_package_carries_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = files.files_of("github", "dev")
    build = tomllib.loads((paths.PROJECT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]
    for source, target in build["targets"]["wheel"]["force-include"].items():
        shutil.copytree(paths.PROJECT / source, tmp_path / target)
    monkeypatch.setattr(paths, "PACKAGE", tmp_path)
    assert paths.shipped("deploy") == tmp_path / "amlstack" / "deploy"
    assert paths.shipped("tools/engine") == tmp_path / "amlstack" / "tools" / "engine"
    assert files.files_of("github", "dev") == shipped
