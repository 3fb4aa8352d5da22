"""The steps of the weekly files: what Azure has of sizes, proposed as one pull request, on GitHub and Azure Repos."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base.paths import PROJECT
from tests.support.catalog.sku_server import Azure, served
from tests.support.gitops import devops
from tests.support.gitops.azure_pipelines import Agent
from tests.support.gitops.forge import Forge
from tests.support.gitops.github import JobRun, Runner
from tests.support.stack.fresh_clone import Clone

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NAME = "Standard_ND96asr_v4"
DATA = "amlstack/catalog/data"
FOLDERS = {"github": ".github/workflows", "azure-pipelines": ".azure-pipelines"}
CERTIFICATES = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE")


@dataclass(frozen=True)
class Weeks:
    """Two weeks in which Azure says that a size has one GPU more than the team's main does.

    Attributes:
        forge: The repository.
        runs: What ran, job by job, each week.
        branch, notes: Branch and text of each pull request that is open at the end.
    """

    forge: Forge
    runs: list[dict[str, JobRun]]
    branch: list[str]
    notes: list[str]

    def printed(self) -> str:
        return "\n".join(one.text() for run in self.runs for one in run.values())


@pytest.fixture(scope="module", params=sorted(FOLDERS))
def weeks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Weeks]:
    folder = tmp_path_factory.mktemp("weekly")
    play = {"github": on_github, "azure-pipelines": on_azure_pipelines}[request.param]
    with repository(folder, request.param) as forge, azure(folder) as env:
        yield play(folder, forge, env)


def on_github(folder: Path, forge: Forge, env: Mapping[str, str]) -> Weeks:
    ids = {"AZURE_PLAN_CLIENT_ID": "client", "AZURE_TENANT_ID": "tenant", "AZURE_SUBSCRIPTION_ID": "0"}
    runner = Runner(forge, folder / "runs", trusting(folder, env, forge.folder / "authority.pem", forge), ids)
    runs = [runner.run("amlstack-catalogue.yml", "schedule", {}, main(forge)) for _ in range(2)]
    pulls = forge.state()["pulls"]
    return Weeks(forge, runs, [one["head"]["ref"] for one in pulls], [one["body"] for one in pulls])


def on_azure_pipelines(folder: Path, forge: Forge, env: Mapping[str, str]) -> Weeks:
    with devops.served(folder / "devops") as (service, loopback):
        spn = {"servicePrincipalId": "client", "tenantId": "tenant", "idToken": forge.assertion, "subscription": "0"}
        where = {**trusting(folder, env, loopback.ca, forge), "AMLSTACK_CACHE": str(folder / "cache")}
        connections = {"amlstack-plan": spn}
        agent = Agent(forge, folder / "builds", where, connections, {}, loopback.url + "/")
        names = {"System.CollectionUri": agent.service, "System.TeamProject": "research", "Build.Repository.ID": "r1"}
        runs = [agent.run("amlstack-catalogue.yml", main(forge), names) for _ in range(2)]
    branches = [one["sourceRefName"].removeprefix("refs/heads/") for one in service.pulls]
    assert [one["targetRefName"] for one in service.pulls] == ["refs/heads/main"]
    return Weeks(forge, runs, branches, [one["description"] for one in service.pulls])


@contextlib.contextmanager
def repository(folder: Path, service: str) -> Iterator[Forge]:
    """A team's repository, whose main has the weekly file."""
    (folder / "clone").mkdir()
    clone = Clone.made(folder / "clone")
    forge = Forge(folder / "forge", "federated")
    try:
        (clone.folder / ".gitignore").write_text(".venv\n__pycache__/\n/.amlstack/\n", "utf-8")
        files = clone.folder / FOLDERS[service]
        files.mkdir(parents=True)
        text = (PROJECT / "deploy" / service / "amlstack-catalogue.yml").read_text("utf-8")
        (files / "amlstack-catalogue.yml").write_text(text, "utf-8")
        forge.git("init", "--quiet", "--initial-branch=main", at=clone.folder)
        forge.git("add", "--all", at=clone.folder)
        forge.git("commit", "--quiet", "--message", "Begin", at=clone.folder)
        forge.git("push", "--quiet", str(forge.origin), "HEAD:refs/heads/main", at=clone.folder)
        yield forge
    finally:
        forge.close()
        clone.close()


@contextlib.contextmanager
def azure(folder: Path) -> Iterator[dict[str, str]]:
    """An Azure that says one thing otherwise than the catalogue."""
    sizes = json.loads((PROJECT / DATA / "sizes.json").read_text("utf-8"))
    known = next(row for row in sizes if row["name"] == NAME)
    capabilities = {
        "vCPUs": known["vcpus"],
        "MemoryGB": known["memory_gib"],
        "GPUs": known["gpus"] + 1,
        "RdmaEnabled": "True",
    }
    sku = {
        "resourceType": "virtualMachines",
        "name": NAME,
        "family": known["family"],
        "locations": ["westeurope"],
        "capabilities": [{"name": name, "value": str(value)} for name, value in capabilities.items()],
        "restrictions": [],
    }
    (folder / "azure").mkdir()
    with served(Azure([sku], [{"name": NAME, "supportedComputeTypes": ["AmlCompute"]}]), folder / "azure") as env:
        yield env


def trusting(folder: Path, env: Mapping[str, str], authority: Path, forge: Forge) -> dict[str, str]:
    """The surroundings of a step: Azure's address, the authorities it trusts beside it, the installed packages."""
    bundle = folder / "bundle.pem"
    bundle.write_bytes(Path(env["REQUESTS_CA_BUNDLE"]).read_bytes() + authority.read_bytes())
    where = {name: env[name] for name in ("AMLSTACK_ARM_ENDPOINT", "AZURE_AUTHORITY_HOST", "NO_PROXY")}
    where |= dict.fromkeys(CERTIFICATES, str(bundle))
    path = [str(forge.folder / "bin"), str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"]
    return where | {"PATH": os.pathsep.join(path), "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1", "COLUMNS": "200"}


def main(forge: Forge) -> str:
    return forge.git("rev-parse", "refs/heads/main", at=forge.origin)


def test_what_azure_has_becomes_one_pull_request(weeks: Weeks) -> None:
    results = [{key: one.result for key, one in run.items()} for run in weeks.runs]
    assert {result for week in results for result in week.values()} == {"success"}, weeks.printed()
    assert weeks.branch == ["amlstack/catalogue"]
    (notes,) = weeks.notes
    assert notes.startswith("What Azure says of sizes and prices in westeurope."), notes


def test_only_data_of_the_catalogue_are_changed(weeks: Weeks) -> None:
    git, at = weeks.forge.git, weeks.forge.origin
    changed = git("diff", "--name-only", "main", "amlstack/catalogue", at=at).splitlines()
    assert changed
    assert [name for name in changed if not name.startswith(f"{DATA}/")] == []
    rows: list[dict[str, Any]] = json.loads(git("show", f"amlstack/catalogue:{DATA}/sizes.json", at=at))
    before: list[dict[str, Any]] = json.loads(git("show", f"main:{DATA}/sizes.json", at=at))
    gpus = [next(row["gpus"] for row in each if row["name"] == NAME) for each in (before, rows)]
    assert gpus[1] == gpus[0] + 1


def test_main_itself_is_left_as_it_is(weeks: Weeks) -> None:
    assert weeks.forge.git("rev-list", "--count", "main", at=weeks.forge.origin) == "1"
