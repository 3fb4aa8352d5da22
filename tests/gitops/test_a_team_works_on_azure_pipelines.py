"""The steps of deploy/azure-pipelines in clean checkouts, against a sandbox that stands for Azure and keeps the state.

Main deploys after an approval; a pull request is checked, its job rehearsed, a review stack trained, the real stack
previewed, and a new run edits the comment; drift made by hand becomes a work item.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.cli.sandbox_arm import connect
from tests.support.gitops.azure_pipelines import Agent
from tests.support.gitops.devops import DevOps, served
from tests.support.gitops.team import SIZE, Team, clone_verb, left, row, working
from tests.support.stack.small_jobs import store_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.gitops.github import JobRun
    from tests.support.loopback import Loopback
    from tests.support.running import Engine

pytestmark = [pytest.mark.engine, pytest.mark.training, pytest.mark.timeout(3600)]


@dataclass
class Played:
    team: Team
    devops: DevOps
    runs: dict[str, dict[str, JobRun]] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)

    def printed(self, step: str) -> str:
        return "\n".join(f"===== {key}: {one.result}\n{one.text()}" for key, one in self.runs[step].items())


@pytest.fixture(scope="module")
def played(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    folder = tmp_path_factory.mktemp("team")
    with served(folder / "devops") as (devops, service), working(engine, folder) as team:
        team.set(jobs=["training/ring.yml"])
        assert clone_verb(team, "gitops", "add", "azure-pipelines", "--stack", "prod").returncode == 0
        first = team.commit("Azure Pipelines, and one job")
        team.forge.git("push", "--quiet", str(team.forge.origin), "HEAD:refs/heads/main", at=team.folder)
        one = Played(team, devops)
        play(one, agent(team, service, folder), first)
        yield one


def agent(team: Team, service: Loopback, folder: Path) -> Agent:
    bundle = folder / "devops" / "bundle.pem"
    bundle.write_bytes(Path(team.runner.env["CURL_CA_BUNDLE"]).read_bytes() + service.ca.read_bytes())
    azure = team.azure.environ
    spn = {"servicePrincipalId": azure["AZURE_CLIENT_ID"], "tenantId": azure["AZURE_TENANT_ID"]}
    spn |= {"idToken": team.forge.assertion, "subscription": azure["AZURE_SUBSCRIPTION_ID"]}
    env = {**team.runner.env, "CURL_CA_BUNDLE": str(bundle)}
    groups = {"amlstack-prod": {"PULUMI_BACKEND_URL": team.place.backend}}
    found = Agent(
        team.forge,
        folder / "builds",
        env,
        dict.fromkeys(("amlstack-prod-preview", "amlstack-prod-plan", "amlstack-prod-deploy"), spn),
        groups,
        service.url + "/",
    )
    team.runner.made = found.made
    return found


def play(one: Played, agent: Agent, first: str) -> None:
    team = one.team
    where = {"System.CollectionUri": agent.service, "System.TeamProject": "research", "Build.Repository.ID": "r1"}
    one.runs["waiting"] = agent.run("prod/amlstack-main.yml", first, where, approved=False)
    one.runs["first"] = agent.go_on()

    team.branch("more")
    team.set(clusters=[{"name": "a100", "size": SIZE, "nodes": {"min": 0, "max": 8}}])
    team.commit("More nodes")
    (team.folder / "training" / "code" / "ring.py").write_text("print('a better ring')\n", "utf-8")
    head = team.commit("A better ring")
    team.forge.git("push", "--quiet", str(team.forge.origin), "HEAD:refs/heads/more", at=team.folder)
    merge = team.forge.merged(head)
    asked = {"Build.Reason": "PullRequest", "System.PullRequest.PullRequestId": "7"}
    asked |= {"Build.SourceBranch": "refs/pull/7/merge", "Build.SourceVersion": merge}
    asked |= {"System.PullRequest.TargetBranch": "refs/heads/main", "System.PullRequest.SourceCommitId": head}
    before = team.place.blobs()
    one.runs["asked"] = agent.run("prod/amlstack-pull-request.yml", merge, {**where, **asked})
    one.seen["unwritten"] = before == team.place.blobs()
    one.seen["left of the review stack"] = left(one.runs["asked"]["check"])
    one.seen["comment"] = json.loads(json.dumps(one.devops.threads))
    one.runs["again"] = agent.run("prod/amlstack-pull-request.yml", merge, {**where, **asked}, without=("check",))

    team.forge.git("checkout", "--quiet", "-b", "words", first, at=team.folder)
    (team.folder / "notes.md").write_text("what we tried\n", "utf-8")
    head = team.commit("Notes")
    team.forge.git("push", "--quiet", str(team.forge.origin), "HEAD:refs/heads/words", at=team.folder)
    merge = team.forge.merged(head)
    asked |= {"Build.SourceVersion": merge, "System.PullRequest.SourceCommitId": head}
    one.runs["words"] = agent.run("prod/amlstack-pull-request.yml", merge, {**where, **asked})

    with store_of(team.azure.home) as store:
        (cluster,) = store.clusters()
        body = {"location": cluster.body["location"], "properties": cluster.body["properties"]}
        body |= {"identity": cluster.body["identity"]} if "identity" in cluster.body else {}
    before = team.place.blobs()
    for step, nodes in (("drift", 3), ("mended", 6)):
        body["properties"]["properties"]["scaleSettings"]["maxNodeCount"] = nodes
        connect(team.azure.endpoint).put(cluster.id, body)
        one.runs[step] = agent.run("prod/amlstack-drift.yml", first, where)
        one.seen[step] = json.loads(json.dumps(one.devops.items))
    one.seen["unwritten by the night"] = before == team.place.blobs()


def test_main_waits_for_approval_and_applies_its_plan(played: Played) -> None:
    assert {key: one.result for key, one in played.runs["waiting"].items()} == {"plan": "success", "up": "waiting"}
    assert {key: one.result for key, one in played.runs["first"].items()} == {"plan": "success", "up": "success"}, (
        played.printed("first")
    )
    assert "- created: a100" in played.runs["first"]["plan"].summary


def test_a_pull_request_has_one_comment_that_a_new_run_edits(played: Played) -> None:
    for step, check in (("asked", "success"), ("again", "skipped")):
        results = {key: one.result for key, one in played.runs[step].items()}
        assert results == {"stacks": "success", "check": check, "preview": "success", "comment": "success"}, (
            played.printed(step)
        )
    (thread,) = played.seen["comment"]
    text = thread["comments"][0]["content"]
    assert text.startswith("<!-- amlstack: prod -->\n### Stack `prod`: ")
    assert (thread["status"], thread["edits"]) == ("closed", 0)
    assert "updated in place: `Compute a100`" in text
    (thread,) = played.devops.threads
    assert thread["edits"] == 1


def test_a_pull_request_that_does_not_touch_the_stack_runs_nothing_for_it(played: Played) -> None:
    results = {key: one.result for key, one in played.runs["words"].items()}
    assert results == {"stacks": "success", **dict.fromkeys(("check", "preview", "comment"), "skipped")}, (
        played.printed("words")
    )


def test_a_pull_request_rehearses_the_job_that_changed_and_trains_the_review_stack(played: Played) -> None:
    (thread,) = played.seen["comment"]
    text = thread["comments"][0]["content"]
    assert row(text, "check").startswith("| check | ✅ 1 job file"), text
    assert row(text, "rehearsal") == "| rehearsal of changed jobs | ✅ 1 completed |"
    assert row(text, "review") == "| review stack on the sandbox | ✅ up, `review` Completed |"
    check = played.runs["asked"]["check"]
    kept = played.team.forge.artifacts(check.run) / "results" / "reports"
    assert len(list(kept.glob("*.html"))) == 1
    assert check.step("Take the review stack down").code == 0
    assert played.seen["left of the review stack"] == {}


def test_pull_requests_and_the_night_read_the_state_and_write_none(played: Played) -> None:
    assert ".pulumi/stacks/amlstack/prod.json" in played.team.place.blobs()
    assert played.seen["unwritten"] is True
    assert played.seen["unwritten by the night"] is True


def test_drift_is_one_work_item_that_is_closed_when_it_is_gone(played: Played) -> None:
    (item,) = played.seen["drift"]
    assert "maxNodeCount" in item["fields"]["System.Description"], played.printed("drift")
    (item,) = played.seen["mended"]
    assert item["fields"]["System.State"] == "Done", played.printed("mended")
