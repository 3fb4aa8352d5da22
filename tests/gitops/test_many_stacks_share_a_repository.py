"""Five teams with three stacks each in a repository that `amlstack init` made: a change runs for the stacks it touches.

A pull request that touches one stack checks and previews it alone, and merging applies it alone. Each stack has a
state, a key and identities of its own, and the workflows of deploy/github serve all of them.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.cli.gitops import touched
from tests.support import yaml_files
from tests.support.deploy import state_place
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

TEAMS = ("alfa", "bravo", "charlie", "delta", "echo")
STACKS = tuple(sorted(f"{team}-{stage}" for team in TEAMS for stage in ("dev", "test", "prod")))
PLACED = STACKS[:4]
"""Those of one team and one of another have a place for their state: what is made for each stack is the same."""
JOB = {
    "name": "hello",
    "command": "true",
    "environment": "azureml:plain",
    "compute": "azureml:gpu",
    "resources": {"instance_count": 1},
}
IMAGE = "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04"


@dataclass
class Company:
    """A repository of five teams, and what its workflows did."""

    forge: Forge
    place: Place
    runs: dict[str, dict[str, JobRun]] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)

    def legs(self, step: str) -> dict[str, dict[str, str]]:
        return {key: {name: one.result for name, one in job.legs.items()} for key, job in self.runs[step].items()}

    def printed(self, step: str) -> str:
        return "\n".join(f"===== {key}: {one.result}\n{one.text()}" for key, one in self.runs[step].items())


def declare(root: Path, stack: str, nodes: int) -> None:
    """The settings of a stack, made from those that `init` wrote."""
    content: dict[str, Any] = yaml_files.load((root / "Pulumi.dev.yaml").read_text("utf-8"))["config"]
    content["amlstack:workspace"] = {"name": f"aml-{stack}", "public_network": True}
    content["amlstack:clusters"][0]["nodes"] = {"min": 0, "max": nodes}
    content["amlstack:environments"] = [{"name": "plain", "image": IMAGE}]
    content["amlstack:jobs"] = [f"teams/{stack.partition('-')[0]}/hello.yml"]
    (root / f"Pulumi.{stack}.yaml").write_text(yaml_files.dump({"config": content}), "utf-8")


def filled(root: Path) -> None:
    """The files that five teams put into the repository that `init` made."""
    for stack in STACKS:
        declare(root, stack, 2)
    for team in TEAMS:
        (root / "teams" / team / "code").mkdir(parents=True)
        (root / "teams" / team / "code" / "train.py").write_text("print(1)\n")
        (root / "teams" / team / "hello.yml").write_text(yaml_files.dump({**JOB, "code": "code"}))
    (root / "Pulumi.dev.yaml").unlink()
    shutil.rmtree(root / "workloads")


@pytest.fixture(scope="module")
def company(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    folder = tmp_path_factory.mktemp("company")
    team = Team(folder)
    filled(team.root)
    team.amlstack("gitops", "add", "github", "--stack", STACKS[0], "--owners", "@contoso/platform")
    added = team.amlstack("gitops", "add", "github", "--stack", STACKS[1])
    assert "wrote" not in added, "the files serve all stacks"
    (team.root / "Pulumi.review.yaml").unlink()  # other tests bring it up
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
            del env["PULUMI_PYTHON_CMD"]  # the program runs in the environment of the repository
            runner = Runner(forge, folder / "runs", env, variables, team.root / ".venv")
            ends.callback(end, runner)
            one = Company(forge, place)
            played(one, team.root, runner, {**azure.environ, "HOME": str(folder)})
            with store_of(azure.home) as store:
                one.groups = {row.id.split("/")[4] for row in store.resources.all() if "/workspaces/" in row.id}
            yield one
        finally:
            forge.close()


def played(one: Company, root: Path, runner: Runner, person: dict[str, str]) -> None:
    forge, own = one.forge, one.place.stacks["bravo-dev"]
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


@pytest.mark.engine
@pytest.mark.training
@pytest.mark.timeout(1800)
class TestFiveTeams:
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
        assert (len(set(places)), len(set(keys))) == (4, 4)
        assert company.place.stacks["bravo-dev"]["backend"] == "azblob://state-bravo-dev?storage_account=fivestate"

    def test_no_identity_serves_two_stacks(self, company: Company) -> None:
        ids = [
            value for one in company.place.stacks.values() for name, value in one.items() if name.endswith("client_id")
        ]
        assert len(set(ids)) == len(ids) == 12


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
    from amlstack.cli.main import main

    assert main(["gitops", "stacks", "--since", "0" * 40]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == list(STACKS)
    assert "all stacks are meant" in printed.err
