"""The guard over a stack's active runs, and the id by which the stack knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amlstack.rpc import UNKNOWN, Secret
from tests.support.provider.fake_workspace import WORKSPACE
from tests.support.provider.provider_wire import Refused, Resource, job_inputs

if TYPE_CHECKING:
    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Log, Wire

CLUSTER, OTHER = f"{WORKSPACE}/computes/rdma", f"{WORKSPACE}/computes/other"


def guarded(on_edit: str = "refuse", **more: Any) -> dict[str, Any]:
    places = {"cluster:rdma": CLUSTER, "cluster:other": OTHER}
    known = {"workspace": WORKSPACE, "stackId": "s" * 32, "reachedBy": "identities and network"}
    return {**known, "jobs": {"mnist": on_edit}, **places, **more}


def guard(wire: Wire) -> Resource:
    return Resource(wire, "amlstack:runs:Guard", "runs")


def without(inputs: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in inputs.items() if key != name}


def running(wire: Wire, arm: FakeArm, on_edit: str = "refuse", **more: Any) -> tuple[Resource, Resource]:
    """A guard and a job whose run is active on the cluster ``rdma``."""
    one, job = guard(wire), wire.job()
    one.up(guarded(on_edit))
    job.up(job_inputs(onEdit=on_edit, stackId="s" * 32, **more))
    arm.set_status(job.id, "Running")
    return one, job


def test_an_unchanged_up_asks_the_service_nothing(wire: Wire, arm: FakeArm) -> None:
    one, _ = running(wire, arm)
    before = len(arm.asked)
    assert one.up(guarded()) == "same"
    assert one.up(guarded(jobs={"mnist": "cancel", "added": "refuse"}, **{"cluster:third": f"{CLUSTER}3"})) == "same"
    assert len(arm.asked) == before


LOSSES: dict[str, tuple[dict[str, Any], str]] = {
    "a replaced cluster": (guarded(**{"cluster:rdma": UNKNOWN}), "its cluster rdma would be replaced"),
    "a removed cluster": (without(guarded(), "cluster:rdma"), "its cluster rdma would be removed"),
    "a replaced workspace": (guarded(workspace=UNKNOWN), "its workspace, or what that stands on, would be replaced"),
    "a replaced identity": (
        guarded(reachedBy=UNKNOWN),
        "the identity or the network that it reaches its data by would be replaced",
    ),
    "a removed job": (guarded(jobs={}), "job mnist is no longer declared"),
}
losses = pytest.mark.parametrize(("inputs", "words"), LOSSES.values(), ids=LOSSES.keys())


@losses
def test_what_would_end_an_active_run_is_refused_by_name(
    wire: Wire, arm: FakeArm, inputs: dict[str, Any], words: str
) -> None:
    one, job = running(wire, arm)
    with pytest.raises(Refused, match=f"run {job.id} is Running, and {words}"):
        one.diff(inputs)
    arm.set_status(job.id, "Completed")
    assert one.diff(inputs).changes == one.diff(guarded()).changes


def test_another_cluster_is_none_of_the_runs_business(wire: Wire, arm: FakeArm) -> None:
    one, _ = running(wire, arm)
    assert not one.diff(guarded(**{"cluster:other": UNKNOWN})).replaces
    assert not one.diff(without(guarded(), "cluster:other")).replaces


@losses
def test_under_cancel_the_end_is_announced(
    wire: Wire, arm: FakeArm, log: Log, inputs: dict[str, Any], words: str
) -> None:
    one, job = running(wire, arm, "cancel")
    one.diff(inputs if inputs["jobs"] == {} else {**inputs, "jobs": {"mnist": "cancel"}})
    (announced,) = log.messages("info")[-1:]
    assert f"run {job.id} is Running and is ended" in announced
    assert words in announced


@losses
def test_keep_holds_for_a_removed_job_and_for_no_place(
    wire: Wire, arm: FakeArm, log: Log, inputs: dict[str, Any], words: str
) -> None:
    one, job = running(wire, arm, "keep")
    if inputs["jobs"]:
        with pytest.raises(Refused, match="`on_edit: keep` cannot hold there"):
            one.diff({**inputs, "jobs": {"mnist": "keep"}})
        return
    assert one.up(inputs) == "update"
    assert f"run {job.id} is Running and goes on (on_edit: keep)" in log.messages("info")[-1]
    job._delete(job.id, job.inputs, job.outputs)
    assert arm.job(job.id)["status"] == "Running"
    assert one.up(inputs) == "same"
    one.remove()
    assert arm.cancelled == [job.id]
    assert f"run {job.id} is Running and is ended: its stack is destroyed" in log.messages("info")


@pytest.mark.parametrize("loss", [name for name in LOSSES if name != "a removed job"])
def test_a_kept_run_holds_its_places_whatever_its_job_says_by_now(wire: Wire, arm: FakeArm, loss: str) -> None:
    one, job = running(wire, arm, "keep")
    kept = job.id
    assert job.up(job_inputs(onEdit="keep", stackId="s" * 32, rerun="again")) == "replace"
    arm.set_status(job.id, "Completed")
    inputs, place = LOSSES[loss]
    with pytest.raises(Refused, match=f"run {kept} is Running by an earlier `on_edit: keep`, and {place}"):
        one.diff({**inputs, "jobs": {"mnist": "cancel"}})


def test_a_stack_that_was_renamed_looks_after_what_it_ran_before_however_often_its_guard_is_updated(
    wire: Wire, arm: FakeArm
) -> None:
    one, job = running(wire, arm)
    one.urn = one.urn.replace(":dev::", ":renamed::")
    assert one.up(guarded(stackId=Secret("s" * 32))) == "update"
    with pytest.raises(Refused, match=f"run {job.id} is Running, and job mnist is no longer declared"):
        one.diff(guarded(stackId=Secret("s" * 32), jobs={}))


def test_a_guard_replaced_by_command_ends_nothing(wire: Wire, arm: FakeArm) -> None:
    one, _ = running(wire, arm)
    old = (one.id, one.inputs, one.outputs)
    wire.configure()
    one._create(one.check(guarded()), 0)
    one._delete(*old)
    assert arm.cancelled == []


def test_a_stack_that_had_no_guard_is_judged_once_by_what_runs(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs())  # by a program without an id of its stack
    arm.set_status(job.id, "Running")
    first = guard(wire)
    for wrong in (guarded(jobs={}), guarded(**{"cluster:rdma": UNKNOWN})):
        with pytest.raises(Refused, match=f"run {job.id} is Running"):
            first.preview(wrong)
    assert first.preview(guarded())["jobs"] == {"mnist": "refuse"}
    assert first.up(guarded()) == "create"


def test_runs_of_an_equally_named_stack_elsewhere_are_not_its_own(wire: Wire, arm: FakeArm) -> None:
    running(wire, arm)
    foreign = guard(wire)
    foreign.up(guarded(stackId="f" * 32))
    assert not foreign.diff(guarded(stackId="f" * 32, jobs={})).replaces
    foreign.remove()
    assert arm.cancelled == []


def test_the_id_of_a_stack_is_made_once_and_stays_unless_another_is_given(wire: Wire) -> None:
    record = Resource(wire, "amlstack:stack:Record", "stack")
    assert record.preview({})["stackId"] is UNKNOWN
    assert record.up({}) == "create"
    made = record.outputs["stackId"]
    assert len(made) == 32
    assert record.up({}) == "same"
    assert record.up({"stackId": made}) == "same"
    assert record.up({"stackId": "of-a-lost-state"}) == "replace"
    assert record.up({}) == "same"
    assert record.outputs["stackId"] == record.id == "of-a-lost-state"
    assert Resource(wire, "amlstack:stack:Record", "other").up({}) == "create"
    assert "stackId" in record.failures({"stackId": "no"})


@pytest.fixture
def at_work(arm: FakeArm, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Nodes at work by cluster, as the service shows a cluster."""
    counts: dict[str, int] = {}
    others = arm.answer

    def answer(method: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        name = path.rpartition("/computes/")[2]
        if method != "GET" or name not in counts:
            return others(method, path, query, body)
        inner = {"nodeStateCounts": {"runningNodeCount": counts[name], "idleNodeCount": 1}}
        return 200, {"properties": {"properties": inner}}

    monkeypatch.setattr(arm, "answer", answer)
    return counts


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (guarded(**{"cluster:other": UNKNOWN}), "the cluster would be replaced"),
        (without(guarded(), "cluster:other"), "the cluster would be removed"),
    ],
)
def test_a_cluster_at_work_for_somebody_else_is_not_given_up(
    wire: Wire, at_work: dict[str, int], inputs: dict[str, Any], words: str
) -> None:
    one = guard(wire)
    one.up(guarded())
    at_work["rdma"] = 4
    for count, nodes in ((2, "2 nodes are"), (1, "1 node is")):
        at_work["other"] = count
        with pytest.raises(Refused, match=f"{nodes} at work on cluster other .* did not start, and {words}"):
            one.diff(inputs)
    at_work["other"] = 0
    one.diff(inputs)


def test_a_cluster_with_an_own_run_is_judged_by_that(wire: Wire, arm: FakeArm, at_work: dict[str, int]) -> None:
    one, _ = running(wire, arm, "cancel")
    at_work["rdma"] = 2
    one.diff(guarded("cancel", **{"cluster:rdma": UNKNOWN}))
