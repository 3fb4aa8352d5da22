"""A made-up team: a clone of the project with own jobs and a stack `prod`, on a forge, with a sandbox as its Azure."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from amlstack.base.paths import PROJECT
from amlstack.sandbox.server import daemon
from tests.support.deploy import state_place
from tests.support.gitops.azure_pipelines import Agent
from tests.support.gitops.forge import Forge
from tests.support.gitops.github import JobRun, Runner
from tests.support.harness import answering_python
from tests.support.running import ended_with_us, running_sandbox
from tests.support.stack.fresh_clone import Clone
from tests.support.stack.small_jobs import store_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.deploy.state_place import Place
    from tests.support.loopback import Loopback
    from tests.support.running import Engine, Sandbox

IMAGE = "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04"
SIZE = "Standard_ND96asr_v4"
CLIENTS = ("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_SUBSCRIPTION_ID", "AZURE_FEDERATED_TOKEN_FILE")
"""Variables that the workflow sets itself, out of those that a client of a sandbox needs."""
IDENTITIES = ("preview_client_id", "plan_client_id", "deploy_client_id")
NOT_OF_A_RUNNER = (*CLIENTS, "AMLSTACK_HOME", "AZURE_TOKEN_CREDENTIALS", "AZURE_CLIENT_SECRET", "AZURE_USERNAME")
SECRET = "canary-of-the-teams-settings"
SETTINGS: dict[str, Any] = {
    "amlstack:location": "westeurope",
    "amlstack:workspace": {"name": "team-ml", "public_network": True},
    "amlstack:clusters": [{"name": "a100", "size": SIZE, "nodes": {"min": 0, "max": 6}}],
    "amlstack:environments": [{"name": "plain", "image": IMAGE}],
    "amlstack:jobs": ["training/hold.yml", {"file": "training/ring.yml", "wait": "completed"}],
}
HOLD = '[ "$WORLD_SIZE" = 2 ] || exec sleep infinity'
"""Runs until it is ended, and in a rehearsal of two nodes ends at once."""
RING = "import os\nprint('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])\n"


@dataclass
class Team:
    """The team's clone and all around it."""

    clone: Clone
    forge: Forge
    azure: Sandbox
    runner: Runner
    place: Place
    runs: dict[str, dict[str, JobRun]] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.clone.folder

    def branch(self, name: str) -> None:
        """A branch of main as the forge has it."""
        self.forge.git("fetch", "--quiet", str(self.forge.origin), "main", at=self.folder)
        self.forge.git("checkout", "--quiet", "-B", name, "FETCH_HEAD", at=self.folder)

    def commit(self, message: str) -> str:
        self.forge.git("add", "--all", at=self.folder)
        self.forge.git("commit", "--quiet", "--message", message, at=self.folder)
        return self.forge.git("rev-parse", "HEAD", at=self.folder)

    def settings(self) -> dict[str, Any]:
        """The settings of the stack `prod`."""
        found: dict[str, Any] = yaml.safe_load((self.folder / "Pulumi.prod.yaml").read_text("utf-8"))["config"]
        return found

    def set(self, **settings: Any) -> None:
        """Changes settings of the stack `prod`."""
        file = self.folder / "Pulumi.prod.yaml"
        content = yaml.safe_load(file.read_text("utf-8"))
        content["config"] |= {f"amlstack:{key}": value for key, value in settings.items()}
        file.write_text(yaml.safe_dump(content, sort_keys=False), "utf-8")

    def job(self, name: str, nodes: int, command: str, **more: Any) -> None:
        folder = self.folder / "training"
        folder.mkdir(exist_ok=True)
        fields = {
            "name": name,
            "command": command,
            "environment": "azureml:plain",
            "compute": "azureml:a100",
            "resources": {"instance_count": nodes},
            **more,
        }
        (folder / f"{name}.yml").write_text(yaml.safe_dump(fields, sort_keys=False), "utf-8")

    def asked(self, step: str, branch: str, *, again: str = "", without: tuple[str, ...] = ()) -> dict[str, JobRun]:
        """A pull request of the branch, checked; or a new push to that of an earlier step, without some of the jobs."""
        event = self.forge.pull(branch, self.folder, self.seen[again] if again else None)
        self.seen[step] = event["number"]
        head = event["pull_request"]["head"]["sha"]
        self.runs[step] = self.runner.run("amlstack-pull-request.yml", "pull_request", event, head, without=without)
        return self.runs[step]

    def pushed(self, step: str, commit: str, *, approved: tuple[str, ...] = ("prod",)) -> dict[str, JobRun]:
        """Run the workflow that a push of main starts, with the environments that somebody approves."""
        self.runs[step] = self.runner.run("amlstack-main.yml", "push", {}, commit, approved=approved)
        return self.runs[step]

    def approved(self, step: str) -> None:
        """Somebody approves what the last run waits for."""
        self.runs[step] = self.runner.go_on(("prod",))

    def nightly(self, step: str) -> str:
        """Run the nightly workflow of drift on main, and keep the issues that there are then; main's commit."""
        main = self.forge.git("rev-parse", "refs/heads/main", at=self.forge.origin)
        self.runs[step] = self.runner.run("amlstack-drift.yml", "schedule", {}, main)
        self.seen.setdefault("issues", {})[step] = self.forge.state()["issues"]
        return main

    def workflow(self, name: str) -> dict[str, Any]:
        """A workflow file as it was added."""
        found: dict[str, Any] = yaml.safe_load((self.folder / ".github" / "workflows" / name).read_text("utf-8"))
        return found

    def comments(self, step: str) -> list[dict[str, Any]]:
        """The comments on the pull request of a step."""
        return [one for one in self.forge.state()["comments"] if one["issue"] == self.seen[step]]


@contextlib.contextmanager
def working(engine: Engine, folder: Path) -> Iterator[Team]:
    """A team whose main branch holds the files of both services; its stack is made, and nothing is deployed."""
    home = folder / "azure"
    (folder / "clone").mkdir(parents=True)
    with contextlib.ExitStack() as ends:
        clone = Clone.made(folder / "clone")
        ends.callback(clone.close)
        azure = ends.enter_context(running_sandbox(home))
        forge = Forge(folder / "forge", Path(azure.environ["AZURE_FEDERATED_TOKEN_FILE"]).read_text())
        ends.callback(forge.close)
        place = state_place.made(engine, azure, folder / "place", "team")
        own = dict.fromkeys(IDENTITIES, azure.environ["AZURE_CLIENT_ID"])
        variables = {
            "AMLSTACK_STACKS": json.dumps({"prod": {"backend": place.backend, **own}}),
            "AZURE_TENANT_ID": azure.environ["AZURE_TENANT_ID"],
            "AZURE_SUBSCRIPTION_ID": azure.environ["AZURE_SUBSCRIPTION_ID"],
        }
        runner = Runner(forge, folder / "runs", runners_env(engine, azure, forge), variables)
        team = Team(clone, forge, azure, runner, place)
        ends.callback(end, runner)
        _begin(team)
        yield team


def runners_env(engine: Engine, azure: Sandbox, forge: Forge) -> dict[str, str]:
    """A hosted runner of a world in which this sandbox is Azure; what signs in is the workflow's own business."""
    where = {
        name: value
        for name, value in azure.environ.items()
        if (value and name not in NOT_OF_A_RUNNER and not name.startswith("ARM_")) or name == "ARM_CLOUD_METADATA_URL"
    }
    kept = {name: value for name, value in os.environ.items() if name in {"AMLSTACK_CACHE", "LANG", "LC_ALL"}}
    cache = kept.get("AMLSTACK_CACHE") or str(Path.home() / ".cache" / "amlstack")
    # The stand-in keeps its notes in the sandbox's home, which a runner does not know.
    stand_in = forge.folder / "bin" / "pulumi-resource-azure-native"
    real = PROJECT / "amlstack" / "sandbox" / "bin" / stand_in.name
    stand_in.write_text(
        f'#!/bin/sh\nAMLSTACK_HOME={shlex.quote(str(azure.home))} exec {shlex.quote(str(real))} "$@"\n', "utf-8"
    )
    stand_in.chmod(0o755)
    path = [
        forge.folder / "bin",
        *engine.folders,
        "/usr/local/bin",
        "/usr/bin",
        "/bin",
        Path(sys.executable).parent,
    ]
    bundle = forge.folder / "bundle.pem"
    bundle.write_bytes(Path(where["SSL_CERT_FILE"]).read_bytes() + (forge.folder / "authority.pem").read_bytes())
    return {
        **kept,
        **where,
        **azure.endpoint.azure_names(),
        **dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"), str(bundle)),
        "AMLSTACK_CACHE": cache,
        "PATH": os.pathsep.join(map(str, path)),
        "PULUMI_SKIP_UPDATE_CHECK": "1",
        "NO_COLOR": "1",
        "COLUMNS": "200",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PULUMI_PYTHON_CMD": str(answering_python(forge.folder)),
    }


def _begin(team: Team) -> None:
    folder = team.folder
    (folder / ".gitignore").write_text(".venv\n/.amlstack/\n__pycache__/\n", "utf-8")
    (folder / "Pulumi.prod.yaml").write_text(yaml.safe_dump({"config": SETTINGS}, sort_keys=False), "utf-8")
    team.job("hold", 4, HOLD, distribution={"type": "pytorch", "process_count_per_instance": 1})
    team.job(
        "ring", 2, "python ring.py", code="code", distribution={"type": "pytorch", "process_count_per_instance": 8}
    )
    (folder / "training" / "code").mkdir()
    (folder / "training" / "code" / "ring.py").write_text(RING, "utf-8")
    person = {**team.azure.environ, "PULUMI_BACKEND_URL": team.place.backend, "HOME": str(folder.parent)}
    init = ["stack", "init", "prod", "--secrets-provider", team.place.secrets]
    secret = ["config", "set", "--stack", "prod", "--secret", "--path", "amlstack:secrets.token", SECRET]
    for words in (init, secret):
        command = ["pulumi", *words, "--non-interactive"]
        subprocess.run(command, cwd=folder, env={**team.runner.env, **person}, check=True, capture_output=True)
    team.forge.git("init", "--quiet", "--initial-branch=main", at=folder)
    for service in ("github", "azure-pipelines"):
        words = [sys.executable, "-m", "amlstack.cli.main", "gitops", "add", service, "--stack", "prod"]
        env = {**team.runner.env, "HOME": str(folder.parent), "PYTHONPATH": str(folder)}
        subprocess.run(words, cwd=folder, env=env, check=True, capture_output=True)
    team.seen["first"] = team.commit("Begin")
    team.forge.git("push", "--quiet", str(team.forge.origin), "HEAD:refs/heads/main", at=folder)


def agent_of(team: Team, service: Loopback) -> Agent:
    """An agent of Azure Pipelines for the team's repository, in the same world; ``service`` is Azure DevOps."""
    bundle = team.forge.folder / "devops.pem"
    bundle.write_bytes(Path(team.runner.env["CURL_CA_BUNDLE"]).read_bytes() + service.ca.read_bytes())
    azure = team.azure.environ
    spn = {"servicePrincipalId": azure["AZURE_CLIENT_ID"], "tenantId": azure["AZURE_TENANT_ID"]}
    spn |= {"idToken": team.forge.assertion, "subscription": azure["AZURE_SUBSCRIPTION_ID"]}
    return Agent(
        team.forge,
        team.runner.folder / "builds",
        {**team.runner.env, "CURL_CA_BUNDLE": str(bundle)},
        dict.fromkeys(("amlstack-prod-preview", "amlstack-prod-plan", "amlstack-prod-deploy"), spn),
        {"amlstack-prod": {"PULUMI_BACKEND_URL": team.place.backend}},
        service.url + "/",
        team.runner.made,
    )


def left(job: JobRun) -> dict[str, str]:
    """Id → type of what a runner's own sandbox holds of the review stack."""
    assert job.folder
    with store_of(job.folder / ".amlstack") as store:
        return {row.id: row.type for row in store.resources.all() if "rg-amlstack-review" in row.id}


def row(comment: str, what: str) -> str:
    """The row of a comment's table."""
    (found,) = [line for line in comment.splitlines() if line.startswith(f"| {what}")]
    return found


def end(runner: Runner) -> None:
    """A hosted runner is thrown away: what runs there ends with it."""
    for folder in runner.made:
        home = folder / ".amlstack"
        if home.is_dir():
            with ended_with_us(home):
                daemon.down(home)
