"""Edits of active runs, metadata, cancelling."""

from __future__ import annotations

import itertools
import math
import threading
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf import empty_pb2

from amlstack.provider.lifecycle import edits
from amlstack.rpc import UNKNOWN
from tests.support.provider.fake_workspace import WORKSPACE
from tests.support.provider.provider_wire import Refused, job_inputs

if TYPE_CHECKING:
    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Log, Wire

EDITED: dict[str, Any] = {"declaration": {"command": "python train.py", "lr": 0.2}}


@pytest.mark.parametrize("status", ["Queued", "Running", "CancelRequested", "Paused", "Unknown", "NewWordOfTheService"])
def test_editing_an_active_run_is_refused_at_preview_and_names_the_ways_out(
    wire: Wire, arm: FakeArm, status: str
) -> None:
    job = wire.job()
    job.up(job_inputs())
    arm.set_status(job.id, status)
    with pytest.raises(Refused) as caught:
        job.diff(job.check(job_inputs(**EDITED)))
    message = str(caught.value)
    assert f"run {job.id} is {status}" in message
    assert "declaration.lr" in message
    assert "on_edit: cancel" in message
    assert "on_edit: keep" in message
    assert arm.runs_started() == 1


@pytest.mark.parametrize("on_edit", ["refuse", "cancel", "keep"])
def test_an_edit_that_is_not_known_yet_leaves_the_active_run_alone(
    wire: Wire, arm: FakeArm, log: Log, on_edit: str
) -> None:
    job = wire.job()
    job.up(job_inputs(onEdit=on_edit))
    arm.set_status(job.id, "Running")
    answer = job.diff(job.check(job_inputs(onEdit=on_edit, declaration=UNKNOWN)))
    assert (list(answer.replaces), answer.deleteBeforeReplace) == ([], False)
    assert f"run {job.id} is Running; whether this edits it is not known yet (on_edit: {on_edit})" in log.messages(
        "info"
    )


def test_a_run_that_ended_since_the_last_look_may_be_edited(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs())
    assert job.outputs["status"] == "Queued"
    arm.set_status(job.id, "Completed")
    assert job.up(job_inputs(**EDITED)) == "replace"


def test_on_edit_cancel_ends_the_old_run_before_the_new_one_begins(wire: Wire, arm: FakeArm, log: Log) -> None:
    job = wire.job()
    job.up(job_inputs())
    old = job.id
    arm.set_status(old, "Running")
    assert job.diff(job.check(job_inputs(onEdit="cancel", **EDITED))).deleteBeforeReplace
    assert job.up(job_inputs(onEdit="cancel", **EDITED)) == "replace"
    order = [
        (asked.method, asked.path.rsplit("/", 1)[-1])
        for asked in arm.asked
        if asked.path.startswith(f"{WORKSPACE}/jobs/") and asked.method != "GET"
    ]
    assert order == [("PUT", old), ("POST", "cancel"), ("PUT", job.id)]
    assert arm.job(old)["status"] == "Canceled"
    assert any("waiting until it has ended" in message for message in log.messages("status"))


def test_on_edit_keep_lets_the_old_run_go_on(wire: Wire, arm: FakeArm, log: Log) -> None:
    job = wire.job()
    job.up(job_inputs())
    old = job.id
    arm.set_status(old, "Running")
    assert not job.diff(job.check(job_inputs(onEdit="keep", **EDITED))).deleteBeforeReplace
    assert job.up(job_inputs(onEdit="keep", **EDITED)) == "replace"
    assert arm.cancelled == []
    assert arm.job(old)["tags"] == {"amlstack.keptFor": job.id}
    assert arm.runs_started() == 2
    assert f"run {old} goes on (on_edit: keep)" in log.messages("info")


def test_a_kept_run_survives_a_crash_between_the_new_run_and_the_end_of_the_old(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs())
    old = (job.id, job.inputs, job.outputs)
    arm.set_status(job.id, "Running")
    checked = job.check(job_inputs(onEdit="keep", **EDITED))
    assert job.diff(checked).replaces == ["declaration"]
    job._create(checked, 0)
    wire.restart()  # the old resource is now pending deletion in the state
    assert job.up(job_inputs(onEdit="keep", **EDITED)) == "same"
    job._delete(*old)  # the engine deletes such copies last
    assert arm.cancelled == []


def test_a_mark_without_a_successor_protects_nothing(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs())
    arm.set_status(job.id, "Running")
    arm.job(job.id)["tags"] = {"amlstack.keptFor": "never-made"}
    job.remove()
    assert arm.cancelled == [job.outputs["jobId"].rsplit("/", 1)[-1]]


def test_a_run_that_cannot_be_marked_as_kept_starts_nothing_new(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs())
    arm.fail("PATCH", "/history/", 403, code="AuthorizationFailed")
    with pytest.raises(Refused, match="could not be marked as kept"):
        job.up(job_inputs(onEdit="keep", **EDITED))
    assert arm.runs_started() == 1


def test_whether_the_old_run_is_active_must_be_known(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs())
    arm.fail("GET", "/jobs/", 403, code="AuthorizationFailed")
    with pytest.raises(Refused, match="cannot be asked: AuthorizationFailed"):
        job.up(job_inputs(**EDITED))
    assert arm.runs_started() == 1


def test_a_forced_replacement_keeps_the_run(wire: Wire, arm: FakeArm, log: Log) -> None:
    job = wire.job()
    job.up(job_inputs())
    old = (job.id, job.inputs, job.outputs)
    job._create(job.check(job_inputs()), 0)
    job._delete(*old)
    assert arm.cancelled == []
    assert arm.runs_started() == 1


# -- metadata --------------------------------------------------------------------------------------------------------


def test_metadata_is_edited_through_the_run_history_and_never_by_a_put(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs(properties={"tags": {"team": "vision", "keep": "1"}, "displayName": "one"}))
    arm.job(job.id)["tags"]["theirs"] = "untouched"
    edited = job_inputs(
        properties={"tags": {"team": "speech", "keep": "1"}, "displayName": "two", "description": "because"}
    )
    assert job.up(edited) == "update"
    sent = arm.last("PATCH", "/history/v1.0")
    assert sent.path == f"/history/v1.0{WORKSPACE}/experiments/mnist/runs/{job.id}"
    assert sent.query == {}
    assert sent.body == {"displayName": "two", "description": "because", "tags": {"team": "speech"}}
    assert arm.runs_started() == 1
    assert arm.job(job.id)["tags"] == {"team": "speech", "keep": "1", "theirs": "untouched"}
    assert job.up(edited) == "same"


def test_metadata_and_derived_changes_together_edit_only_the_metadata(wire: Wire, arm: FakeArm, log: Log) -> None:
    job = wire.job()
    job.up(job_inputs())
    edited = job_inputs(properties={"displayName": "two", "environmentVariables": {"NCCL_DEBUG": "WARN"}})
    assert job.up(edited) == "update"
    assert job.outputs["body"]["properties"]["environmentVariables"] == {"NCCL_DEBUG": "INFO"}
    assert job.up(edited) == "same"
    assert "NCCL_DEBUG" in log.messages("info")[-1]


def test_a_tag_is_removed_where_the_service_allows_it(wire: Wire, arm: FakeArm, log: Log) -> None:
    job = wire.job()
    job.up(job_inputs(properties={"tags": {"a": "1", "b": "2"}}))
    assert job.up(job_inputs(properties={"tags": {"a": "1"}})) == "update"
    assert arm.last("PATCH", "/tags$").body == {"tagsToModify": {}, "tagsToDelete": ["b"]}
    assert arm.job(job.id)["tags"] == {"a": "1"}
    assert log.messages("warning") == []


def test_a_tag_that_cannot_be_removed_is_named(wire: Wire, arm: FakeArm, log: Log) -> None:
    arm.tag_removal = False
    job = wire.job()
    job.up(job_inputs(properties={"tags": {"a": "1", "b": "2"}}))
    assert job.up(job_inputs(properties={"tags": {"a": "1"}})) == "update"
    (message,) = log.messages("warning")
    assert "b stay on" in message


def test_a_display_name_stays_with_a_note(wire: Wire, arm: FakeArm, log: Log) -> None:
    job = wire.job()
    job.up(job_inputs(properties={"displayName": "one"}))
    assert job.up(job_inputs()) == "update"
    assert arm.job(job.id)["displayName"] == "one"
    assert "display name cannot be removed" in log.messages("info")[0]


def test_editing_the_metadata_of_a_vanished_run_marks_it(wire: Wire, arm: FakeArm, log: Log) -> None:
    job = wire.job()
    job.up(job_inputs())
    arm.jobs.clear()
    assert job.up(job_inputs(properties={"description": "new"})) == "update"
    assert job.outputs["gone"] is True
    assert arm.runs_started() == 1


def test_a_run_history_that_knows_no_run_marks_it(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs())
    arm.fail("PATCH", "/history/", 404)
    assert job.up(job_inputs(properties={"description": "new"})) == "update"
    assert job.outputs["gone"] is True


# -- the end ---------------------------------------------------------------------------------------------------------


def test_removing_a_running_job_cancels_it_waits_and_keeps_its_history(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs())
    run = job.id
    arm.set_status(run, "Running")
    job.remove()
    assert arm.cancelled == [run]
    assert arm.job(run)["status"] == "Canceled"
    assert arm.count("DELETE", "/jobs/") == 0


def test_removing_jobs_lists_the_active_runs_once_and_reads_none_before_it_is_cancelled(
    wire: Wire, arm: FakeArm
) -> None:
    jobs = [wire.job(name) for name in ("a", "b", "c")]
    for job in jobs:
        job.up(job_inputs(name=job.name))
        arm.set_status(job.id, "Queued")
    before = len(arm.asked)
    wire.configure()
    for job in jobs:
        job._delete(job.id, job.inputs, job.outputs)
    asked = [(one.method, one.path.removeprefix(f"{WORKSPACE}/jobs")) for one in arm.asked[before:]]
    requests = [(("POST", f"/{job.id}/cancel"), ("GET", f"/{job.id}")) for job in jobs]
    # The pages of the list, and the looks until a run has ended, count as one each.
    once_each = [one for one, _ in itertools.groupby(asked)]
    assert once_each == [("GET", ""), *itertools.chain.from_iterable(requests)]
    assert [arm.job(job.id)["status"] for job in jobs] == ["Canceled"] * 3


def test_a_removed_run_that_ended_after_the_list_of_runs_is_fine(wire: Wire, arm: FakeArm) -> None:
    first, second = wire.job("a"), wire.job("b")
    for job in (first, second):
        job.up(job_inputs(name=job.name))
    wire.configure()
    first._delete(first.id, first.inputs, first.outputs)
    arm.set_status(second.id, "Completed")
    second._delete(second.id, second.inputs, second.outputs)
    assert arm.job(second.id)["status"] == "Completed"


def test_a_removed_run_that_the_list_of_runs_lacks_is_ended(wire: Wire, arm: FakeArm) -> None:
    first, second = wire.job("a"), wire.job("b")
    for job in (first, second):
        job.up(job_inputs(name=job.name))
    # As when the service's list is behind its records.
    path = f"{WORKSPACE}/jobs/{second.id}".lower()
    late = arm.jobs.pop(path)
    wire.configure()
    first._delete(first.id, first.inputs, first.outputs)
    arm.jobs[path] = late
    second._delete(second.id, second.inputs, second.outputs)
    assert arm.job(second.id)["status"] == "Canceled"


@pytest.mark.parametrize(("fresh", "ended"), [(0.0, False), (math.inf, True)])
def test_an_owner_that_changes_during_a_removal_is_seen_when_the_list_of_runs_is_too_old(
    fresh: float, ended: bool, wire: Wire, arm: FakeArm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edits, "FRESH", fresh)
    first, second = wire.job("a"), wire.job("b")
    for job in (first, second):
        job.up(job_inputs(name=job.name))
    wire.configure()
    first._delete(first.id, first.inputs, first.outputs)
    arm.job(second.id)["properties"]["amlstack.owner"] = "other/prod"
    second._delete(second.id, second.inputs, second.outputs)
    assert (second.id in arm.cancelled) is ended


def test_removing_a_finished_job_changes_nothing(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs())
    arm.set_status(job.id, "Completed")
    job.remove()
    assert arm.cancelled == []
    assert len(arm.jobs) == 1


def test_the_history_goes_with_the_resource_when_asked_for(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs(deleteHistory=True))
    job.remove()
    assert arm.jobs == {}


def test_history_is_removed_as_last_declared(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs(deleteHistory=True))
    assert job.up(job_inputs(deleteHistory=False)) == "same"
    job.remove()
    assert len(arm.jobs) == 1


def test_a_run_of_somebody_else_is_left_alone(wire: Wire, arm: FakeArm, log: Log) -> None:
    job = wire.job()
    job.up(job_inputs(deleteHistory=True))
    arm.set_status(job.id, "Running")
    arm.job(job.id)["properties"]["amlstack.owner"] = "other/prod"
    job.remove()
    assert arm.cancelled == []
    assert len(arm.jobs) == 1
    assert "belongs to other/prod" in log.messages("info")[0]


def test_a_run_that_ends_while_it_is_cancelled_is_fine(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs())
    arm.set_status(job.id, "Running", "Completed")
    job.remove()
    assert len(arm.jobs) == 1


def test_a_refused_cancellation_is_an_error(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs())
    arm.fail("POST", "/cancel", 403, code="AuthorizationFailed")
    with pytest.raises(Refused, match=r"^mnist-[0-9a-f]{10}: AuthorizationFailed \(403\)"):
        job.remove()


@pytest.mark.parametrize("missing", ["record", "workspace"])
def test_removing_what_is_not_there_is_fine(wire: Wire, arm: FakeArm, missing: str) -> None:
    job = wire.job()
    job.up(job_inputs())
    arm.jobs.clear()
    if missing == "workspace":
        arm.workspaces.clear()
    job.remove()


def test_the_engine_can_interrupt_the_wait_for_the_end(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs())
    arm.set_status(job.id, *["Running"] * 2, *["CancelRequested"] * 10_000)
    failed: list[Refused] = []

    def remove() -> None:
        try:
            job.remove()
        except Refused as error:
            failed.append(error)

    thread = threading.Thread(target=remove)
    thread.start()
    while not arm.cancelled:
        thread.join(0.01)
    wire.call("Cancel", empty_pb2.Empty())
    thread.join()
    assert "interrupted" in str(failed[0])
    assert job.id, "it stays in the state, and the next up waits again"
