"""`amlstack gitops guards`: what a branch may not judge itself by stays as the base has it, and is listed."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base.paths import PACKAGE
from amlstack.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

WHO = ("-c", "user.name=ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false")
STACK = "config:\n  amlstack:location: westeurope\n  amlstack:workspace: aml-team\n"
WAIVER = {
    "rule": "node-ceiling",
    "resource": "bench-*",
    "owner": "hpc",
    "reason": "Acceptance",
    "expires": "2099-12-31",
}


@dataclass
class Repository:
    """A clone of a team: main checked out, and a branch to be written."""

    root: Path
    capsys: pytest.CaptureFixture[str]

    def git(self, *words: str) -> str:
        command = ["git", *WHO, *words]
        return subprocess.run(command, cwd=self.root, check=True, capture_output=True, text=True).stdout.strip()

    def write(self, **contents: str) -> None:
        for name, text in contents.items():
            file = self.root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")

    def commit(self) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "x")
        return self.git("rev-parse", "HEAD")

    def judged(self, commit: str, *words: str) -> dict[str, Any]:
        self.git("checkout", "--quiet", "--detach", "main")
        self.capsys.readouterr()
        assert main(["gitops", "guards", commit, "--stack", "prod", *words]) == 0
        found: dict[str, Any] = json.loads(self.capsys.readouterr().out)
        return found

    def content(self) -> dict[str, str]:
        found = (path for path in self.root.rglob("*") if path.is_file() and ".git" not in path.parts)
        return {path.relative_to(self.root).as_posix(): path.read_text("utf-8") for path in found}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Repository:
    found = Repository(tmp_path, capsys)
    monkeypatch.chdir(tmp_path)
    found.git("init", "--quiet", "--initial-branch=main")
    found.write(**{
        "Pulumi.prod.yaml": STACK, "Makefile": "venv:\n", "policies/rule.py": "1\n", "training/job.yml": "a: 1\n",
        "rules/team.json": "{}", "Pulumi.dev.yaml": f"{STACK}  amlstack:policies: rules/team.json\n",
    })  # fmt: skip
    found.commit()
    found.git("checkout", "--quiet", "-b", "branch")
    return found


def test_declarations_are_taken_and_guards_stay_as_the_base_has_them(repository: Repository) -> None:
    settings = f"{STACK}  amlstack:policies: lax.json\n  amlstack:jobs: [training/own.py]\n"
    kept = {
        "Makefile": "venv: ; curl\n", "GNUmakefile": "venv:\n", "policies/rule.py": "2\n", "policies/new.py": "3\n",
        "tools/venv.sh": "x\n", "uv.lock": "x\n", ".github/workflows/w.yml": "x\n", "catalogue.yaml": "x\n",
        "typer.py": "x\n", "yaml/__init__.py": "x\n", "rules/team.json": "[]",
        "lax.json": '{"sriov-fabric": "disabled"}',
    }  # fmt: skip
    taken = {"Pulumi.prod.yaml": settings, "training/own.py": "y\n", "review/job.yml": "y\n", "data/[a] b.txt": "y\n"}
    repository.write(**kept, **taken)
    (repository.root / "training" / "job.yml").unlink()
    head = repository.commit()
    repository.git("checkout", "--quiet", "--detach", "main")
    before = repository.content()

    found = repository.judged(head, "--take", "--rules", ".git/rules")

    after = repository.content()
    assert {name: after.get(name) for name in kept} == {name: before.get(name) for name in kept}
    assert {name: after[name] for name in taken} == taken
    assert "training/job.yml" not in after
    assert found["kept"] == sorted(kept)
    assert found["seen"] == ["review/job.yml", "training/own.py"]
    assert found["asked_for"] == ["amlstack:policies: lax.json (here none)", "sriov-fabric: disabled (here mandatory)"]
    assert (repository.root / ".git" / "rules").read_text().splitlines() == ["--policy-pack", str(PACKAGE / "policies")]


def test_a_link_out_of_the_repository_or_in_place_of_a_guards_folder_is_not_taken(repository: Repository) -> None:
    repository.git("rm", "--quiet", "-r", "rules")
    repository.write(**{"lax/team.json": "{}"})
    (repository.root / "rules").symlink_to("lax")
    (repository.root / "training" / "job.yml").unlink()
    (repository.root / "training" / "job.yml").symlink_to("/proc/self/environ")
    found = repository.judged(repository.commit(), "--take")
    assert not (repository.root / "training" / "job.yml").is_symlink()
    assert not (repository.root / "rules").is_symlink()
    assert (repository.root / "rules" / "team.json").is_file()
    assert found["kept"] == ["rules", "rules/team.json", "training/job.yml"]


def test_exceptions_in_force_and_asked_for_are_listed_one_by_one(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "main")
    team = {"sriov-fabric": "advisory", "exception-expired": {"exceptions": [WAIVER]}}
    repository.write(**{
        "team.json": json.dumps(team), "Pulumi.prod.yaml": f"{STACK}  amlstack:policies: team.json\n",
    })  # fmt: skip
    repository.commit()
    repository.git("checkout", "--quiet", "-B", "branch")
    more = {**WAIVER, "resource": "*"}
    asked = {"node-ceiling": {"nodes": 99}, "exception-expired": {"exceptions": [more]}}
    repository.write(**{"team.json": json.dumps(asked)})

    found = repository.judged(repository.commit(), "--rules", ".git/rules")

    assert found["in_force"] == [
        "sriov-fabric: advisory (by default mandatory)",
        "node-ceiling on bench-* until 2099-12-31, hpc: Acceptance",
    ]
    assert sorted(found["asked_for"]) == [
        "no more: node-ceiling on bench-* until 2099-12-31",
        "node-ceiling on * until 2099-12-31, hpc: Acceptance",
        "node-ceiling: nodes 99",
        "sriov-fabric: mandatory (here advisory)",
    ]
    assert (repository.root / ".git" / "rules").read_text().splitlines()[2:] == ["--policy-config", "team.json"]


def test_a_configuration_that_cannot_be_read_and_a_commit_that_is_none_are_said(
    repository: Repository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.write(**{"Pulumi.prod.yaml": f"{STACK}  amlstack:policies: rules/team.json\n", "rules/team.json": "["})
    assert any("is no JSON" in line for line in repository.judged(repository.commit())["asked_for"])
    assert main(["gitops", "guards", "nothing", "--stack", "prod"]) == 2
    assert "no commit `nothing`" in capsys.readouterr().err
