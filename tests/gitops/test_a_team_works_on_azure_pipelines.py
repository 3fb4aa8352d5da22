"""The steps of deploy/azure-pipelines in clean checkouts, against a sandbox that stands for Azure.

Main deploys after an approval; a pull request is previewed and commented, and a new push edits the comment; drift
made by hand becomes a work item. What the steps share with deploy/github is played there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.cli.sandbox_arm import connect
from tests.support.gitops import azure_pipelines
from tests.support.gitops.azure_pipelines import Agent
from tests.support.gitops.team import SIZE, Team, clone_verb, working
from tests.support.loopback import Loopback, reply
from tests.support.stack.small_jobs import store_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from http.server import BaseHTTPRequestHandler

    from tests.support.gitops.github import JobRun
    from tests.support.running import Engine

pytestmark = [pytest.mark.engine, pytest.mark.timeout(3600)]


@dataclass
class DevOps:
    """The service's REST, as far as our files ask: threads of a pull request, and work items."""

    threads: list[dict[str, Any]] = field(default_factory=list)
    items: list[dict[str, Any]] = field(default_factory=list)

    def take(self, request: BaseHTTPRequestHandler, content: bytes) -> None:
        path, _, query = request.path.partition("?")
        good = str(request.headers.get("Authorization")).startswith("Bearer build-") and query == "api-version=7.1"
        body = json.loads(content) if content else None
        answer = self._answer(request.command, path, body) if good else None
        reply(request, 200 if answer is not None else 401, answer or {})

    def _answer(self, method: str, path: str, body: Any) -> Any:
        if path.endswith("/_apis/wit/wiql"):
            alive = [one for one in self.items if one["fields"].get("System.State") != "Done"]
            return {"workItems": [{"id": one["id"]} for one in alive if one["fields"]["System.Title"] in body["query"]]}
        if "/_apis/wit/workitems/" in path:
            if path.endswith("/$Issue"):
                self.items.append({"id": len(self.items) + 1, "fields": {}})
            one = self.items[-1] if path.endswith("/$Issue") else self.items[int(path.rpartition("/")[2]) - 1]
            fields = [part for part in body if part["path"].startswith("/fields/")]
            one["fields"] |= {part["path"].removeprefix("/fields/"): part["value"] for part in fields}
            return one
        return azure_pipelines.threads(self.threads, method, path, body)


@dataclass
class Played:
    team: Team
    devops: DevOps
    runs: dict[str, dict[str, JobRun]] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)

    def said(self, step: str) -> str:
        return "\n".join(f"===== {key}: {one.result}\n{one.text()}" for key, one in self.runs[step].items())


@pytest.fixture(scope="module")
def played(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    folder, devops = tmp_path_factory.mktemp("team"), DevOps()
    (folder / "devops").mkdir()
    service = Loopback(folder / "devops", devops.take)
    try:
        with working(engine, folder) as team:
            (team.folder / "Pulumi.review.yaml").unlink()
            team.set(jobs=[])
            assert clone_verb(team, "gitops", "add", "azure-pipelines", "--stack", "prod").returncode == 0
            (team.folder / "Pulumi.review.yaml").unlink()
            first = team.commit("Azure Pipelines, and neither a job nor a review stack")
            team.forge.git("push", "--quiet", str(team.forge.origin), "HEAD:refs/heads/main", at=team.folder)
            one = Played(team, devops)
            play(one, agent(team, service, folder), first)
            yield one
    finally:
        service.close()


def agent(team: Team, service: Loopback, folder: Path) -> Agent:
    bundle = folder / "devops" / "bundle.pem"
    bundle.write_bytes(Path(team.runner.env["CURL_CA_BUNDLE"]).read_bytes() + service.ca.read_bytes())
    azure = team.azure.environ
    spn = {"servicePrincipalId": azure["AZURE_CLIENT_ID"], "tenantId": azure["AZURE_TENANT_ID"]}
    spn |= {"idToken": team.forge.assertion, "subscription": azure["AZURE_SUBSCRIPTION_ID"]}
    env = {**team.runner.env, "CURL_CA_BUNDLE": str(bundle)}
    groups = {"amlstack": {"PULUMI_BACKEND_URL": team.runner.variables["PULUMI_BACKEND_URL"]}}
    found = Agent(
        team.forge,
        folder / "builds",
        env,
        dict.fromkeys(("amlstack-preview", "amlstack-deploy"), spn),
        groups,
        service.url + "/",
    )
    team.runner.made = found.made
    return found


def play(one: Played, agent: Agent, first: str) -> None:
    team = one.team
    where = {"System.CollectionUri": agent.service, "System.TeamProject": "research", "Build.Repository.ID": "r1"}
    one.runs["waiting"] = agent.run("amlstack-main.yml", first, where, approved=False)
    one.runs["first"] = agent.run("amlstack-main.yml", first, where)

    team.branch("more")
    team.set(clusters=[{"name": "a100", "size": SIZE, "nodes": {"min": 0, "max": 8}}])
    head = team.commit("More nodes")
    team.forge.git("push", "--quiet", str(team.forge.origin), "HEAD:refs/heads/more", at=team.folder)
    asked = {"Build.Reason": "PullRequest", "System.PullRequest.PullRequestId": "7"}
    asked |= {"System.PullRequest.TargetBranch": "refs/heads/main", "System.PullRequest.SourceCommitId": head}
    one.runs["asked"] = agent.run("amlstack-pull-request.yml", head, {**where, **asked})
    one.seen["comment"] = json.loads(json.dumps(one.devops.threads))
    one.runs["again"] = agent.run("amlstack-pull-request.yml", head, {**where, **asked})

    with store_of(team.azure.home) as store:
        (cluster,) = store.clusters()
        body = {"location": cluster.body["location"], "properties": cluster.body["properties"]}
        body |= {"identity": cluster.body["identity"]} if "identity" in cluster.body else {}
    for step, nodes in (("drift", 3), ("mended", 6)):
        body["properties"]["properties"]["scaleSettings"]["maxNodeCount"] = nodes
        connect(team.azure.endpoint).put(cluster.id, body)
        one.runs[step] = agent.run("amlstack-drift.yml", first, where)
        one.seen[step] = json.loads(json.dumps(one.devops.items))


def test_main_waits_for_approval_and_applies_its_plan(played: Played) -> None:
    assert {key: one.result for key, one in played.runs["waiting"].items()} == {"plan": "success", "up": "waiting"}
    assert {key: one.result for key, one in played.runs["first"].items()} == {"plan": "success", "up": "success"}, (
        played.said("first")
    )
    assert "- created: a100" in played.runs["first"]["plan"].summary


def test_a_pull_request_has_one_comment_that_a_new_run_edits(played: Played) -> None:
    for step in ("asked", "again"):
        results = {key: one.result for key, one in played.runs[step].items()}
        assert results == {"check": "success", "preview": "success", "comment": "success"}, played.said(step)
    (thread,) = played.seen["comment"]
    text = thread["comments"][0]["content"]
    assert text.startswith("<!-- amlstack: prod -->\n### Stack `prod`: 1 updated in place")
    assert (thread["status"], thread["edits"]) == ("closed", 0)
    assert "updated in place: `Compute a100`" in text
    (thread,) = played.devops.threads
    assert thread["edits"] == 1


def test_drift_is_one_work_item_that_is_closed_when_it_is_gone(played: Played) -> None:
    (item,) = played.seen["drift"]
    assert "maxNodeCount" in item["fields"]["System.Description"], played.said("drift")
    (item,) = played.seen["mended"]
    assert item["fields"]["System.State"] == "Done", played.said("mended")
