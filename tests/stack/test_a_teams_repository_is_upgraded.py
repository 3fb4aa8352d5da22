"""`amlstack upgrade` from one built wheel to another: the pin, workflows that a team has edited, what stacks get."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.support.stack.fresh_clone import Clone
from tests.support.stack.wheel_team import Team

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.running import Engine

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1200)]
MAIN, DRIFT = ".github/workflows/amlstack-main.yml", ".github/workflows/amlstack-drift.yml"
NEWER = {
    "amlstack/__init__.py": ('__version__ = "0.1.0"', '__version__ = "0.9.0"'),
    "deploy/github/amlstack-main.yml": ("timeout-minutes: 120", "timeout-minutes: 150"),
    "deploy/github/amlstack-drift.yml": ("timeout-minutes: 30", "timeout-minutes: 40"),
    "deploy/team/Makefile": ("# `make venv`", "# Newer: `make venv`"),
    "infra/properties.py": ("{**tags, **spec.tags}", '{**tags, "newer": "yes", **spec.tags}'),
    "policies/checks/cluster.py": ("Nodes get public addresses", "Nodes get addresses that are public"),
}
"""Changes of the newer version: file → the text and what stands there then."""


@dataclass
class Upgraded:
    """A repository before, and after a look at a copy of it without its stack; what was shown both times."""

    team: Team
    wheel: Path
    before: dict[str, str]
    after_a_look: dict[str, str]
    look: subprocess.CompletedProcess[str]
    write: subprocess.CompletedProcess[str]

    def now(self, path: str) -> str:
        return (self.team.root / path).read_text("utf-8")


def contents(root: Path) -> dict[str, str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {name: (root / name).read_text("utf-8") for name in listed.stdout.split()}


@pytest.fixture(scope="module")
def upgraded(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Upgraded:
    folder = tmp_path_factory.mktemp("upgrade")
    team = Team(folder)
    team.amlstack("gitops", "add", "github", "--stack", "dev")
    main, drift = team.root / MAIN, team.root / DRIFT
    main.write_text(f"# Ours.\n{main.read_text()}")  # elsewhere than the newer version
    drift.write_text(drift.read_text().replace("timeout-minutes: 30", "timeout-minutes: 99"))  # the same line
    (folder / "newer").mkdir()
    newer = Clone.made(folder / "newer").folder
    for name, (old, new) in NEWER.items():
        text = (newer / name).read_text("utf-8")
        assert old in text, name
        (newer / name).write_text(text.replace(old, new), "utf-8")
    out = folder / "wheels"
    team.said(["uv", "build", "--wheel", "--quiet", "--out-dir", str(out)], team.env, newer)
    (wheel,) = out.glob("*.whl")

    def upgrade(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
        command = [str(team.root / ".venv/bin/amlstack"), "upgrade", str(wheel), "--sandbox", *words]
        return subprocess.run(command, cwd=root, env=team.env, capture_output=True, text=True, check=False)

    before = contents(team.root)
    copy = folder / "copy"
    for name in before.keys() - {"Pulumi.dev.yaml"}:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(team.root / name, copy / name)
    subprocess.run(["git", "init", "--quiet", str(copy)], check=True)
    (copy / ".venv").symlink_to(team.root / ".venv")
    look = upgrade(copy, "--dry-run")
    (copy / ".venv").unlink()
    write = upgrade(team.root, "--yes")
    team.amlstack("down", "--yes")
    return Upgraded(team, wheel, before, contents(copy), look, write)


def test_a_look_shows_files_and_writes_nothing(upgraded: Upgraded) -> None:
    said = upgraded.look.stdout
    assert upgraded.look.returncode == 0, said + upgraded.look.stderr
    assert upgraded.before.items() - upgraded.after_a_look.items() == {
        ("Pulumi.dev.yaml", upgraded.before["Pulumi.dev.yaml"])
    }
    assert upgraded.after_a_look.keys() < upgraded.before.keys()
    assert "amlstack 0.1.0 → 0.9.0" in said
    assert "+# Newer: `make venv`" in said
    assert "nothing was written" in said


def test_files_findings_and_plans_are_shown(upgraded: Upgraded) -> None:
    said = upgraded.write.stdout
    assert "amlstack 0.1.0 → 0.9.0" in said
    assert "+    timeout-minutes: 150" in said
    assert "found newly: Pulumi.dev.yaml: Nodes get addresses that are public" in said
    assert "found no more: Pulumi.dev.yaml: Nodes get public addresses" in said
    assert "gpu: with other values than in that plan" in said, said


def test_the_pin_is_the_newer_one_and_its_environment_is_there(upgraded: Upgraded) -> None:
    assert f"amlstack @ file://{upgraded.wheel}" in upgraded.now("pyproject.toml")
    assert upgraded.team.amlstack("--version") == "amlstack 0.9.0\n"


def test_an_edit_of_the_team_is_kept_beside_what_is_newer(upgraded: Upgraded) -> None:
    text = upgraded.now(MAIN)
    assert text.startswith("# Ours.\n")
    assert "timeout-minutes: 150" in text
    assert "<<<<<<<" not in text
    assert upgraded.now("Makefile").startswith("# Newer: `make venv`")


def test_a_line_that_both_have_changed_is_marked_and_said(upgraded: Upgraded) -> None:
    assert upgraded.write.returncode == 1
    assert f"to be settled by hand, where <<<<<<< stands: {DRIFT}" in upgraded.write.stdout
    text = upgraded.now(DRIFT)
    assert text.index("<<<<<<< yours") < text.index("timeout-minutes: 99") < text.index("timeout-minutes: 40")


def test_files_that_are_the_teams_alone_stay(upgraded: Upgraded) -> None:
    own = [name for name in upgraded.before if name.startswith(("workloads/", "rules/", "Pulumi.dev"))]
    assert own
    assert [upgraded.now(name) for name in own] == [upgraded.before[name] for name in own]


def test_what_cannot_be_upgraded_to_is_said(upgraded: Upgraded) -> None:
    for words, says in ((("upgrade",), "Name what to upgrade to"), (("upgrade", "none.whl"), "There is no wheel")):
        command = [str(upgraded.team.root / ".venv/bin/amlstack"), *words]
        done = subprocess.run(
            command, cwd=upgraded.team.root, env=upgraded.team.env, capture_output=True, text=True, check=False
        )
        assert (done.returncode, says in done.stderr) == (2, True), done.stderr
