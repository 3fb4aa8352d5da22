"""The state of a job beside its inputs: the engine writes all of it after every step of every resource."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.provider.provider_wire import job_inputs

if TYPE_CHECKING:
    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Wire

INPUTS_ALONE = {"declaration", "codeFiles"}
GIVEN: dict[str, Any] = job_inputs(codeHash="1" * 64, codeFiles={"train.py": "a"})


def test_outputs_do_not_repeat_what_only_the_inputs_need(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    assert job.preview(GIVEN).keys() >= INPUTS_ALONE, "a preview shows all that there will be"
    job.up(GIVEN)
    assert job.inputs.keys() >= INPUTS_ALONE
    assert not job.outputs.keys() & INPUTS_ALONE
    before = dict(job.outputs)
    job.refresh()
    assert job.outputs == before
    body = {"properties": {**GIVEN["body"]["properties"], "displayName": "another"}}
    assert job.up({**GIVEN, "body": body}) == "update"
    assert not job.outputs.keys() & INPUTS_ALONE
    assert arm.runs_started() == 1
