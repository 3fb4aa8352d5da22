"""A team's repository with amlstack from a wheel, in an environment of its own and with an empty HOME.

Five teams with three stacks each work in one by pull requests, too: each change runs for the stack that it touches
alone. Each stack has a state, a key and identities of its own, and the workflows of deploy/github serve all of them.
"""

from __future__ import annotations

import contextlib
import json
import re
import resource
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from amlstack.base.paths import PACKAGE
from tests.support.deploy import state_place
from tests.support.gitops.five_teams import IMAGE, STACKS, filled
from tests.support.gitops.forge import Forge
from tests.support.gitops.github import JobRun, Runner
from tests.support.gitops.team import IDENTITIES, end, runners_env
from tests.support.running import running_sandbox
from tests.support.stack.small_jobs import store_of
from tests.support.stack.wheel_team import Team

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.deploy.state_place import Place
    from tests.support.running import Engine

pytestmark = [pytest.mark.engine, pytest.mark.training, pytest.mark.timeout(1800)]

PLACED = ("alfa-dev", "bravo-dev")
"""One stack of each of two teams has a place for its state: what is made for each stack is the same."""

MARK = "@@ end of a block @@"
RING = "import os\nprint('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])\n"
SHADOW = "raise SystemExit('a package of the team took the place of one of amlstack')\n"


@pytest.fixture(scope="module")
def team(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Team:
    return Team(tmp_path_factory.mktemp("wheel"))


@dataclass
class Company:
    """A repository of five teams, and what its workflows did."""

    root: Path
    added: str
    forge: Forge
    place: Place
    runs: dict[str, dict[str, JobRun]] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)

    def legs(self, step: str) -> dict[str, dict[str, str]]:
        return {key: {name: one.result for name, one in job.legs.items()} for key, job in self.runs[step].items()}

    def printed(self, step: str) -> str:
        return "\n".join(f"===== {key}: {one.result}\n{one.text()}" for key, one in self.runs[step].items())


@pytest.fixture(scope="module")
def company(engine: Engine, team: Team, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    folder = tmp_path_factory.mktemp("company")
    root = folder / "team"
    shutil.copytree(team.root, root, ignore=shutil.ignore_patterns(".venv"))
    (root / ".venv").symlink_to(team.root / ".venv")
    filled(root)
    added = team.amlstack("gitops", "add", "github", "--stack", STACKS[0], "--owners", "@contoso/platform", cwd=root)
    (root / "Pulumi.review.yaml").unlink()  # other tests bring it up
    with running_sandbox(folder / "azure") as azure, contextlib.ExitStack() as ends:
        forge = Forge(folder / "forge", Path(azure.environ["AZURE_FEDERATED_TOKEN_FILE"]).read_text())
        try:
            place = state_place.made(engine, azure, folder / "place", "five", PLACED)
            # Who signs in is this sandbox's one client; the ids of the place are compared, not used.
            own = dict.fromkeys(IDENTITIES, azure.environ["AZURE_CLIENT_ID"])
            variables = {
                "AMLSTACK_STACKS": json.dumps({stack: {**place.stacks[stack], **own} for stack in PLACED}),
                "AZURE_TENANT_ID": azure.environ["AZURE_TENANT_ID"],
                "AZURE_SUBSCRIPTION_ID": "another subscription than that of these stacks",
            }
            (forge.folder / "bin" / "uv").write_text("#!/bin/sh\n")  # `make venv` finds the environment as it should be
            (forge.folder / "bin" / "uv").chmod(0o755)
            env = runners_env(engine, azure, forge)
            # The program runs in the environment of the repository, which keeps what is compiled there once.
            del env["PULUMI_PYTHON_CMD"], env["PYTHONDONTWRITEBYTECODE"]
            runner = Runner(forge, folder / "runs", env, variables, team.root / ".venv")
            ends.callback(end, runner)
            one = Company(root, added, forge, place)
            played(one, runner, {**azure.environ, "HOME": str(folder)})
            with store_of(azure.home) as store:
                one.groups = {row.id.split("/")[4] for row in store.resources.all() if "/workspaces/" in row.id}
            yield one
        finally:
            forge.close()


def played(one: Company, runner: Runner, person: dict[str, str]) -> None:
    root, forge, own = one.root, one.forge, one.place.stacks["bravo-dev"]
    words = ["pulumi", "stack", "init", "bravo-dev", "--secrets-provider", own["secrets_provider"], "--non-interactive"]
    env = {**runner.env, **person, "PULUMI_BACKEND_URL": own["backend"]}
    subprocess.run(words, cwd=root, env=env, check=True, capture_output=True)
    (root / ".gitignore").write_text(".venv\n/.amlstack/\n__pycache__/\n")
    forge.git("add", "--all", at=root)
    forge.git("commit", "--quiet", "--message", "Fifteen stacks", at=root)
    first = forge.git("rev-parse", "HEAD", at=root)
    forge.git("push", "--quiet", str(forge.origin), "HEAD:refs/heads/main", at=root)
    forge.end(forge.begin("amlstack-main.yml", first), "success")  # all that main had until now is deployed

    forge.git("checkout", "--quiet", "-b", "more", at=root)
    settings = root / "Pulumi.bravo-dev.yaml"
    settings.write_text(settings.read_text().replace("max: 2", "max: 3"))
    forge.git("commit", "--quiet", "--all", "--message", "More nodes for bravo", at=root)
    event = forge.pull("more", root)
    head = event["pull_request"]["head"]["sha"]
    one.runs["asked"] = runner.run("amlstack-pull-request.yml", "pull_request", event, head)
    merged = forge.merge(event["number"], root)
    one.runs["merged"] = runner.run("amlstack-main.yml", "push", {}, merged, approved=STACKS)


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


def test_outside_of_a_project_state_is_kept_below_the_users_own(team: Team, tmp_path: Path) -> None:
    job = {"name": "plain", "command": "true", "environment": {"image": IMAGE}, "compute": "azureml:gpu"}
    (team.root / "plain.yml").write_text(json.dumps(job))
    team.amlstack("rehearse", str(team.root / "plain.yml"), "-j", "1x1", cwd=tmp_path)
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


class TestFiveTeams:
    def test_the_ci_files_are_added(self, company: Company) -> None:
        assert "wrote .github/workflows/amlstack-main.yml" in company.added
        assert (company.root / "deploy/state/trust.py").is_file(), "what makes the place of the states comes along"

    def test_a_pull_request_plans_the_stack_that_it_touches_and_no_other(self, company: Company) -> None:
        legs = company.legs("asked")
        found = [legs[key] for key in ("check", "preview", "comment")]
        assert found == [{"bravo-dev": "success"}] * 3, company.printed("asked")
        assert company.runs["asked"]["done"].result == "success"
        (comment,) = company.forge.state()["comments"]
        assert comment["body"].startswith("<!-- amlstack: bravo-dev -->")

    def test_a_merge_applies_it_alone(self, company: Company) -> None:
        legs = company.legs("merged")
        assert (legs["plan"], legs["up"]) == ({"bravo-dev": "success"}, {"bravo-dev": "success"}), company.printed(
            "merged"
        )
        assert company.groups == {"rg-team-bravo-dev"}

    def test_the_state_of_each_stack_is_its_own(self, company: Company) -> None:
        holding = {
            stack for stack in PLACED if any(name.endswith(f"/{stack}.json") for name in company.place.blobs(stack))
        }
        assert holding == {"bravo-dev"}
        places = [one["backend"] for one in company.place.stacks.values()]
        keys = [one["secrets_provider"] for one in company.place.stacks.values()]
        assert (len(set(places)), len(set(keys))) == (2, 2)
        assert company.place.stacks["bravo-dev"]["backend"] == "azblob://state-bravo-dev?storage_account=fivestate"

    def test_no_identity_serves_two_stacks(self, company: Company) -> None:
        ids = [
            value for one in company.place.stacks.values() for name, value in one.items() if name.endswith("client_id")
        ]
        assert len(set(ids)) == len(ids) == 6
