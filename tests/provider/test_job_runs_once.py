"""A run happens once: create, adopt, refuse, edit, vanish."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from azure.core.pipeline.transport import RequestsTransport

from amlstack.provider.arm import exchange
from amlstack.rpc import UNKNOWN, Secret
from amlstack.run_identity import job_id
from tests.support.provider.fake_workspace import WORKSPACE
from tests.support.provider.provider_wire import Refused, job_inputs

if TYPE_CHECKING:
    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Log, Wire

OWNER = "train/dev"


def run_of(inputs: dict[str, Any], owner: str = OWNER) -> str:
    return job_id(inputs["name"], inputs["declaration"], inputs["codeHash"], inputs.get("rerun", ""), owner)


def test_the_id_is_known_at_preview_and_nothing_is_started(wire: Wire, arm: FakeArm) -> None:
    foretold = wire.job().preview(job_inputs())
    assert foretold["jobId"] == f"{WORKSPACE}/jobs/{run_of(job_inputs())}"
    assert arm.runs_started() == 0


def test_an_id_that_depends_on_something_unknown_is_left_open_at_preview(wire: Wire, arm: FakeArm) -> None:
    assert "jobId" not in wire.job().preview(job_inputs(codeHash=UNKNOWN))
    assert arm.asked == []


def test_the_body_reaches_the_service_as_it_is_with_our_marks(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    inputs = job_inputs(properties={"properties": {"theirs": "1"}, "limits": {"timeout": "PT15M"}})
    assert job.up(inputs) == "create"
    assert job.id == run_of(inputs)
    sent = arm.last("PUT", "/jobs/").body["properties"]
    marks = sent.pop("properties")
    assert sent == {k: v for k, v in inputs["body"]["properties"].items() if k != "properties"}
    assert marks.pop("theirs") == "1"
    assert marks == {
        "amlstack.run_identity": job.outputs["identity"],
        "amlstack.owner": OWNER,
        "amlstack.derived": marks["amlstack.derived"],
        "amlstack.name": "mnist",
        "amlstack.resource": "amlstack:jobs:Job::a",
        "amlstack.onEdit": "refuse",
    }
    assert job.outputs["status"] == "Queued"
    assert job.outputs["services"] == {"Studio": f"https://ml.azure.com/runs/{job.id}"}


def test_an_unedited_job_is_no_change_and_asks_nothing(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs())
    asked = len(arm.asked)
    assert job.up(job_inputs()) == "same"
    assert len(arm.asked) == asked


def test_a_change_of_what_is_derived_runs_nothing_and_says_so(wire: Wire, arm: FakeArm, log: Log) -> None:
    job = wire.job()
    job.up(job_inputs())
    more = job_inputs(properties={"environmentVariables": {"NCCL_DEBUG": "WARN"}, "resources": {"shmSize": "64g"}})
    for _ in range(2):
        log.entries.clear()
        assert job.up(more) == "same"
        (message,) = log.messages("info")
        assert "body.properties.environmentVariables.NCCL_DEBUG" in message
        assert "body.properties.resources" in message
        assert f"run {job.id} keeps what it was created with" in message
        assert "`rerun`" in message
    assert arm.runs_started() == 1


@pytest.mark.parametrize(
    "change",
    [
        {"declaration": {"command": "python train.py", "lr": 0.2}},
        {"codeHash": "1" * 64},
        {"rerun": "again"},
        {"name": "cifar"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_an_edit_of_a_finished_run_is_a_new_run_and_the_old_record_stays(
    wire: Wire, arm: FakeArm, change: dict[str, Any]
) -> None:
    job = wire.job()
    job.up(job_inputs())
    old = job.id
    arm.set_status(old, "Completed")
    assert job.up(job_inputs(**change)) == "replace"
    assert job.id != old
    assert arm.runs_started() == 2
    assert arm.job(old)["status"] == "Completed"
    assert arm.cancelled == []


def test_numbers_of_the_declaration_survive_the_wire(wire: Wire) -> None:
    inputs = job_inputs(declaration={"n": 2, "f": 2.0, "lr": 0.1, "none": None, "list": [1, {"a": True}]})
    job = wire.job()
    job.up(inputs)
    assert job.id == run_of(inputs)


def test_a_crash_after_the_submission_is_healed_by_adoption(wire: Wire, arm: FakeArm, log: Log) -> None:
    wire.job().up(job_inputs())
    wire.restart()  # the state file never heard of it
    again = wire.job()
    assert again.up(job_inputs()) == "create"
    assert arm.runs_started() == 1
    assert f"adopted run {again.id}" in log.messages("info")[0]


def test_an_answer_that_is_lost_after_the_run_was_accepted_starts_no_second_one(wire: Wire, arm: FakeArm) -> None:
    arm.fail("PUT", "/jobs/", 409, after=True)
    job = wire.job()
    job.up(job_inputs())
    assert arm.runs_started() == 1
    assert job.outputs["status"] == "Queued"


def test_a_run_that_the_service_refuses_is_no_resource(wire: Wire, arm: FakeArm) -> None:
    arm.fail("PUT", "/jobs/", 400, code="InvalidNodeCount", message="the cluster has 2 nodes")
    with pytest.raises(Refused, match=r"was not accepted: InvalidNodeCount \(400\): the cluster has 2 nodes") as caught:
        wire.job().up(job_inputs())
    assert caught.value.partial is None


def test_an_adopted_run_gets_the_metadata_wanted_now(wire: Wire, arm: FakeArm) -> None:
    wire.job().up(job_inputs(properties={"tags": {"team": "vision"}}))
    wire.restart()
    job = wire.job()
    job.up(job_inputs(properties={"tags": {"team": "speech"}, "description": "new"}))
    assert arm.job(job.id)["tags"] == {"team": "speech"}
    assert arm.job(job.id)["description"] == "new"
    assert arm.runs_started() == 1


@pytest.mark.parametrize("status", ["Failed", "Canceled"])
def test_adopting_an_unsuccessful_run_says_so_and_names_rerun(wire: Wire, arm: FakeArm, log: Log, status: str) -> None:
    first = wire.job()
    first.up(job_inputs())
    arm.set_status(first.id, status)
    wire.restart()
    wire.job().up(job_inputs())
    (message,) = log.messages("warning")
    assert status in message
    assert "`rerun`" in message
    assert arm.runs_started() == 1


@pytest.mark.parametrize(
    ("marks", "named"),
    [
        ({"amlstack.owner": "other/prod", "amlstack.run_identity": "1"}, "belongs to other/prod"),
        ({}, "was not made here"),
        ({"amlstack.owner": OWNER, "amlstack.run_identity": "1"}, "with another declaration"),
    ],
    ids=["another stack", "nobody", "another declaration"],
)
def test_a_foreign_record_is_refused_by_name_at_preview_already(
    wire: Wire, arm: FakeArm, marks: dict[str, str], named: str
) -> None:
    run = run_of(job_inputs())
    arm.jobs[f"{WORKSPACE}/jobs/{run}".lower()] = {"properties": {"status": "Running", "properties": marks}, "sent": {}}
    job = wire.job()
    with pytest.raises(Refused, match=named):
        job.preview(job_inputs())
    with pytest.raises(Refused, match=named):
        job.up(job_inputs())
    assert arm.runs_started() == 0


def test_two_resources_may_not_stand_for_one_run(wire: Wire, arm: FakeArm) -> None:
    wire.job("a").up(job_inputs())
    with pytest.raises(Refused, match="b and a declare the same run"):
        wire.job("b").up(job_inputs(), same_deployment=True)
    assert arm.runs_started() == 1


def test_two_stacks_run_the_same_job_apart(wire: Wire, arm: FakeArm) -> None:
    one, other = wire.job(), wire.job(urn="urn:pulumi:prod::train::amlstack:jobs:Job::a")
    one.up(job_inputs())
    other.up(job_inputs())
    assert one.id != other.id
    assert one.outputs["identity"] == other.outputs["identity"]
    assert arm.runs_started() == 2


def test_renaming_the_stack_or_project_reruns_nothing(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs())
    job.urn = "urn:pulumi:production::trainings::amlstack:jobs:Job::a"
    assert job.up(job_inputs()) == "same"
    job.refresh()
    assert job.up(job_inputs()) == "same"
    job.remove()
    assert arm.cancelled == [job_id("mnist", job_inputs()["declaration"], "0" * 64, "", OWNER)], "it is still ours"


def test_a_vanished_record_stays_in_the_state_and_is_never_run_again(wire: Wire, arm: FakeArm, log: Log) -> None:
    job = wire.job()
    job.up(job_inputs())
    arm.jobs.clear()
    job.refresh()
    assert job.id
    assert job.outputs["gone"] is True
    assert "gone from the workspace" in log.messages("warning")[0]
    assert job.up(job_inputs()) == "same"
    assert job.up(job_inputs(properties={"description": "edited"})) == "same"
    assert "gone" in log.messages("info")[-1]
    assert arm.runs_started() == 1
    job.remove()
    assert arm.cancelled == []


def test_a_vanished_run_is_run_again_when_the_person_says_so(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs())
    arm.jobs.clear()
    job.refresh()
    assert job.up(job_inputs(rerun="2")) == "replace"
    assert job.outputs["gone"] is False
    assert arm.runs_started() == 2


@pytest.mark.parametrize(("status", "code"), [(403, "AuthorizationFailed"), (400, "Whatever")])
def test_a_refresh_that_may_not_look_is_an_error_not_a_disappearance(
    wire: Wire, arm: FakeArm, status: int, code: str
) -> None:
    job = wire.job()
    job.up(job_inputs())
    before = dict(job.outputs)
    arm.fail("GET", "/jobs/", status, code=code)
    with pytest.raises(Refused, match=code):
        job.refresh()
    assert job.outputs == before


def test_a_missing_workspace_is_an_error_not_a_disappearance(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs())
    arm.workspaces.clear()
    with pytest.raises(Refused, match="there is no workspace w"):
        job.refresh()
    assert job.outputs["gone"] is False
    with pytest.raises(Refused, match="there is no workspace w"):
        wire.job("b").up(job_inputs(name="other"))


def test_a_refresh_shows_the_live_status(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs())
    arm.set_status(job.id, "Running")
    job.refresh()
    assert job.outputs["status"] == "Running"
    assert job.up(job_inputs()) == "same"


def test_a_run_cannot_be_imported(wire: Wire) -> None:
    job = wire.job()
    job.id = "mnist-0123456789"
    with pytest.raises(Refused, match="cannot be imported"):
        job.refresh()


def test_a_latest_label_is_resolved_once(wire: Wire, arm: FakeArm) -> None:
    container = f"{WORKSPACE}/environments/acpt"
    for version in ("1", "2"):
        arm.resources[f"{container}/versions/{version}"] = {"properties": {"image": "i"}}
    labelled = job_inputs(properties={"environmentId": f"{container}/labels/latest"})
    job = wire.job()
    job.up(labelled)
    assert arm.last("PUT", "/jobs/").body["properties"]["environmentId"] == f"{container}/versions/2"
    assert job.outputs["environmentId"] == f"{container}/versions/2"
    arm.resources[f"{container}/versions/3"] = {"properties": {"image": "i"}}
    assert job.up(labelled) == "same"
    assert arm.runs_started() == 1


def test_a_label_without_any_version_is_refused(wire: Wire, arm: FakeArm) -> None:
    labelled = job_inputs(properties={"environmentId": f"{WORKSPACE}/environments/nothing/labels/latest"})
    with pytest.raises(Refused, match="has no version of an environment nothing"):
        wire.job().up(labelled)
    assert arm.runs_started() == 0


def test_secrets_reach_the_service_and_stay_secret_in_the_state(wire: Wire, arm: FakeArm) -> None:
    inputs = job_inputs(properties={"environmentVariables": {"KEY": Secret("s3cret")}})
    job = wire.job()
    job.up(inputs)
    assert arm.last("PUT", "/jobs/").body["properties"]["environmentVariables"] == {"KEY": "s3cret"}
    assert job.outputs["body"]["properties"]["environmentVariables"]["KEY"] == Secret("s3cret")
    assert job.up(inputs) == "same"


@pytest.mark.parametrize(
    ("change", "where", "words"),
    [
        ({"onEdit": "ask"}, "onEdit", "one of refuse, cancel, keep"),
        ({"wait": "compleeted"}, "wait", "one of none, started, completed"),
        ({"workspace": "w"}, "workspace", "an ARM id"),
        ({"name": "a b"}, "name", "letters, digits"),
        ({"body": {"jobType": "Command"}}, "body", '{"properties"'),
        ({"body": {"properties": {}}}, "body.properties.jobType", "Command"),
        ({"deleteHistory": "yes"}, "deleteHistory", "true or false"),
        ({"on_edit": "keep"}, "on_edit", "Did you mean `onEdit`?"),
        ({"declaration": None}, "declaration", "is required"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_wrong_inputs_are_failures_of_check(wire: Wire, change: dict[str, Any], where: str, words: str) -> None:
    assert words in wire.job().failures(job_inputs(**change))[where]


def test_an_asset_among_the_inputs_is_refused_with_its_path(wire: Wire) -> None:
    signature = "4dabf18193072939515e22adb298388d"
    asset = {signature: "c44067f5952c0a294b673a41bacd8c17", "path": "x"}
    found = wire.job().failures(job_inputs(declaration={"code": [asset]}))
    assert "an asset is not taken here" in found["declaration.code[0]"]


def test_no_connection_is_one_sentence_and_no_resource(
    wire: Wire, arm: FakeArm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RequestsTransport, "sleep", lambda *_: None)  # azure-identity's waits between its attempts
    monkeypatch.setattr(exchange, "pause", lambda *_: None)  # ours
    arm.close()
    with pytest.raises(Refused, match=r"no Entra ID token|no answer from 127\.0\.0\.1"):
        wire.job().up(job_inputs())
