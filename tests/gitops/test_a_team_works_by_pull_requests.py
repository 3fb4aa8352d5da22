"""The steps of deploy/github and deploy/azure-pipelines in clean checkouts of one team's repository.

A sandbox stands for Azure. The state is in ``azblob://``, its secrets in ``azurekeyvault://``, at a place that
deploy/state has made there. One story on both services: main deploys, and a plan that this overtakes is not applied; a
good pull request is checked, rehearsed, trained as a review stack, previewed, commented and merged, and exactly its
plan is applied; one with a violation and one that edits a running job are stopped; a change by hand is drift.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from amlstack.cli.sandbox_arm import connect
from tests.support.gitops import devops
from tests.support.gitops.team import SECRET, SIZE, Team, agent_of, left, row, working
from tests.support.stack.small_jobs import runs_of, store_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.gitops.azure_pipelines import Agent
    from tests.support.gitops.devops import DevOps
    from tests.support.running import Engine

LAX = {"sriov-fabric": "disabled", "size-retired": "disabled"}
THIEF = """
import os
from pathlib import Path
from jobs import Job

Path("{file}").write_text(os.environ.get("PULUMI_CONFIG", "") + repr(dict(os.environ)))
job = Job(name="thief", command="true", environment="plain", compute="a100")
"""
pytestmark = [pytest.mark.engine, pytest.mark.training, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def team(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    folder = tmp_path_factory.mktemp("team")
    with devops.served(folder / "devops") as (azure_devops, service), working(engine, folder) as one:
        one.seen |= {"nodes": {}, "held": {}, "ring": {}, "hold": {}}
        agent = agent_of(one, service)
        deployed(one, agent)
        asked_on_azure_pipelines(one, agent, azure_devops)
        asked_on_github(one)
        commit = one.forge.merge(one.seen["good"], one.folder)
        one.pushed("merged", commit)
        look(one, "merged")
        drifted(one, agent, azure_devops)
        yield one


def deployed(team: Team, agent: Agent) -> None:
    """Main is planned on GitHub; before somebody approves this plan, Azure Pipelines brings main up."""
    first = team.seen["first"]
    team.pushed("overtaken", first, approved=())
    team.seen["without approval"] = result(team, "overtaken")["up"]
    team.runs["waiting"] = agent.run("prod/amlstack-main.yml", first, agent.of_project, approved=False)
    team.seen["waiting"] = result(team, "waiting")
    team.runs["first"] = agent.go_on()
    look(team, "first")
    team.approved("overtaken")
    look(team, "overtaken")


def asked_on_azure_pipelines(team: Team, agent: Agent, service: DevOps) -> None:
    """A pull request with a job and a review stack that are edited, then a running job too; and one of words alone."""
    team.branch("better")
    (team.folder / "training" / "code" / "ring.py").write_text("print('a better ring')\n", "utf-8")
    (team.folder / "review" / "train.py").write_text("print('a lighter review stack')\n", "utf-8")
    head = team.commit("A better ring, and a lighter review stack")
    before = team.place.blobs()
    run = team.runs["better"] = agent.asked("better", head, team.folder)
    team.seen["unwritten by Azure Pipelines"] = before == team.place.blobs()
    team.seen["left of Azure Pipelines"] = left(run["check"])
    team.seen["threads"] = json.loads(json.dumps(service.threads))

    hold = team.folder / "training" / "hold.yml"
    hold.write_text(hold.read_text("utf-8").replace("infinity", "1000000"), "utf-8")
    head = team.commit("Hold for a million seconds")
    team.runs["running"] = agent.asked("better", head, team.folder, without=("check",))
    team.seen["threads then"] = service.threads

    team.branch("words")
    (team.folder / "notes.md").write_text("what we tried\n", "utf-8")
    team.runs["words"] = agent.asked("words", team.commit("Notes"), team.folder)


def asked_on_github(team: Team) -> None:
    """A good pull request; and one with a violation, which tries to open its own gate, and then to see secrets."""
    team.branch("more-nodes")
    team.set(clusters=[{"name": "a100", "size": SIZE, "nodes": {"min": 1, "max": 8}}])
    (team.folder / "training" / "code" / "ring.py").write_text("print('a better ring')\n", "utf-8")
    team.commit("More nodes, and a better ring")
    before = team.place.blobs()
    good = team.asked("good", "more-nodes")
    team.seen["unwritten by GitHub"] = before == team.place.blobs()
    team.seen |= {"good run": good["check"].run, "left of GitHub": left(good["check"])}

    team.branch("open-gate")
    (team.folder / "Pulumi.review.yaml").unlink()
    (team.folder / "policies-team.json").write_text(json.dumps(LAX), "utf-8")
    (team.folder / "Makefile").write_text("venv:\n\tfalse\n", "utf-8")
    rules = team.folder / "policies" / "__main__.py"
    rules.write_text(f"import sys; sys.exit()\n{rules.read_text('utf-8')}", "utf-8")
    team.set(
        clusters=[{"name": "a100", "size": "Standard_NC24s_v3", "nodes": {"min": 0, "max": 40}}],
        policies="policies-team.json",
    )
    team.commit("Cheaper nodes, and no review stack")
    team.asked("violation", "open-gate")
    team.seen["comment on the violation"] = team.comments("violation")
    (team.folder / "training" / "thief.py").write_text(THIEF.format(file=str(team.folder.parent / "stolen")), "utf-8")
    team.set(clusters=[{"name": "a100", "size": SIZE, "nodes": {"min": 0, "max": 7}}])
    team.set(jobs=[*team.settings()["amlstack:jobs"], "training/thief.py"])
    team.commit("More nodes of the same size, and a job in Python")
    team.asked("thief", "open-gate", again="violation", without=("check",))


def drifted(team: Team, agent: Agent, service: DevOps) -> None:
    """Somebody changes the cluster past the repository, and back; the nights between look."""
    by_hand(team, 5)
    before = team.place.blobs()
    main = team.nightly("drift")
    team.runs["drift on Azure Pipelines"] = agent.run("prod/amlstack-drift.yml", main, agent.of_project)
    team.seen["unwritten by the night"] = before == team.place.blobs()
    team.seen["items"] = service.items
    by_hand(team, 8)
    team.nightly("mended by hand")


def by_hand(team: Team, nodes: int) -> None:
    with store_of(team.azure.home) as store:
        (found,) = store.clusters()
    body = {key: found.body[key] for key in ("location", "properties", "identity") if key in found.body}
    body["properties"]["properties"]["scaleSettings"]["maxNodeCount"] = nodes
    connect(team.azure.endpoint).put(found.id, body)


def look(team: Team, step: str) -> None:
    """The resources on Azure after a step."""
    with store_of(team.azure.home) as store:
        (cluster,) = store.clusters()
        team.seen["nodes"][step] = cluster.body["properties"]["properties"]["scaleSettings"]["maxNodeCount"]
        team.seen["held"][step] = {row.id: row.body for row in store.resources.all()}
    for job in ("ring", "hold"):
        team.seen[job][step] = len(runs_of(team.azure.home, job))


def result(team: Team, step: str) -> dict[str, str]:
    """The jobs' results, without those that choose stacks and sum up."""
    apart = ("stacks", "changes", "done")
    return {key: one.result for key, one in team.runs[step].items() if key not in apart}


def printed(team: Team, step: str) -> str:
    return "\n".join(f"===== {key}: {one.result}\n{one.text()}" for key, one in team.runs[step].items())


def kept(team: Team, step: str, path: str) -> dict[str, Any]:
    """A file of the artifacts of a step."""
    run = next(one.run for one in team.runs[step].values() if one.run)
    found: dict[str, Any] = json.loads((team.forge.artifacts(run) / path).read_text("utf-8"))
    return found


def test_main_waits_for_approval_and_then_deploys(team: Team) -> None:
    assert team.seen["without approval"] == "waiting"
    assert team.seen["waiting"] == {"plan": "success", "up": "waiting"}
    assert result(team, "first") == {"plan": "success", "up": "success"}, printed(team, "first")
    assert "No pull request's plan was found for this commit." in team.runs["overtaken"]["plan"].summary
    for step in ("overtaken", "first"):
        assert "- created: a100" in team.runs[step]["plan"].summary


def test_another_plan_than_the_approved_one_is_not_applied(team: Team) -> None:
    up = team.runs["overtaken"]["up"]
    assert up.result == "failure"
    assert "nothing was changed: this is not the plan of" in up.text()
    assert "Compute a100" in up.text()
    assert team.seen["held"]["overtaken"] == team.seen["held"]["first"]


def test_a_good_pull_request_passes_every_check(team: Team) -> None:
    passed = {"check": "success", "preview": "success", "comment": "success"}
    assert result(team, "good") == passed, printed(team, "good")
    (comment,) = team.comments("good")
    text = comment["body"]
    assert row(text, "check").startswith("| check | ✅ 2 job files"), text
    assert row(text, "rehearsal") == "| rehearsal of changed jobs | ✅ 2 completed |"
    assert row(text, "review") == "| review stack on the sandbox | ✅ up, `review` Completed |"
    assert "no violation" in row(text, "policies")
    assert "| 0.00 USD → " in row(text, "nodes per hour, while idle")
    assert "updated in place: `Compute a100`" in text
    assert "2 × 8 ranks as 2 × 2" in text
    assert comment["edits"] == 0


def test_azure_pipelines_rehearses_the_job_that_changed_and_brings_up_the_review_stack(team: Team) -> None:
    passed = {"check": "success", "preview": "success", "comment": "success"}
    assert result(team, "better") == passed, printed(team, "better")
    (thread,) = team.seen["threads"]
    text = thread["comments"][0]["content"]
    assert text.startswith("<!-- amlstack: prod -->\n### Stack `prod`: ")
    assert (thread["status"], thread["edits"]) == ("closed", 0)
    assert row(text, "check").startswith("| check | ✅ 1 job file"), text
    assert row(text, "rehearsal") == "| rehearsal of changed jobs | ✅ 1 completed |"
    assert row(text, "review") == "| review stack on the sandbox | ✅ up, `review` Completed |"
    assert "`Job ring`" in text, text


def test_reports_of_rehearsals_are_in_the_artifact_that_the_comment_leads_to(team: Team) -> None:
    folder = team.forge.folder / "artifacts" / team.seen["good run"] / "results-prod"
    assert len(list((folder / "reports").glob("*.html"))) == 2
    (comment,) = team.comments("good")
    assert f"actions/runs/{team.seen['good run']})" in comment["body"]
    folder = team.forge.artifacts(team.runs["better"]["check"].run) / "results"
    assert len(list((folder / "reports").glob("*.html"))) == 1


def test_findings_are_annotations_beside_their_lines(team: Team) -> None:
    text = team.runs["good"]["check"].step("Check the jobs").text
    assert "::warning file=training/ring.yml,line=" in text


@pytest.mark.parametrize(("step", "service"), [("good", "GitHub"), ("better", "Azure Pipelines")])
def test_a_review_stack_is_taken_down_and_leaves_nothing(team: Team, step: str, service: str) -> None:
    down = team.runs[step]["check"].step("Take the review stack down")
    assert down.code == 0, down.text
    assert team.seen[f"left of {service}"] == {}


def test_a_violation_stops_a_pull_request_before_anything_is_planned(team: Team) -> None:
    assert result(team, "violation") == {"check": "failure", "preview": "failure", "comment": "success"}
    (comment,) = team.seen["comment on the violation"]
    assert "the preview was refused" in comment["body"]
    assert "`sriov-fabric`" in comment["body"]
    assert row(comment["body"], "review") == "| review stack on the sandbox | – not run |"
    assert "::error file=" in team.runs["violation"]["check"].step("Check the jobs").text


def test_a_branch_cannot_open_its_own_gate(team: Team) -> None:
    """It turns rules off, and changes Makefile and pack: main's judge it, and the comment names what it tried."""
    preview = kept(team, "violation", "preview-prod/preview.json")
    assert {one["code"] for one in preview["findings"] if one["level"] == "error"} >= {"sriov-fabric", "size-retired"}
    guards = team.runs["violation"]["preview"].step("Take what").text
    for words in ("sriov-fabric: disabled", "size-retired: disabled", '"policies-team.json"', '"Makefile"'):
        assert words in guards, guards


def test_a_job_file_of_a_pull_request_sees_no_secret_and_its_reviewers_see_the_gate(team: Team) -> None:
    (comment,) = team.comments("violation")
    body = comment["body"]
    assert "sriov-fabric: disabled (here mandatory)" in body, body
    assert "- `policies-team.json`" in body, body
    assert "- `policies/__main__.py`" in body, body
    assert "- `training/thief.py`" in body, body
    stolen = team.folder.parent / "stolen"
    text = (stolen.read_text("utf-8") if stolen.exists() else "") + printed(team, "thief")
    assert SECRET not in text
    assert "every secret has a made-up value" in team.runs["thief"]["preview"].step("Preview").text
    assert "secure:" in (team.folder / "Pulumi.prod.yaml").read_text("utf-8"), "there was a secret to steal"


def test_a_new_push_edits_the_comment_in_place(team: Team) -> None:
    assert result(team, "thief")["comment"] == "success", printed(team, "thief")
    (before,) = team.seen["comment on the violation"]
    (comment,) = team.comments("violation")
    assert comment["edits"] == 1
    found = [
        ["`sriov-fabric`" in body, "tried to see the variable" in body] for body in (before["body"], comment["body"])
    ]
    assert found == [[True, False], [False, True]], comment["body"]


def test_an_edit_of_a_running_job_is_refused_in_the_preview_and_the_comment_edited(team: Team) -> None:
    refused = {"check": "skipped", "preview": "failure", "comment": "success"}
    assert result(team, "running") == refused, printed(team, "running")
    (thread,) = team.seen["threads then"]
    assert thread["edits"] == 1
    assert "on\\_edit: cancel" in thread["comments"][0]["content"]  # as Markdown shows it


def test_a_pull_request_that_does_not_touch_the_stack_runs_nothing_for_it(team: Team) -> None:
    assert team.runs["words"]["stacks"].result == "success", printed(team, "words")
    assert result(team, "words") == dict.fromkeys(("check", "preview", "comment"), "skipped"), printed(team, "words")


def test_a_merge_applies_the_plan_of_the_pull_request(team: Team) -> None:
    assert result(team, "merged") == {"plan": "success", "up": "success"}, printed(team, "merged")
    assert "The plan is the same" in team.runs["merged"]["plan"].summary
    assert (team.seen["nodes"]["first"], team.seen["nodes"]["merged"]) == (6, 8)
    assert (team.seen["ring"]["first"], team.seen["ring"]["merged"]) == (1, 2), "the edited job ran once more, and once"
    assert set(team.seen["hold"].values()) == {1}, "the job that runs was left alone"


def test_drift_is_one_issue_or_work_item_and_closed_when_it_is_gone(team: Team) -> None:
    """More nights are in test_drift_is_one_thing_to_do."""
    steps = ["drift", "mended by hand"]
    assert [result(team, step) for step in steps] == [{"drift": "success"}] * 2, "\n".join(
        printed(team, s) for s in steps
    )
    (issue,) = team.seen["issues"]["drift"]
    assert issue["state"] == "open"
    assert "maxNodeCount" in issue["body"], issue["body"]
    (closed,) = team.seen["issues"]["mended by hand"]
    assert (closed["state"], closed["comments"]) == ("closed", ["The drift is gone."])
    (item,) = team.seen["items"]
    assert "maxNodeCount" in item["fields"]["System.Description"], printed(team, "drift on Azure Pipelines")


def test_the_state_is_in_azure_and_only_deployments_write_it(team: Team) -> None:
    blobs = team.place.blobs()
    assert ".pulumi/stacks/amlstack/prod.json" in blobs
    assert [name for name in blobs if "/locks/" in name] == []
    for reader in ("GitHub", "Azure Pipelines", "the night"):
        assert team.seen[f"unwritten by {reader}"] is True


def test_the_settings_name_the_key_and_no_runner_has_a_passphrase(team: Team) -> None:
    settings = yaml.safe_load((team.folder / "Pulumi.prod.yaml").read_text("utf-8"))
    assert settings["secretsprovider"] == team.place.secrets
    assert settings["encryptedkey"]
    assert [name for name in team.runner.env if "PASSPHRASE" in name] == []


def test_no_step_has_a_right_that_its_job_does_not_name(team: Team) -> None:
    """The stand-ins refuse what a job's permissions do not give; here, that the jobs name no more than they use."""
    rights = {
        (name, key): job.get("permissions")
        for name in ("pull-request", "main", "drift", "catalogue")
        for key, job in team.workflow(f"amlstack-{name}.yml")["jobs"].items()
    }
    read = {"contents": "read"}
    assert rights == {
        ("pull-request", "stacks"): read,
        ("pull-request", "check"): read,
        ("pull-request", "preview"): {**read, "id-token": "write"},
        ("pull-request", "comment"): {**read, "pull-requests": "write"},
        ("pull-request", "done"): read,
        ("main", "stacks"): {**read, "actions": "read"},
        ("main", "changes"): read,
        ("drift", "stacks"): read,
        ("main", "plan"): {**read, "id-token": "write", "actions": "read", "pull-requests": "read"},
        ("main", "up"): {**read, "id-token": "write"},
        ("drift", "drift"): {**read, "id-token": "write", "issues": "write"},
        ("catalogue", "refresh"): {**read, "id-token": "write"},
        ("catalogue", "propose"): {"contents": "write", "pull-requests": "write"},
    }
