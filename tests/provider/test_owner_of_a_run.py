"""Whose a run is: project, stack, and the stack's random id."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.rpc import UNKNOWN
from tests.support.provider.provider_wire import Refused, job_inputs

if TYPE_CHECKING:
    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Log, Wire


def test_an_equally_named_stack_elsewhere_is_refused_by_name_with_the_way_out(wire: Wire, arm: FakeArm) -> None:
    wire.job().up(job_inputs(stackId="mine"))
    wire.restart()
    theirs = wire.job()
    for deploy in (theirs.preview, theirs.up):
        with pytest.raises(Refused) as caught:
            deploy(job_inputs(stackId="theirs"))
        assert "belongs to another stack named train/dev: its id is mine, this stack's is theirs" in str(caught.value)
        assert "set `amlstack:stack_id` to mine" in str(caught.value)
    assert arm.runs_started() == 1
    again = wire.job()
    assert again.up(job_inputs(stackId="mine")) == "create", "the remedy is one"
    assert arm.runs_started() == 1


def test_its_destroy_ends_nothing_of_mine(wire: Wire, arm: FakeArm, log: Log) -> None:
    mine = wire.job()
    mine.up(job_inputs(stackId="mine"))
    arm.set_status(mine.id, "Running")
    wire.restart()
    theirs = wire.job(id=mine.id, inputs=job_inputs(stackId="theirs"), outputs={**mine.outputs, "stackId": "theirs"})
    theirs.remove()
    assert arm.cancelled == []
    assert "belongs to another stack named train/dev (its id is mine); it is left as it is" in log.messages("info")[-1]


def test_a_preview_before_the_stack_has_an_id_refuses_nothing(wire: Wire) -> None:
    wire.job().up(job_inputs(stackId="mine"))
    wire.restart()
    wire.job().preview(job_inputs(stackId=UNKNOWN))


def test_a_run_of_the_form_without_an_id_is_recognised(wire: Wire, arm: FakeArm) -> None:
    old = wire.job()
    old.up(job_inputs())
    arm.set_status(old.id, "Running")
    assert old.up(job_inputs(stackId="new")) == "same"
    wire.restart()
    assert wire.job().up(job_inputs(stackId="new")) == "create", "adopted"
    assert arm.runs_started() == 1
    old.remove()
    assert len(arm.cancelled) == 1


@pytest.mark.parametrize("status", ["Running", "Completed", "Failed"])
def test_an_adoption_is_announced_at_preview(wire: Wire, arm: FakeArm, log: Log, status: str) -> None:
    first = wire.job()
    first.up(job_inputs())
    arm.set_status(first.id, status)
    wire.restart()
    wire.job().preview(job_inputs())
    (message,) = log.messages("warning" if status == "Failed" else "info")
    assert f"run {first.id}, which is {status}, is adopted" in message
    assert "nothing is submitted" in message
    assert ("set `rerun` to another word" in message) is (status != "Running")
