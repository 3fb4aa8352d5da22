"""`on_edit: keep`, and edits that are taken back: what goes on is never ended, and nothing is left that nobody owns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.provider.fake_workspace import WORKSPACE
from tests.support.provider.provider_wire import Refused, job_inputs

if TYPE_CHECKING:
    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Log, Resource, Wire


def declared(lr: float, on_edit: str = "keep", **more: Any) -> dict[str, Any]:
    return job_inputs(declaration={"lr": lr}, onEdit=on_edit, **more)


def edited(wire: Wire, arm: FakeArm, *rates: float) -> tuple[Resource, list[str]]:
    """A job after these edits, each made while its run was running; the ids of its runs."""
    job, runs = wire.job(), []
    for rate in rates:
        job.up(declared(rate))
        arm.set_status(job.id, "Running")
        runs.append(job.id)
    return job, runs


def kept_for(arm: FakeArm, run: str) -> str:
    return str(arm.job(run).get("tags", {}).get("amlstack.keptFor", ""))


@pytest.mark.parametrize("tag_removal", [True, False], ids=["tags can be removed", "tags stay"])
def test_an_edit_that_is_taken_back_ends_nothing_and_the_first_run_is_the_jobs_own_again(
    wire: Wire, arm: FakeArm, tag_removal: bool
) -> None:
    arm.tag_removal = tag_removal
    job, (first, second, back) = edited(wire, arm, 0.1, 0.2, 0.1)
    assert back == first
    assert arm.cancelled == []
    assert kept_for(arm, first) == ""
    assert kept_for(arm, second) == first
    assert arm.runs_started() == 2
    job.remove()
    assert sorted(arm.cancelled) == sorted([first, second]), "nobody stands for either any more"


def test_several_generations_go_on_and_end_with_their_job(wire: Wire, arm: FakeArm) -> None:
    job, (first, second, _, third) = edited(wire, arm, 0.1, 0.2, 0.1, 0.3)
    assert arm.cancelled == []
    assert (kept_for(arm, first), kept_for(arm, second), kept_for(arm, third)) == (third, first, "")
    assert job.up(declared(0.4, "cancel")) == "replace"
    assert arm.cancelled == [third], "the current one is ended; what was announced to go on goes on"
    job.remove()
    assert set(arm.cancelled) == {first, second, third, job.outputs["jobId"].rsplit("/", 1)[-1]}


def test_an_earlier_rerun_word_is_the_earlier_run(wire: Wire, arm: FakeArm, log: Log) -> None:
    job = wire.job()
    for word in ("1", "2", "1"):
        job.up(declared(0.1, rerun=word))
        arm.set_status(job.id, "Running")
    assert arm.runs_started() == 2
    assert arm.cancelled == []
    assert any("adopted run" in message and "nothing is submitted" in message for message in log.messages("info"))


def test_a_mark_that_an_interrupted_edit_left_does_not_save_the_current_run_from_a_cancelling_edit(
    wire: Wire, arm: FakeArm
) -> None:
    job, (first,) = edited(wire, arm, 0.1)
    before = job.id, job.inputs, job.outputs
    assert job.diff(job.check(declared(0.2))).replaces
    job._create(job.check(declared(0.2)), 0)
    second = job.id
    wire.restart()
    job.id, job.inputs, job.outputs = before  # the engine was killed before it could write the state
    assert kept_for(arm, first) == second
    assert job.up(declared(0.1)) == "same", "the edit was taken back"
    assert job.up(declared(0.3, "cancel")) == "replace"
    assert sorted(arm.cancelled) == sorted([first, second]), "the one nobody stands for as well"


def test_a_run_whose_successor_vanished_outside_goes_on(wire: Wire, arm: FakeArm) -> None:
    job, (first,) = edited(wire, arm, 0.1)
    old = job.id, job.inputs, job.outputs
    assert job.diff(job.check(declared(0.2))).replaces
    job._create(job.check(declared(0.2)), 0)
    wire.restart()
    del arm.jobs[f"{WORKSPACE}/jobs/{job.id}".lower()]
    job.up(declared(0.2))
    job._delete(*old)
    assert arm.cancelled == [], f"{first} was announced to go on"


def test_a_run_that_the_history_does_not_know_cannot_be_kept_and_nothing_new_starts(wire: Wire, arm: FakeArm) -> None:
    job, _ = edited(wire, arm, 0.1)
    arm.fail("PATCH", "/history/", 404)
    with pytest.raises(Refused, match="could not be marked as kept"):
        job.up(declared(0.2))
    assert arm.runs_started() == 1


# -- runs that nobody stands for -------------------------------------------------------------------------------------


def orphaned(wire: Wire, arm: FakeArm) -> tuple[Resource, str]:
    """A run that was accepted before the engine was killed; nothing of it is in the state."""
    lost = wire.job()
    lost.up(declared(0.1, "refuse"))
    arm.set_status(lost.id, "Running")
    wire.restart()
    return wire.job(), lost.id


def test_an_orphaned_run_is_refused_by_name_at_preview_and_at_up(wire: Wire, arm: FakeArm) -> None:
    job, orphan = orphaned(wire, arm)
    for deploy in (job.preview, job.up):
        with pytest.raises(Refused) as caught:
            deploy(declared(0.2, "refuse"))
        message = str(caught.value)
        assert f"run {orphan} of this job is Running, and no resource stands for it" in message
        assert "on_edit: cancel" in message
    assert arm.runs_started() == 1
    assert arm.cancelled == []


@pytest.mark.parametrize("on_edit", ["cancel", "keep"])
def test_an_orphaned_run_is_treated_as_on_edit_says(wire: Wire, arm: FakeArm, log: Log, on_edit: str) -> None:
    job, orphan = orphaned(wire, arm)
    becomes = {"cancel": "is ended first (on_edit: cancel)", "keep": "goes on (on_edit: keep)"}[on_edit]
    job.preview(declared(0.2, on_edit))
    assert any(orphan in message and becomes in message for message in log.messages("info"))
    assert (arm.cancelled, kept_for(arm, orphan)) == ([], ""), "a preview changes nothing"
    job.up(declared(0.2, on_edit))
    assert arm.cancelled == ([orphan] if on_edit == "cancel" else [])
    assert kept_for(arm, orphan) == ("" if on_edit == "cancel" else job.id)
    order = [asked.path.rsplit("/", 1)[-1] for asked in arm.asked if asked.method in ("POST", "PATCH", "PUT")]
    assert order[-1] == job.id, "it is settled before the new run begins"


@pytest.mark.parametrize(
    "change",
    [{"amlstack.resource": "amlstack:jobs:Job::b"}, {"amlstack.owner": "train/prod"}, {"amlstack.stack": "other"}],
    ids=lambda change: next(iter(change)),
)
def test_a_run_of_another_resource_or_stack_is_no_orphan(wire: Wire, arm: FakeArm, change: dict[str, str]) -> None:
    job, orphan = orphaned(wire, arm)
    arm.job(orphan)["properties"].update(change)
    job.up(declared(0.2, "cancel"))
    assert arm.cancelled == []


def test_a_workspace_that_does_not_list_its_jobs_starts_nothing(wire: Wire, arm: FakeArm) -> None:
    arm.fail("GET", "/jobs$", 403, code="AuthorizationFailed")
    with pytest.raises(Refused, match="AuthorizationFailed"):
        wire.job().up(declared(0.1))
    assert arm.runs_started() == 0


def test_jobs_are_listed_once_in_a_deployment(wire: Wire, arm: FakeArm) -> None:
    arm.page = 100
    for name in "abc":
        wire.job(name).up(declared(0.1, name=name), same_deployment=True)
    assert arm.count("GET", "/jobs$") == 1


# -- copies in the state ---------------------------------------------------------------------------------------------


def test_a_copy_pending_deletion_does_not_end_the_run_that_lives(wire: Wire, arm: FakeArm, log: Log) -> None:
    """The state that a kill leaves between the creation and the deletion of a forced replacement."""
    job, (run,) = edited(wire, arm, 0.1)
    copy = job.id, job.inputs, job.outputs
    wire.restart()
    assert job.up(declared(0.1)) == "same"
    job._delete(*copy)
    assert arm.cancelled == []
    assert f"run {run} stays" in log.messages("info")[-1]
    job.remove()
    assert arm.cancelled == [run]


def test_a_forced_replacement_that_deletes_first_does_not_end_the_run(wire: Wire, arm: FakeArm) -> None:
    job, _ = edited(wire, arm, 0.1)
    old = job.id, job.inputs, job.outputs
    wire.configure()
    checked = job.check(declared(0.1))
    job._delete(*old)
    job._create(checked, 0)
    assert arm.cancelled == []
    assert arm.runs_started() == 1


def test_a_forced_replacement_with_an_edit_obeys_on_edit(wire: Wire, arm: FakeArm) -> None:
    job, (first,) = edited(wire, arm, 0.1)
    wire.configure()
    with pytest.raises(Refused, match=f"run {first} of this job is Running"):
        job._create(job.check(declared(0.2, "refuse")), 0)  # the engine asks for no Diff when it is forced
    assert arm.runs_started() == 1


def test_a_resource_under_another_name_takes_its_run_along(wire: Wire, arm: FakeArm) -> None:
    old, (run,) = edited(wire, arm, 0.1)
    wire.configure()
    renamed = wire.job("renamed")
    renamed.up(declared(0.1), same_deployment=True)
    old._delete(old.id, old.inputs, old.outputs)
    assert renamed.id == run
    assert arm.cancelled == []
