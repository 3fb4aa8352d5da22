from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from amlstack.catalog import sizes
from amlstack.sandbox import scheduling
from tests.support.rows import for_each
from tests.support.runner.runner_lab import CLUSTER, ML, WORKSPACE, Lab

if TYPE_CHECKING:
    from amlstack.catalog.sizes import Size

SIZE = "Standard_ND96asr_v4"
OTHER = f"{WORKSPACE}/computes/other"


def size(name: str = SIZE) -> Size:
    found = sizes.get(name)
    assert found is not None
    return found


def cluster(lab: Lab, identity: str = CLUSTER, *, vm_size: str = SIZE, idle: str = "PT1H") -> None:
    scale = {"minNodeCount": 0, "maxNodeCount": 4, "nodeIdleTimeBeforeScaleDown": idle}
    body = {"properties": {"computeType": "AmlCompute", "properties": {"vmSize": vm_size, "scaleSettings": scale}}}
    lab.store.resources.put(identity, f"{ML}/workspaces/computes", WORKSPACE, body)


@for_each(
    "fields, vcpus",
    [
        ("Standard NDASv4_A100 Family=192", 192),
        ("standardNDASv4_A100Family = 192", 192),
        ("Standard NCADSA100v4 Family=24, Standard NDASv4_A100 Family=96", 96),
        ("Standard NCADSA100v4 Family=24", None),
        ("", None),
    ],
)
def test_the_quota_of_a_family(fields: str, vcpus: int | None) -> None:
    assert scheduling.limit(size(), {scheduling.VARIABLE: fields}) == vcpus


@for_each("fields", ["192", "Standard NDASv4_A100 Family", "Standard NDASv4_A100 Family=many", "=3", "ND=3"])
def test_a_wrong_quota_is_refused(fields: str) -> None:
    with pytest.raises(ValueError, match="Standard NDASv4_A100 Family=192"):
        scheduling.limit(size(), {scheduling.VARIABLE: fields})


def test_a_job_beyond_the_whole_quota_fails_with_the_services_words(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(scheduling.VARIABLE, f"{size().family}=192")
    cluster(lab)
    job = lab.run(lab.job("true", nodes=3))
    assert job.status == "Failed"
    assert job.error is not None
    assert job.error.code == "JobNodeCountExceedsCoreQuota"
    assert job.error.message.startswith(
        f"The specified subscription has a {size().family} vCPU quota of 192 and is less than the requested job node "
        "count of 3 which maps to 288 vCPUs."
    )
    assert lab.store.nodes.of(CLUSTER) == ()


def test_a_serverless_job_is_held_against_the_quota_too(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(scheduling.VARIABLE, f"{size().family}=96")
    resources = {"instanceCount": 2, "instanceType": SIZE}
    job = lab.run(lab.job("true", computeId=None, resources=resources))
    assert job.error is not None
    assert job.error.code == "JobNodeCountExceedsCoreQuota"
    resources = {"instanceCount": 1, "instanceType": SIZE}
    assert lab.run(lab.job("true", name="fits", computeId=None, resources=resources)).status == "Completed"


def test_what_fits_the_quota_runs_and_other_families_have_none(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(scheduling.VARIABLE, f"{size().family}=192")
    cluster(lab)
    cluster(lab, OTHER, vm_size="Standard_ND40rs_v2")
    first, second = lab.job("true", name="first", nodes=2), lab.job("true", name="second", nodes=4, computeId=OTHER)
    lab.run(first, second)
    assert {lab.store.jobs[name].status for name in (first, second)} == {"Completed"}


def test_a_job_waits_while_another_clusters_nodes_use_the_quota(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(scheduling.VARIABLE, f"{size().family}=192")
    cluster(lab, idle="PT0S")
    cluster(lab, OTHER)
    pipe = lab.pipe()
    first = lab.job(f"cat {pipe}", name="first")
    second = lab.job("true", name="second", nodes=2, computeId=OTHER)

    async def go() -> None:
        await lab.drive(lambda: lab.store.jobs[second].status == "Queued" and lab.store.jobs[first].nodes == (0,))
        assert lab.store.nodes.of(OTHER) == ()
        writing = asyncio.create_task(asyncio.to_thread(pipe.write_text, "go"))  # the first runs until then
        await lab.drive(lambda: lab.ended(first, second))
        await writing

    asyncio.run(go())
    assert {lab.store.jobs[name].status for name in (first, second)} == {"Completed"}
    assert lab.store.nodes.of(CLUSTER) == ()
