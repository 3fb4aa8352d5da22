"""``after`` at the provider: nothing is submitted before what it comes after has completed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amlstack.rpc import UNKNOWN
from tests.support.provider.fake_workspace import WORKSPACE
from tests.support.provider.provider_wire import Refused, job_inputs

if TYPE_CHECKING:
    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Log, Resource, Wire


def train(wire: Wire, **more: Any) -> Resource:
    job = wire.job("train")
    job.up(job_inputs(name="train", **more))
    return job


def after(job: Resource, **changes: Any) -> list[dict[str, Any]]:
    return [{"job": "train", "run": job.outputs["jobId"], "status": job.outputs["status"], **changes}]


def test_a_job_is_submitted_when_what_it_comes_after_has_completed(wire: Wire, arm: FakeArm) -> None:
    arm.script = ("Queued", "Completed")
    first = train(wire, wait="completed", awaitedBy=["eval"])
    second = wire.job("eval")
    assert second.up(job_inputs(name="eval", after=after(first))) == "create"
    assert arm.runs_started() == 2
    assert second.up(job_inputs(name="eval", after=after(first))) == "same"
    assert "after" not in second.outputs


@pytest.mark.parametrize(
    ("end", "remedy"), [("Failed", "Set `rerun` of `train`"), ("Running", "together with `train`")]
)
def test_a_job_is_not_submitted_beside_one_that_has_not_completed(
    wire: Wire, arm: FakeArm, end: str, remedy: str
) -> None:
    arm.script = (end,)
    first, second = train(wire), wire.job("eval")
    with pytest.raises(Refused) as caught:
        second.up(job_inputs(name="eval", after=after(first, status="NotStarted")))
    for words in ("`eval` comes after `train`", f"is {end}", remedy, "out of its `after`"):
        assert words in str(caught.value)
    assert arm.runs_started() == 1
    assert not second.id


def test_a_status_of_long_ago_is_looked_at_again(wire: Wire, arm: FakeArm) -> None:
    arm.script = ("Completed",)
    first = train(wire)
    assert wire.job("eval").up(job_inputs(name="eval", after=after(first, status="Queued"))) == "create"


def test_a_record_that_is_gone_counts_as_it_was_last_seen(wire: Wire, arm: FakeArm) -> None:
    gone = {"job": "train", "run": f"{WORKSPACE}/jobs/train-0123456789"}
    with pytest.raises(Refused, match="gone from the workspace"):
        wire.job("eval").up(job_inputs(name="eval", after=[{**gone, "status": "Running"}]))
    assert wire.job("eval").up(job_inputs(name="eval", after=[{**gone, "status": "Completed"}])) == "create"


def test_a_failure_names_what_comes_after_and_the_way_out(wire: Wire, arm: FakeArm) -> None:
    arm.script = ("Queued", "Failed")
    with pytest.raises(Refused) as caught:
        train(wire, wait="completed", awaitedBy=["eval", "export"])
    for words in ("run train-", "ended Failed", "(`eval`, `export`)", "set `rerun` of `train`", "out of their `after`"):
        assert words in str(caught.value)


def test_a_preview_says_what_is_waited_for_and_knows_nothing_of_it_yet(wire: Wire, arm: FakeArm, log: Log) -> None:
    unknown = [{"job": "train", "run": UNKNOWN, "status": UNKNOWN}]
    wire.job("eval").preview(job_inputs(name="eval", after=unknown))
    assert log.messages("info") == ["submitted only once `train` has completed (`after`)"]
    assert arm.runs_started() == 0


def test_another_run_of_what_comes_before_runs_nothing_again(wire: Wire, arm: FakeArm) -> None:
    arm.script = ("Queued", "Completed")
    first, second = train(wire, wait="completed"), wire.job("eval")
    second.up(job_inputs(name="eval", after=after(first)))
    assert first.up(job_inputs(name="train", rerun="2", wait="completed")) == "replace"
    assert second.diff(second.check(job_inputs(name="eval", after=[{"job": "train", "run": UNKNOWN}]))).changes == 1
    assert second.up(job_inputs(name="eval", after=after(first))) == "same"
    assert arm.runs_started() == 3


def test_a_run_that_is_there_already_is_adopted_whatever_it_comes_after(wire: Wire, arm: FakeArm) -> None:
    arm.script = ("Queued", "Completed")
    first, lost = train(wire, wait="completed"), wire.job("eval")
    lost.up(job_inputs(name="eval", after=after(first)))
    again = wire.job("eval")
    assert again.up(job_inputs(name="eval", after=after(first, status="Failed"))) == "create"
    assert (again.id, arm.runs_started()) == (lost.id, 2)
