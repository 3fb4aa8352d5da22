"""The steps of deploy/github in clean checkouts of a team's repository, against a sandbox that stands for Azure.

The state is in ``azblob://``, its secrets in ``azurekeyvault://``, at a place that deploy/state has made there.
One story: main deploys; a good pull request is checked, rehearsed, trained as a review stack, previewed, commented and
merged, and exactly its plan is applied; one with a violation and one that edits a running job are stopped.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from amlstack.cli.sandbox_arm import connect
from tests.support.gitops.team import IMAGE, SECRET, SIZE, Team, left, row, working
from tests.support.stack.small_jobs import runs_of, store_of

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    with working(engine, tmp_path_factory.mktemp("team")) as one:
        played(one)
        yield one


def played(team: Team) -> None:
    team.seen |= {"nodes": {}, "held": {}, "ring": {}, "hold": {}}
    team.pushed("first", team.seen["first"])
    look(team, "first")

    team.branch("more-nodes")
    team.set(clusters=[{"name": "a100", "size": SIZE, "nodes": {"min": 1, "max": 8}}])
    (team.folder / "training" / "code" / "ring.py").write_text("print('a better ring')\n", "utf-8")
    team.commit("More nodes, and a better ring")
    before = team.place.blobs()
    good = team.asked("good", "more-nodes")
    team.seen["unwritten by a pull request"] = before == team.place.blobs()
    team.seen |= {"good run": good["check"].run, "left of the review stack": left(good["check"])}

    team.branch("no-fabric")
    (team.folder / "Pulumi.review.yaml").unlink()
    team.set(clusters=[{"name": "a100", "size": "Standard_NC24s_v3", "nodes": {"min": 0, "max": 4}}])
    team.commit("Cheaper nodes, and no review stack")
    team.asked("violation", "no-fabric")
    team.seen["comment on the violation"] = team.comments("violation")
    team.set(clusters=[{"name": "a100", "size": SIZE, "nodes": {"min": 0, "max": 7}}])
    team.commit("More nodes of the same size")
    team.asked("mended", "no-fabric", again="violation", without=("check",))

    team.branch("open-gate")
    (team.folder / "Pulumi.review.yaml").unlink()
    (team.folder / "policies-team.json").write_text(json.dumps(LAX), "utf-8")
    (team.folder / "Makefile").write_text("venv:\n\tfalse\n", "utf-8")
    rules = team.folder / "policies" / "__main__.py"
    rules.write_text(f"import sys; sys.exit()\n{rules.read_text('utf-8')}", "utf-8")
    (team.folder / "training" / "thief.py").write_text(THIEF.format(file=str(team.folder.parent / "stolen")), "utf-8")
    team.set(
        clusters=[{"name": "a100", "size": "Standard_NC24s_v3", "nodes": {"min": 0, "max": 40}}],
        policies="policies-team.json",
    )
    team.commit("Another size")
    team.asked("open gate", "open-gate")
    team.set(clusters=[{"name": "a100", "size": SIZE, "nodes": {"min": 0, "max": 6}}])
    team.set(jobs=[*team.settings()["amlstack:jobs"], "training/thief.py"])
    team.commit("A job in Python")
    team.asked("thief", "open-gate", again="open gate", without=("check",))

    team.branch("edit-hold")
    (team.folder / "Pulumi.review.yaml").unlink()
    hold = team.folder / "training" / "hold.yml"
    hold.write_text(hold.read_text("utf-8").replace("infinity", "1000000"), "utf-8")
    team.commit("Hold for a million seconds")
    team.asked("running", "edit-hold", without=("check",))

    commit = team.forge.merge(team.seen["good"], team.folder)
    team.pushed("merged", commit)
    look(team, "merged")

    team.nightly("no drift")
    body = cluster(team)
    body["properties"]["properties"]["scaleSettings"]["maxNodeCount"] = 5
    by_hand(team, body)
    before = team.place.blobs()
    team.nightly("drift")
    team.seen["unwritten by the night"] = before == team.place.blobs()
    team.nightly("drift, again")
    body["properties"]["properties"]["scaleSettings"]["maxNodeCount"] = 8
    by_hand(team, body)
    team.nightly("mended by hand")

    # Between plan and approval somebody deploys from a laptop what main does not have.
    team.branch("fewer-nodes")
    team.set(clusters=[{"name": "a100", "size": SIZE, "nodes": {"min": 0, "max": 6}}])
    team.commit("Fewer nodes again")
    pull = team.forge.pull("fewer-nodes", team.folder)
    team.pushed("overtaken", team.forge.merge(pull["number"], team.folder), approved=())
    team.seen["without approval"] = result(team, "overtaken")["up"]
    team.set(environments=[{"name": "plain", "image": IMAGE}, {"name": "mine", "image": IMAGE}])
    team.seen["laptop"] = team.deploys_from_a_laptop()
    look(team, "laptop")
    team.approved("overtaken")
    look(team, "overtaken")


def cluster(team: Team) -> dict[str, Any]:
    """The cluster as the service has it."""
    with store_of(team.azure.home) as store:
        (found,) = store.clusters()
        return {
            "id": found.id,
            **{key: found.body[key] for key in ("location", "properties", "identity") if key in found.body},
        }


def by_hand(team: Team, body: dict[str, Any]) -> None:
    """Somebody writes to the resource manager, past the repository."""
    arm = connect(team.azure.endpoint)
    arm.put(body["id"], {key: value for key, value in body.items() if key != "id"})


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


def test_a_push_to_main_waits_for_approval_and_then_deploys(team: Team) -> None:
    assert team.seen["without approval"] == "waiting"
    assert result(team, "first") == {"plan": "success", "up": "success"}, printed(team, "first")
    assert "No pull request's plan was found for this commit." in team.runs["first"]["plan"].summary
    assert "- created: a100" in team.runs["first"]["plan"].summary


def test_a_good_pull_request_passes_every_check(team: Team) -> None:
    assert result(team, "good") == {"check": "success", "preview": "success", "comment": "success"}, printed(
        team, "good"
    )
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


def test_reports_of_rehearsals_are_in_the_artifact_that_the_comment_leads_to(team: Team) -> None:
    folder = team.forge.folder / "artifacts" / team.seen["good run"] / "results-prod"
    assert len(list((folder / "reports").glob("*.html"))) == 2
    (comment,) = team.comments("good")
    assert f"actions/runs/{team.seen['good run']})" in comment["body"]


def test_findings_are_annotations_beside_their_lines(team: Team) -> None:
    text = team.runs["good"]["check"].step("Check the jobs").text
    assert "::warning file=training/ring.yml,line=" in text


def test_a_review_stack_is_taken_down_and_leaves_nothing(team: Team) -> None:
    down = team.runs["good"]["check"].step("Take the review stack down")
    assert down.code == 0, down.text
    assert team.seen["left of the review stack"] == {}


def test_a_violation_stops_a_pull_request_before_anything_is_planned(team: Team) -> None:
    assert result(team, "violation") == {"check": "failure", "preview": "failure", "comment": "success"}
    (comment,) = team.seen["comment on the violation"]
    assert "the preview was refused" in comment["body"]
    assert "`sriov-fabric`" in comment["body"]
    assert row(comment["body"], "review") == "| review stack on the sandbox | – not run |"
    assert "::error file=" in team.runs["violation"]["check"].step("Check the jobs").text


def test_a_branch_cannot_open_its_own_gate(team: Team) -> None:
    """It turns rules off, and changes Makefile and pack: main's judge it, and the comment names what it tried."""
    assert result(team, "open gate") == {"check": "failure", "preview": "failure", "comment": "success"}, printed(
        team, "open gate"
    )
    preview = kept(team, "open gate", "preview-prod/preview.json")
    assert {one["code"] for one in preview["findings"] if one["level"] == "error"} >= {"sriov-fabric", "size-retired"}
    guards = team.runs["open gate"]["preview"].step("Take what").text
    for words in ("sriov-fabric: disabled", "size-retired: disabled", '"policies-team.json"', '"Makefile"'):
        assert words in guards, guards


def test_a_job_file_of_a_pull_request_sees_no_secret_and_its_reviewers_see_the_gate(team: Team) -> None:
    (comment,) = team.comments("open gate")
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
    assert result(team, "mended")["comment"] == "success", printed(team, "mended")
    (comment,) = team.comments("violation")
    assert comment["edits"] == 1
    assert "the preview was refused" not in comment["body"]


def test_an_edit_of_a_running_job_is_refused_in_the_preview(team: Team) -> None:
    assert result(team, "running")["preview"] == "failure", printed(team, "running")
    (comment,) = team.comments("running")
    assert "on\\_edit: cancel" in comment["body"], comment["body"]  # as Markdown shows it


def test_a_merge_applies_the_plan_of_the_pull_request(team: Team) -> None:
    assert result(team, "merged") == {"plan": "success", "up": "success"}, printed(team, "merged")
    assert "The plan is the same" in team.runs["merged"]["plan"].summary
    assert (team.seen["nodes"]["first"], team.seen["nodes"]["merged"]) == (6, 8)
    assert (team.seen["ring"]["first"], team.seen["ring"]["merged"]) == (1, 2), "the edited job ran once more, and once"
    assert set(team.seen["hold"].values()) == {1}, "the job that runs was left alone"


def test_drift_is_one_issue_that_is_kept_up_to_date_and_closed_when_it_is_gone(team: Team) -> None:
    steps = ["no drift", "drift", "drift, again", "mended by hand"]
    assert [result(team, step) for step in steps] == [{"drift": "success"}] * 4, "\n".join(
        printed(team, s) for s in steps
    )
    assert team.seen["issues"]["no drift"] == []
    (issue,) = team.seen["issues"]["drift"]
    assert issue["state"] == "open"
    assert "maxNodeCount" in issue["body"], issue["body"]
    assert [one["number"] for one in team.seen["issues"]["drift, again"]] == [issue["number"]]
    (closed,) = team.seen["issues"]["mended by hand"]
    assert (closed["state"], closed["comments"]) == ("closed", ["The drift is gone."])


def test_another_plan_than_the_approved_one_is_not_applied(team: Team) -> None:
    said_up = team.runs["overtaken"]["up"]
    assert said_up.result == "failure"
    assert "nothing was changed: this is not the plan of" in said_up.text()
    assert "Compute a100" in said_up.text()
    assert team.seen["laptop"].returncode == 0, team.seen["laptop"].stderr
    assert team.seen["held"]["overtaken"] == team.seen["held"]["laptop"]


def test_the_state_is_in_azure_and_only_deployments_write_it(team: Team) -> None:
    blobs = team.place.blobs()
    assert ".pulumi/stacks/amlstack/prod.json" in blobs
    assert [name for name in blobs if "/locks/" in name] == []
    assert team.seen["unwritten by a pull request"] is True
    assert team.seen["unwritten by the night"] is True


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
