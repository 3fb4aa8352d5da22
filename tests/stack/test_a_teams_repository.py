"""A team's repository with amlstack from a wheel, in an environment of its own and with an empty HOME."""

from __future__ import annotations

import re
import resource
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from amlstack.base.paths import PACKAGE
from tests.support.stack.wheel_team import Team

if TYPE_CHECKING:
    from tests.support.running import Engine

pytestmark = [pytest.mark.engine, pytest.mark.training, pytest.mark.timeout(1800)]

MARK = "@@ end of a block @@"
RING = "import os\nprint('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])\n"
SHADOW = "raise SystemExit('a package of the team took the place of one of amlstack')\n"


@pytest.fixture(scope="module")
def team(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Team:
    return Team(tmp_path_factory.mktemp("wheel"))


def test_the_repository_names_the_wheel_that_made_it(team: Team) -> None:
    assert f"amlstack @ file://{team.wheel}" in (team.root / "pyproject.toml").read_text()
    assert (team.root / "uv.lock").is_file()


def test_verbs_of_the_wheel_start_within_five_seconds_in_an_environment_made_for_them(team: Team) -> None:
    """Of CPU, which others on this machine do not stretch; the packages are in uv's cache since `init`."""
    file = str(team.root / "workloads/train/job.py")
    for words in (["--help"], ["check", file, "--size", "Standard_HB120rs_v3"], ["show", file]):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        Team.said(["uvx", "--isolated", "--from", str(team.wheel), "amlstack", *words], team.env, team.wheel.parent)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 5, words


def test_its_ci_files_are_added(team: Team) -> None:
    assert "wrote .github/workflows/amlstack-main.yml" in team.amlstack("gitops", "add", "github", "--stack", "dev")
    assert (team.root / "deploy" / "state" / "trust.py").is_file(), "what makes the place of the states comes along"


def test_outside_of_a_project_state_is_kept_below_the_users_own(team: Team, tmp_path: Path) -> None:
    team.amlstack("rehearse", str(team.root / "workloads/train/job.py"), "-j", "1x1", cwd=tmp_path)
    home = Path(team.env["HOME"]) / ".local/state/amlstack"
    assert (home / "amlstack-home.json").is_file()
    assert list(tmp_path.iterdir()) == []
    team.amlstack("down", "--yes", cwd=tmp_path)
    assert not home.exists()


def test_the_tutorial_runs_as_printed_whatever_its_folders_are_called(team: Team, tmp_path: Path) -> None:
    """Block by block in one shell, HOME empty; each line of the output that is shown is printed, in that order."""
    page = (PACKAGE / "docs/tutorial/first-job.md").read_text("utf-8")
    blocks = re.findall(r"```sh\n(.*?)```(?:\n\n```text\n(.*?)```)?", page.partition("## On Azure")[0], re.DOTALL)
    _clone, *typed = blocks
    (tmp_path / "clone" / "dist").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    (tmp_path / "clone" / "dist" / team.wheel.name).symlink_to(team.wheel)
    for name in ("infra", "jobs", "policies"):
        (tmp_path / "training" / name).mkdir(parents=True)
        (tmp_path / "training" / name / "__init__.py").write_text(SHADOW)
    script = "".join(f"{{ {commands}\n}} 2>&1\necho '{MARK}'\n" for commands, _ in typed)
    # Sixteen ranks that import torch are two minutes of CPU; the rehearsal before has trained with four.
    (tmp_path / "ring.py").write_text(RING)
    script = script.replace("{ amlstack up", "cp ../ring.py workloads/train/train.py\n{ amlstack up", 1)
    env = {**team.env, "HOME": str(tmp_path / "home"), "COLUMNS": "400", "NO_COLOR": "1"}
    printed = Team.said(["bash", "-c", script], env, tmp_path / "clone")
    for (commands, shown), output in zip(typed, printed.split(MARK), strict=False):
        lines = iter(output.splitlines())
        for line in filter(str.strip, shown.splitlines()):
            wanted = re.compile(r"\s*(?:[\d.]+s )?\s*" + ".*".join(map(re.escape, line.strip().split("…"))))
            assert any(wanted.fullmatch(each.rstrip()) for each in lines), f"{commands}\nprinted no {line!r}:\n{output}"
    assert f"{tmp_path / 'training' / '.amlstack'}" in printed
    assert not (tmp_path / "training" / ".amlstack").exists()
