"""``wait``: progress, success, failure that stays, interruption."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from google.protobuf import empty_pb2

from amlstack.provider.lifecycle import gates
from amlstack.provider.runs import TERMINAL, RunVerdict, Wait, is_active, verdict
from tests.support.provider.provider_wire import Refused, job_inputs
from tests.support.rows import for_each

if TYPE_CHECKING:
    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Log, Resource, Wire


def submit(wire: Wire, wait: str) -> Resource:
    job = wire.job()
    job.up(job_inputs(wait=wait))
    return job


def test_none_waits_for_nothing(wire: Wire, arm: FakeArm) -> None:
    arm.script = ("Queued", "Running")
    assert submit(wire, "none").outputs["status"] == "Queued"


def test_started_waits_for_running(wire: Wire, arm: FakeArm) -> None:
    arm.script = ("NotStarted", "Queued", "Preparing", "Running", "Completed")
    assert submit(wire, "started").outputs["status"] == "Running"


def test_completed_waits_for_the_end_and_shows_the_way(wire: Wire, arm: FakeArm, log: Log) -> None:
    arm.script = ("Queued", "Provisioning", "Running", "Finalizing", "Completed")
    job = submit(wire, "completed")
    assert job.outputs["status"] == "Completed"
    fields = " ".join(log.messages("status"))
    for status in ("Queued", "Provisioning", "Running", "Finalizing"):
        assert f"is {status}; waiting until it has completed" in fields
    assert log.messages("info") == []
    assert job.up(job_inputs(wait="completed")) == "same"


@pytest.mark.parametrize("end", ["Failed", "Canceled"])
@pytest.mark.parametrize("wait", ["started", "completed"])
def test_a_run_that_fails_as_a_gate_is_kept_and_fails_again_without_running_again(
    wire: Wire, arm: FakeArm, wait: str, end: str
) -> None:
    arm.script = ("Queued", end)
    job = wire.job()
    for _ in range(3):
        with pytest.raises(Refused) as caught:
            job.up(job_inputs(wait=wait))
        assert caught.value.partial is not None
        assert f"ended {end}" in str(caught.value)
        assert "`rerun`" in str(caught.value)
        assert job.id
    assert arm.runs_started() == 1
    arm.script = ("Queued", "Completed")
    assert job.up(job_inputs(wait=wait, rerun="2")) == "replace"
    assert arm.runs_started() == 2


def test_a_refresh_does_not_open_a_failed_gate(wire: Wire, arm: FakeArm) -> None:
    arm.script = ("Queued", "Failed")
    job = wire.job()
    with pytest.raises(Refused):
        job.up(job_inputs(wait="completed"))
    job.refresh()
    with pytest.raises(Refused, match="ended Failed"):
        job.up(job_inputs(wait="completed"))


def test_a_gate_stays_failed_even_when_the_state_forgot_that_it_failed(wire: Wire, arm: FakeArm) -> None:
    arm.script = ("Queued", "Failed")
    job = wire.job()
    with pytest.raises(Refused):
        job.up(job_inputs(wait="completed"))
    job.init_failed = False
    with pytest.raises(Refused, match="ended Failed"):
        job.up(job_inputs(wait="completed"))


def test_a_failed_run_stops_being_a_gate_when_nothing_waits_for_it_any_more(wire: Wire, arm: FakeArm) -> None:
    arm.script = ("Queued", "Failed")
    job = wire.job()
    with pytest.raises(Refused):
        job.up(job_inputs(wait="completed"))
    assert job.up(job_inputs(wait="none")) == "update"
    assert job.up(job_inputs(wait="none")) == "same"


def test_a_gate_that_was_taken_away_is_none_for_a_refresh_either(wire: Wire, arm: FakeArm) -> None:
    arm.script = ("Completed",)
    job = submit(wire, "completed")
    assert job.up(job_inputs(wait="none")) == "same"
    arm.set_status(job.id, "Failed")
    job.refresh()
    assert not job.init_failed
    assert job.outputs["status"] == "Failed"


def test_a_service_that_does_not_come_back_ends_the_wait_and_not_the_run(
    wire: Wire, arm: FakeArm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gates, "_LOCAL_PATIENCE", 0.0)
    job = submit(wire, "none")
    arm.set_status(job.id, "Running")
    arm.down_after = len(arm.asked) + 3
    with pytest.raises(Refused, match=r"ServiceUnavailable.*wait: completed.*the run goes on"):
        job.up(job_inputs(wait="completed"))
    assert job.id


def test_adopting_a_failed_run_as_a_gate_fails(wire: Wire, arm: FakeArm) -> None:
    first = wire.job()
    first.up(job_inputs())
    arm.set_status(first.id, "Failed")
    wire.restart()
    with pytest.raises(Refused, match="ended Failed"):
        wire.job().up(job_inputs(wait="completed"))
    assert arm.runs_started() == 1


def test_an_adopted_active_run_is_waited_for(wire: Wire, arm: FakeArm) -> None:
    first = wire.job()
    first.up(job_inputs())
    arm.set_status(first.id, "Running", "Running", "Completed")
    wire.restart()
    again = wire.job()
    again.up(job_inputs(wait="completed"))
    assert again.outputs["status"] == "Completed"


def test_a_gate_may_be_put_before_a_run_that_exists(wire: Wire, arm: FakeArm) -> None:
    job = submit(wire, "none")
    arm.set_status(job.id, "Running", "Completed")
    assert job.up(job_inputs(wait="completed")) == "update"
    assert job.outputs["status"] == "Completed"


def test_a_record_that_vanishes_while_it_is_waited_for_is_no_success(wire: Wire, arm: FakeArm) -> None:
    job = submit(wire, "none")
    arm.jobs.clear()
    with pytest.raises(Refused, match=r"record of run .* is gone"):
        job.up(job_inputs(wait="completed"))
    assert job.outputs["gone"] is True
    assert arm.runs_started() == 1


def test_a_gate_that_was_passed_stays_open_when_the_record_vanishes(wire: Wire, arm: FakeArm) -> None:
    arm.script = ("Completed",)
    job = submit(wire, "completed")
    arm.jobs.clear()
    job.refresh()
    assert job.outputs["gone"] is True
    assert job.up(job_inputs(wait="completed")) == "same"


def test_the_limit_of_the_person_ends_the_wait_and_not_the_run(wire: Wire, arm: FakeArm) -> None:
    arm.script = ("Running",)
    job = wire.job()
    with pytest.raises(Refused, match="still Running after"):
        job.up(job_inputs(wait="completed"), timeout=0.05)
    assert job.id
    assert arm.cancelled == []
    arm.set_status(job.id, "Completed")
    assert job.up(job_inputs(wait="completed")) == "update"


def test_the_engine_can_interrupt_a_wait_and_the_next_up_goes_on_waiting(wire: Wire, arm: FakeArm) -> None:
    arm.script = ("Running",)
    job = wire.job()
    failed: list[Refused] = []

    def up() -> None:
        try:
            job.up(job_inputs(wait="completed"))
        except Refused as error:
            failed.append(error)

    thread = threading.Thread(target=up)
    thread.start()
    while not arm.jobs:
        thread.join(0.01)
    wire.call("Cancel", empty_pb2.Empty())
    thread.join()
    assert "interrupted" in str(failed[0])
    assert job.id
    wire.restart()
    arm.set_status(job.id, "Completed")
    job.up(job_inputs(wait="completed"))
    assert arm.runs_started() == 1
    assert arm.cancelled == []


def test_a_wait_survives_an_interruption_of_the_network(wire: Wire, arm: FakeArm, log: Log) -> None:
    arm.script = ("Queued", "Running", "Running", "Completed")
    for _ in range(2):
        arm.fail("GET", "/jobs/", 503)
    assert submit(wire, "completed").outputs["status"] == "Completed"


@for_each("status", [*sorted(TERMINAL), "Queued", "Running", "NotResponding", "Paused", "Anything"])
def test_every_status_has_one_meaning(status: str) -> None:
    assert verdict(Wait.NONE, status) is RunVerdict.SATISFIED
    assert (verdict(Wait.COMPLETED, status) is RunVerdict.PENDING) == is_active(status)
    assert (verdict(Wait.COMPLETED, status) is RunVerdict.SATISFIED) == (status == "Completed")
    assert (verdict(Wait.STARTED, status) is RunVerdict.SATISFIED) == (status in {"Completed", "Running"})
