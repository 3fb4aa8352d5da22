"""The cluster or workspace of a run is replaced: the engine asks with an unknown id before it deletes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amlstack.rpc import UNKNOWN
from tests.support.provider.fake_workspace import WORKSPACE
from tests.support.provider.provider_wire import Refused, job_inputs

if TYPE_CHECKING:
    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Log, Resource, Wire

CLUSTER = f"{WORKSPACE}/computes/rdma"
GROUND = [WORKSPACE, CLUSTER]
LOSSES: dict[str, dict[str, Any]] = {
    "the whole list, as the engine asks before it deletes": {"placedOn": UNKNOWN},
    "one of the list, as a preview shows it": {"placedOn": [WORKSPACE, UNKNOWN]},
    "the workspace itself": {"workspace": UNKNOWN},
}
lost = pytest.mark.parametrize("lost", LOSSES.values(), ids=LOSSES.keys())


def placed(**more: Any) -> dict[str, Any]:
    return job_inputs(placedOn=GROUND, **more)


def running(wire: Wire, arm: FakeArm, **more: Any) -> Resource:
    job = wire.job()
    job.up(placed(**more))
    arm.set_status(job.id, "Running")
    return job


@lost
@pytest.mark.parametrize("on_edit", ["refuse", "keep"])
def test_a_run_that_would_lose_its_ground_is_refused_by_name(
    wire: Wire, arm: FakeArm, on_edit: str, lost: dict[str, Any]
) -> None:
    job = running(wire, arm, onEdit=on_edit)
    with pytest.raises(Refused) as caught:
        job.diff({**job.inputs, **lost})
    message = str(caught.value)
    assert f"run {job.id} is Running, and what it lives on is replaced" in message
    assert ("workspaces/w" if "workspace" in lost else "computes/rdma") in message
    assert ("one of workspaces/w, computes/rdma" in message) is (lost.get("placedOn") is UNKNOWN)
    assert "on_edit: cancel" in message


@lost
def test_under_cancel_it_is_announced_and_ended_first(wire: Wire, arm: FakeArm, log: Log, lost: dict[str, Any]) -> None:
    job = running(wire, arm, onEdit="cancel")
    answer = job.diff({**job.inputs, **lost})
    assert answer.replaces == list(lost)
    assert answer.deleteBeforeReplace
    assert f"run {job.id} is Running and is ended first (on_edit: cancel)" in log.messages("info")[-1]
    run = job.id
    job._delete(job.id, job.inputs, job.outputs)
    assert arm.cancelled == [run]
    log.entries.clear()
    job._create(job.check(placed(onEdit="cancel")), 0)
    assert (job.id, arm.runs_started()) == (run, 1)
    assert "set `rerun` to another word" in log.messages("warning")[-1], "it is not run again by itself"


def test_the_run_of_another_resource_of_the_same_name_is_that_one_s_affair(wire: Wire, arm: FakeArm) -> None:
    job, other = running(wire, arm, onEdit="cancel"), wire.job("another")
    other.up(placed(rerun="again"))
    arm.set_status(other.id, "Running")
    assert job.diff({**job.inputs, "placedOn": UNKNOWN}).replaces == ["placedOn"]
    with pytest.raises(Refused, match=f"run {other.id} is Running"):
        other.diff({**other.inputs, "placedOn": UNKNOWN})


@pytest.mark.parametrize("status", ["Completed", "Failed", "Canceled"])
def test_an_ended_run_needs_no_ground(wire: Wire, arm: FakeArm, status: str) -> None:
    job = running(wire, arm)
    arm.set_status(job.id, status)
    assert not job.diff({**job.inputs, "placedOn": UNKNOWN}).replaces
    assert arm.cancelled == []


def test_a_kept_run_on_the_same_cluster_is_refused_whatever_on_edit_says_now(wire: Wire, arm: FakeArm) -> None:
    job = running(wire, arm)
    kept = job.id
    job.up(placed(rerun="2", onEdit="keep"))
    arm.set_status(job.id, "Completed")
    with pytest.raises(Refused, match=f"run {kept} of this job is Running and goes on by an earlier `on_edit: keep`"):
        job.diff({**job.inputs, "onEdit": "cancel", "placedOn": UNKNOWN})


def test_a_run_without_a_resource_holds_its_cluster_too(wire: Wire, arm: FakeArm) -> None:
    orphan = running(wire, arm).id
    wire.restart()
    job = wire.job()
    job.up(placed(rerun="2", onEdit="keep"))
    arm.job(orphan)["tags"] = {}
    arm.set_status(job.id, "Completed")
    with pytest.raises(Refused, match=f"run {orphan} of this job is Running and no resource stands for it"):
        job.diff({**job.inputs, "placedOn": UNKNOWN})


def replaced_and_killed(wire: Wire, arm: FakeArm, on_edit: str) -> tuple[Resource, Resource]:
    """The rest of a replacement that was killed before its last step was saved: the new resource, and the old copy."""
    job = running(wire, arm, onEdit=on_edit)
    arm.set_status(job.id, "Completed")
    pending = wire.job(id=job.id, inputs=job.inputs, outputs=job.outputs)
    job._create(job.check(placed(rerun="2", onEdit=on_edit)), 0)
    wire.restart()
    return job, pending


def test_a_copy_pending_deletion_refuses_no_cluster_that_its_resource_gives_up(wire: Wire, arm: FakeArm) -> None:
    job, pending = replaced_and_killed(wire, arm, "cancel")
    assert job.diff({**job.inputs, "placedOn": UNKNOWN}).replaces == ["placedOn"]
    assert not pending.diff({**pending.inputs, "placedOn": UNKNOWN}).replaces
    assert arm.cancelled == []
    job._delete(job.id, job.inputs, job.outputs)
    assert arm.cancelled == [job.id]


@pytest.mark.parametrize("on_edit", ["refuse", "keep"])
def test_a_copy_pending_deletion_gives_up_no_run_that_its_resource_does_not(
    wire: Wire, arm: FakeArm, on_edit: str
) -> None:
    job, pending = replaced_and_killed(wire, arm, on_edit)
    with pytest.raises(Refused, match=f"run {job.id} is Queued, and what it lives on is replaced"):
        job.diff({**job.inputs, "placedOn": UNKNOWN})
    with pytest.raises(Refused, match=f"run {job.id} of this job is Queued"):
        pending.diff({**pending.inputs, "placedOn": UNKNOWN})


def test_a_kept_run_elsewhere_does_not_hold_a_cluster(wire: Wire, arm: FakeArm) -> None:
    job = running(wire, arm)
    kept = job.id
    job.up(placed(rerun="2", onEdit="keep"))
    arm.job(kept)["computeId"] = f"{WORKSPACE}/computes/other"
    arm.set_status(job.id, "Completed")
    assert not job.diff({**job.inputs, "placedOn": UNKNOWN}).replaces


def test_a_job_that_moves_to_a_new_cluster_is_an_ordinary_edit(wire: Wire, arm: FakeArm) -> None:
    job = running(wire, arm)
    moved = job.check(placed(onEdit="keep", declaration={"compute": "new"}))
    answer = job.diff({**moved, "placedOn": [WORKSPACE, UNKNOWN]})
    assert answer.replaces == ["declaration"]
    assert not answer.deleteBeforeReplace


def test_ground_that_was_never_recorded_is_not_lost(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs())
    arm.set_status(job.id, "Running")
    assert not job.diff({**job.inputs, "placedOn": [WORKSPACE, UNKNOWN]}).replaces


@pytest.mark.parametrize("on_edit", ["refuse", "keep", "cancel"])
@pytest.mark.parametrize("part", ["declaration", "codeHash"])
def test_what_is_not_known_yet_ends_no_active_run(wire: Wire, arm: FakeArm, log: Log, on_edit: str, part: str) -> None:
    """The engine asks so before it deletes what an input comes from, and would delete the job with it."""
    job = running(wire, arm, onEdit=on_edit)
    answer = job.diff({**job.inputs, part: UNKNOWN})
    assert not answer.replaces
    assert "is not known yet" in log.messages("info")[-1]


def test_whether_other_runs_are_active_must_be_known(wire: Wire, arm: FakeArm) -> None:
    job = running(wire, arm)
    arm.fail("GET", "/jobs$", 403, code="AuthorizationFailed")
    with pytest.raises(Refused, match="cannot be asked: AuthorizationFailed"):
        job.diff({**job.inputs, "placedOn": UNKNOWN})
