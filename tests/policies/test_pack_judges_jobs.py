"""Jobs in every form are judged by the cluster that they run on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_OBJECT_VALUE, UNKNOWN_STRING_VALUE

from amlstack.catalog import sizes
from amlstack.catalog.prices import Price
from tests.support.policies.pack_subjects import COMPUTE, ENVIRONMENT, cluster, command, own, pack, seen
from tests.support.policies.showing import TODAY
from tests.support.rows import for_each


@for_each("change, expected", [
        ({"distribution": {"processCountPerInstance": 16}}, ["mandatory processes-beyond-gpus"]),
        ({"distribution": {"processCountPerInstance": 4}}, ["advisory gpus-idle"]),
        ({"environmentVariables": {"NCCL_IB_DISABLE": "1"}}, ["mandatory fabric-switched-off"]),
        ({"command": "NCCL_NET=Socket python t.py"}, ["mandatory fabric-switched-off"]),
        ({"resources": {"instanceCount": 2, "shmSize": "950g", "dockerArgs": "-e NCCL_IB_DISABLE=1"}},
         ["mandatory fabric-switched-off"]),
        ({"resources": {"instanceCount": 2, "shmSize": "950g", "dockerArgsList": ["-e", "NCCL_IB_DISABLE=1"]}},
         ["mandatory fabric-switched-off"]),
        ({"resources": {"instanceCount": 2}}, ["advisory shared-memory"]),
        ({"limits": {}}, ["advisory job-timeout"]),
        ({"environmentId": ENVIRONMENT.replace("versions/7", "labels/latest")}, ["advisory environment-pinned"]),
        ({"environmentVariables": {"NCCL_IB_DISABLE": UNKNOWN_STRING_VALUE}}, ["advisory checked-at-up"]),
        ({"limits": UNKNOWN_OBJECT_VALUE}, ["advisory checked-at-up"]),
        ({"environmentVariables": UNKNOWN_OBJECT_VALUE}, ["advisory checked-at-up"]),
])  # fmt: skip
@for_each("form", ["command", "trial", "step", "scheduled", "own schedule"])
def test_a_job_on_a_cluster_of_the_stack_is_judged_by_its_size_in_every_form(
    change: dict[str, Any], expected: list[str], form: str
) -> None:
    judge = pack()
    assert seen(judge, COMPUTE, cluster()) == []
    job = command(**change)
    token, props = {
        "command": ("amlstack:jobs:Job", own(job)),
        "trial": ("amlstack:jobs:Job", own({"jobType": "Sweep", "trial": job})),
        "step": (
            "azure-native:machinelearningservices:Job",
            {"properties": {"jobType": "Pipeline", "jobs": {"a": job}}},
        ),
        "scheduled": (
            "azure-native:machinelearningservices:Schedule",
            {"properties": {"action": {"jobDefinition": job}}},
        ),
        "own schedule": ("amlstack:schedules:Schedule", own({"action": {"jobDefinition": job}})),
    }[form]

    assert seen(judge, token, props) == expected


def test_what_a_schedule_of_ours_starts_is_judged() -> None:
    judge = pack()
    seen(judge, COMPUTE, cluster())
    scheduled = own({"action": {"jobDefinition": command(environmentVariables={"NCCL_IB_DISABLE": "1"})}})

    assert seen(judge, "amlstack:schedules:Schedule", scheduled) == ["mandatory fabric-switched-off"]


@pytest.mark.parametrize(
    ("limits", "cost"),
    [
        ({"timeout": "PT10H"}, 8000),
        ({"timeout": "PT10H", "maxConcurrentTrials": 2}, 4000),
        ({"timeout": "PT10H", "maxConcurrentTrials": 2, "trialTimeout": "PT1H"}, 800),
        ({"maxConcurrentTrials": 3, "trialTimeout": "PT1H"}, 800),
        ({"maxConcurrentTrials": 100, "trialTimeout": "PT1H"}, 800),
    ],
)
def test_a_sweep_costs_what_its_trials_cost_at_once(
    limits: dict[str, Any], cost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = sizes.get("Standard_ND96isr_H100_v5")
    assert size is not None
    known = {size.name.lower(): replace(size, prices=(Price(100.0, "westeurope", TODAY, "made up"),))}
    monkeypatch.setattr(sizes, "by_lower_name", lambda: known)
    trial = {"command": "x", "resources": {"instanceType": size.name, "instanceCount": 2, "shmSize": "950g"}}
    sweep = {"jobType": "Sweep", "limits": {"maxTotalTrials": 4, **limits}, "trial": trial}

    assert "mandatory cost-per-job" not in seen(pack({"cost-per-job": {"usd": cost}}), *_job(sweep))
    assert "mandatory cost-per-job" in seen(pack({"cost-per-job": {"usd": cost - 1}}), *_job(sweep))


def _job(properties: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "amlstack:jobs:Job", own(properties)


def test_a_job_on_an_unknown_cluster_is_judged_by_rules_that_need_no_size() -> None:
    job = command(environmentVariables={"NCCL_IB_DISABLE": "1"}, limits={})

    found = seen(pack(), "amlstack:jobs:Job", own(job))

    assert found == ["mandatory fabric-switched-off", "advisory job-timeout"]


def test_jobs_on_low_priority_nodes_need_a_mounted_output() -> None:
    judge = pack()
    seen(judge, COMPUTE, cluster(vmPriority="LowPriority"))

    assert seen(judge, "amlstack:jobs:Job", own(command())) == ["advisory spot-checkpoint"]
    mounted = command(outputs={"c": {"mode": "ReadWriteMount"}})
    assert seen(judge, "amlstack:jobs:Job", own(mounted)) == []
