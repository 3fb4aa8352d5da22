"""Steps of pipelines are judged with the components that they run."""

from __future__ import annotations

from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from tests.support.policies.pack_subjects import COMPUTE, ENVIRONMENT, WORKSPACE, cluster, own, pack, seen
from tests.support.rows import for_each

COMPONENT_ID = f"{WORKSPACE}/components/trainer/versions/3"
OWN_COMPONENT = ("amlstack:components:Version", {"workspace": WORKSPACE, "name": "trainer", "version": "3"}, "body")
AZURES_COMPONENT = (
    "azure-native:machinelearningservices:ComponentVersion",
    {"workspaceName": "w", "name": "trainer", "version": "3"},
    "properties",
)


def component(**more: Any) -> dict[str, Any]:
    return {
        "componentSpec": {
            "type": "command",
            "command": "python t.py",
            "environment": f"azureml:{ENVIRONMENT}",
            "resources": {"instance_count": 2, "shm_size": "950g"},
            **more,
        }
    }


def pipeline(**step: Any) -> dict[str, Any]:
    step = {"type": "command", "componentId": COMPONENT_ID, "limits": {"timeout": "PT1H"}, **step}
    return own({"jobType": "Pipeline", "settings": {"default_compute": f"{WORKSPACE}/computes/train"},
                "jobs": {"a": step}})  # fmt: skip


@for_each("spec, step, expected", [
        ({}, {}, []),
        ({"command": "NCCL_IB_DISABLE=1 python t.py"}, {}, ["mandatory fabric-switched-off"]),
        ({}, {"environment_variables": {"NCCL_NET": "Socket"}}, ["mandatory fabric-switched-off"]),
        ({"distribution": {"type": "pytorch", "process_count_per_instance": 16}}, {},
         ["mandatory processes-beyond-gpus"]),
        ({"distribution": {"process_count_per_instance": 16}}, {"distribution": {"process_count_per_instance": 8}}, []),
        ({"environment": "azureml:mine@latest"}, {}, ["advisory environment-pinned"]),
        ({"resources": {"instance_count": 2}}, {}, ["advisory shared-memory"]),
        ({"resources": {"instance_count": 1}}, {"environment_variables": {"NCCL_NET": "Socket"}},
         ["advisory shared-memory"]),
        ({}, {"limits": {}}, ["advisory job-timeout"]),
])  # fmt: skip
@for_each("form", [OWN_COMPONENT, AZURES_COMPONENT])
def test_a_step_is_judged_with_the_component_that_it_runs(
    spec: dict[str, Any], step: dict[str, Any], expected: list[str], form: tuple[str, dict[str, Any], str]
) -> None:
    token, props, key = form
    judge = pack()
    assert seen(judge, COMPUTE, cluster()) == []
    assert seen(judge, token, {**props, key: component(**spec)}) == []

    assert seen(judge, "amlstack:jobs:Job", pipeline(**step)) == expected


@for_each(
    "reference",
    [
        "azureml:trainer:3",
        f"{COMPONENT_ID}/",
        COMPONENT_ID.replace("/components", "//components"),
        COMPONENT_ID.replace("trainer", "tr%61iner"),
        COMPONENT_ID.upper(),
        COMPONENT_ID.replace("versions/3", "labels/latest"),
        COMPONENT_ID.removesuffix("/versions/3"),
        "azureml:trainer@latest",
        " azureml:trainer:3",
    ],
)
def test_a_component_is_known_however_a_step_refers_to_it(reference: str) -> None:
    judge = pack()
    seen(judge, COMPUTE, cluster())
    token, props, key = OWN_COMPONENT
    seen(judge, token, {**props, key: component(command="NCCL_IB_DISABLE=1 python t.py")})

    assert seen(judge, "amlstack:jobs:Job", pipeline(componentId=reference)) == ["mandatory fabric-switched-off"]


def test_the_trial_of_a_sweep_step_is_judged_with_its_component() -> None:
    judge = pack()
    seen(judge, COMPUTE, cluster())
    token, props, key = OWN_COMPONENT
    seen(judge, token, {**props, key: component(command="NCCL_IB_DISABLE=1 python t.py")})
    sweep = {"type": "sweep", "componentId": None, "trial": {"componentId": COMPONENT_ID}}

    assert seen(judge, "amlstack:jobs:Job", pipeline(**sweep)) == ["mandatory fabric-switched-off"]


def test_a_step_of_an_unknown_component_is_judged_by_its_own_properties() -> None:
    judge = pack()
    seen(judge, COMPUTE, cluster())
    variables = {"environment_variables": {"NCCL_IB_DISABLE": "1"}, "resources": {"instance_count": 2}}

    assert seen(judge, "amlstack:jobs:Job", pipeline(**variables, limits={})) == [
        "advisory shared-memory",
        "mandatory fabric-switched-off",
        "advisory job-timeout",
    ]


@pytest.mark.parametrize("name", ["type", "componentId"])
def test_a_step_whose_kind_or_component_is_not_known_yet_is_judged_by_its_own_properties(name: str) -> None:
    judge = pack()
    seen(judge, COMPUTE, cluster())
    step = {"environment_variables": {"NCCL_IB_DISABLE": "1"}, "resources": {"instance_count": 2, "shm_size": "950g"}}

    found = seen(judge, "amlstack:jobs:Job", pipeline(**step, **{name: UNKNOWN_STRING_VALUE}))

    assert "mandatory fabric-switched-off" in found
