"""The pack finds the sizes in every form of a resource and judges them by the checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pulumi_policy.proxy import (
    UNKNOWN_NUMBER_VALUE,
    UNKNOWN_OBJECT_VALUE,
    UNKNOWN_STRING_VALUE,
)

from tests.support.rows import for_each

if TYPE_CHECKING:
    from collections.abc import Callable

    Analyze = Callable[[str, dict[str, Any]], list[tuple[str, str, str]]]

CLUSTER_ID = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w/computes/train"
COMPUTE = "azure-native:machinelearningservices:Compute"
COMPUTE_TOKENS = [
    COMPUTE,
    "azure-native:machinelearningservices/v20250901:Compute",
    "azure-native:machinelearningservices/v20240401preview:Compute",
    "azure-native_machinelearningservices_v20251201:machinelearningservices:Compute",
    "azure-native:machinelearningservices/v20181119:MachineLearningCompute",
]
OWN_JOB = "amlstack:jobs:Job"
JOB = "azure-native:machinelearningservices:Job"
SECRET = "1b47061264138c4ac30d75fd1eb44270"  # the engine's mark of a secret value
SIGNATURE = "4dabf18193072939515e22adb298388d"


def compute(size: Any, nodes: Any = 4, tags: Any = None, kind: Any = "AmlCompute") -> dict[str, Any]:
    return {
        "resourceGroupName": "g",
        "workspaceName": "w",
        "properties": {
            "computeType": kind,
            "properties": {"vmSize": size, "scaleSettings": {"minNodeCount": 0, "maxNodeCount": nodes}},
        },
        "tags": tags or {},
    }


def job(size: Any, nodes: Any = 2, **more: Any) -> dict[str, Any]:
    return {"jobType": "Command", "command": "x", "resources": {"instanceType": size, "instanceCount": nodes}, **more}


def own(properties: Any) -> dict[str, Any]:
    return {"name": "train", "body": {"properties": properties}}


def names(verdict: list[tuple[str, str, str]]) -> list[str]:
    return [f"{level} {policy}" for level, policy, _ in verdict]


REFUSALS = [
    ("Standard_NC24r", 4, ["mandatory sriov-fabric", "mandatory size-retired"]),
    ("Standard_NC24r", 1, ["mandatory sriov-fabric", "mandatory size-retired"]),
    ("standard_nc24S_V3", 2, ["mandatory sriov-fabric", "mandatory size-retired"]),
    ("Standard_NC24s_v3", 1, ["mandatory size-retired"]),
    ("Standard_NC24rs_v3", 4, ["mandatory size-retired"]),
    ("Standard_NC96ads_A100_v4", 4, ["mandatory sriov-fabric"]),
    ("Standard_ND96isr_H100", 4, ["mandatory size-unknown"]),
    ("Standard_ND96isr_H100_v5", 64, []),
    ("Standard_D4s_v5", 8, []),
]


@for_each("token", COMPUTE_TOKENS)
@for_each("size, nodes, expected", REFUSALS)
def test_a_cluster_is_judged_under_every_token(
    analyze: Analyze, token: str, size: str, nodes: int, expected: list[str]
) -> None:
    assert names(analyze(token, compute(size, nodes))) == expected


@pytest.mark.parametrize(("size", "nodes", "expected"), REFUSALS)
def test_a_cluster_of_the_classic_provider_is_judged(
    analyze: Analyze, size: str, nodes: int, expected: list[str]
) -> None:
    props = {"vmSize": size, "vmPriority": "Dedicated", "scaleSettings": {"minNodeCount": 0, "maxNodeCount": nodes}}

    assert names(analyze("azure:machinelearning/computeCluster:ComputeCluster", props)) == expected


@pytest.mark.parametrize(("size", "nodes", "expected"), REFUSALS)
def test_a_cluster_written_as_a_generic_resource_is_judged(
    analyze: Analyze, size: str, nodes: int, expected: list[str]
) -> None:
    props = compute(size, nodes) | {
        "resourceProviderNamespace": "Microsoft.MachineLearningServices",
        "parentResourcePath": "workspaces/w",
        "resourceType": "computes",
    }

    assert names(analyze("azure-native:resources:Resource", props)) == expected
    assert (
        names(analyze("azure-native:resources:Resource", props | {"resourceType": "workspaces/computes"})) == expected
    )
    assert analyze("azure-native:resources:Resource", props | {"resourceProviderNamespace": "Microsoft.Compute"}) == []


@for_each("size, nodes, expected", REFUSALS)
@for_each(
    "token, wrap",
    [
        (OWN_JOB, own),
        (JOB, lambda properties: {"properties": properties}),
        (
            "azure-native:machinelearningservices/v20250901:Job",
            lambda properties: {"jobBaseProperties": properties},
        ),
        (
            "azure-native:machinelearningservices:Schedule",
            lambda properties: {"properties": {"action": {"jobDefinition": properties}}},
        ),
        (
            "azure-native:machinelearningservices/v20250901:Schedule",
            lambda properties: {"scheduleProperties": {"action": {"jobDefinition": properties}}},
        ),
        (
            "azure-native:resources:Resource",
            lambda properties: {
                "resourceProviderNamespace": "Microsoft.MachineLearningServices",
                "resourceType": "workspaces/jobs",
                "properties": properties,
            },
        ),
    ],
)
def test_a_serverless_job_is_judged_in_every_form(
    *, analyze: Analyze, token: str, wrap: Callable[[Any], Any], size: str, nodes: int, expected: list[str]
) -> None:
    assert names(analyze(token, wrap(job(size, nodes)))) == expected


def test_a_violation_reads_as_one_message(analyze: Analyze) -> None:
    (verdict,) = analyze(COMPUTE, compute("Standard_NC24rs_v3"))

    assert verdict[2] == (
        "properties.properties.vmSize: Standard_NC24rs_v3 was retired on 2025-09-30. Azure gives out no nodes of a "
        "retired size. Use Standard_ND40rs_v2 (8 x V100 32 GiB, EDR InfiniBand 100 Gb/s). [size-retired]"
    )


def test_a_sweep_s_trial_and_each_step_of_a_pipeline_are_judged(analyze: Analyze) -> None:
    sweep = {"jobType": "Sweep", "trial": {"command": "x", "resources": {"instanceType": "Standard_NC24rs_v3"}}}
    pipeline = {
        "jobType": "Pipeline",
        "jobs": {
            "good": {"type": "command", "resources": {"instance_type": "Standard_ND40rs_v2", "instance_count": 2}},
            "bad": {"type": "command", "resources": {"instance_type": "Standard_NC96ads_A100_v4", "instance_count": 2}},
            "inner": {"type": "pipeline", "jobs": {"worse": job("Standard_NC24r", 1)}},
        },
    }

    assert names(analyze(OWN_JOB, own(sweep))) == ["mandatory size-retired"]
    found = analyze(OWN_JOB, own(pipeline))
    assert [(policy, message.split(":")[0]) for _, policy, message in found] == [
        ("sriov-fabric", "body.properties.jobs.bad.resources.instance_type"),
        ("sriov-fabric", "body.properties.jobs.inner.jobs.worse.resources.instanceType"),
        ("size-retired", "body.properties.jobs.inner.jobs.worse.resources.instanceType"),
    ]


def test_a_job_inside_another_runs_on_the_outer_one_s_compute(analyze: Analyze) -> None:
    trial = {"resources": {"instanceType": "gpu-large"}}
    step = {"type": "command", "resources": {"instance_type": "gpu-large"}}

    assert analyze(OWN_JOB, own({"jobType": "Sweep", "computeId": CLUSTER_ID, "trial": trial})) == []
    for where in ({"computeId": CLUSTER_ID}, {"settings": {"default_compute": CLUSTER_ID}}):
        assert analyze(OWN_JOB, own({"jobType": "Pipeline", "jobs": {"a": step}, **where})) == []
    elsewhere = {"jobType": "Pipeline", "computeId": CLUSTER_ID, "jobs": {"a": {**step, "computeId": "serverless"}}}
    assert names(analyze(OWN_JOB, own(elsewhere))) == ["mandatory size-unknown"]


@pytest.mark.parametrize("compute_id", ["serverless", "azureml:serverless", "", " ", "azureml:", "/"])
def test_a_job_that_names_serverless_as_its_compute_is_judged(analyze: Analyze, compute_id: str) -> None:
    assert names(analyze(OWN_JOB, own(job("Standard_NC24r", computeId=compute_id)))) == [
        "mandatory sriov-fabric",
        "mandatory size-retired",
    ]


@pytest.mark.parametrize(
    ("token", "props"),
    [
        # On a compute, the instance type is that compute's affair (Kubernetes has its own names).
        (OWN_JOB, own(job("defaultinstancetype", computeId=CLUSTER_ID))),
        (OWN_JOB, own({"jobType": "Command", "command": "x", "computeId": CLUSTER_ID})),
        (OWN_JOB, own({"jobType": "Command", "command": "x"})),
        (OWN_JOB, own({"jobType": "Spark", "resources": {"instanceType": "standard_e8s_v3"}})),
        (OWN_JOB, {}),
        (COMPUTE, {}),
        (COMPUTE, compute("whatever", kind="Kubernetes")),
        ("azure-native:machinelearningservices:Workspace", {"properties": {"vmSize": "Standard_NC24r"}}),
        ("random:index/randomString:RandomString", {"length": 4}),
        ("pulumi:pulumi:Stack", {}),
    ],
)
def test_what_asks_for_no_training_size_is_left_alone(analyze: Analyze, token: str, props: dict[str, Any]) -> None:
    assert analyze(token, props) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("true", []),
        ("True", []),
        ("false", ["mandatory sriov-fabric"]),
        ("", ["mandatory sriov-fabric"]),
    ],
)
def test_a_cluster_tagged_for_single_node_jobs_may_have_gpus_without_infiniband(
    analyze: Analyze, value: str, expected: list[str]
) -> None:
    tags = {"amlstack:single_node_jobs": value}

    assert names(analyze(COMPUTE, compute("Standard_NC96ads_A100_v4", tags=tags))) == expected
    assert "mandatory sriov-fabric" in names(analyze(COMPUTE, compute("Standard_NC24r", tags=tags)))


def test_the_tag_does_nothing_for_a_job(analyze: Analyze) -> None:
    props = own(job("Standard_NC96ads_A100_v4", tags={"amlstack:single_node_jobs": "true"}))

    assert names(analyze(OWN_JOB, props)) == ["mandatory sriov-fabric"]


def test_secret_values_are_judged_like_others(analyze: Analyze) -> None:
    secret = {SIGNATURE: SECRET, "value": "Standard_NC24rs_v3"}

    assert names(analyze(COMPUTE, compute(secret))) == ["mandatory size-retired"]


def test_a_number_may_be_written_as_text(analyze: Analyze) -> None:
    assert names(analyze(COMPUTE, compute("Standard_NC96ads_A100_v4", nodes="4"))) == ["mandatory sriov-fabric"]
    assert analyze(COMPUTE, compute("Standard_NC96ads_A100_v4", nodes="1")) == []


SIZE = "properties.properties.vmSize"
MAXIMUM = "properties.properties.scaleSettings.maxNodeCount"


@pytest.mark.parametrize(
    ("props", "missing", "rules"),
    [
        (compute(UNKNOWN_STRING_VALUE), SIZE, "sriov-fabric, size-unknown and size-retired are"),
        (compute("Standard_NC96ads_A100_v4", UNKNOWN_NUMBER_VALUE), MAXIMUM, "sriov-fabric is"),
        (compute("Standard_NC96ads_A100_v4", tags=UNKNOWN_OBJECT_VALUE), "tags", "sriov-fabric is"),
    ],
)
def test_a_value_unknown_at_preview_is_reported(
    analyze: Analyze, props: dict[str, Any], missing: str, rules: str
) -> None:
    message = f"{SIZE}: {missing} is not known before the update. {rules} checked at up. [checked-at-up]"

    assert analyze(COMPUTE, props) == [("advisory", "checked-at-up", message)]


def test_an_unknown_value_that_decides_nothing_is_not_reported(analyze: Analyze) -> None:
    assert analyze(COMPUTE, compute("Standard_ND40rs_v2", UNKNOWN_NUMBER_VALUE, UNKNOWN_OBJECT_VALUE)) == []


def test_an_unknown_number_of_nodes_does_not_hide_what_is_certain(analyze: Analyze) -> None:
    assert names(analyze(COMPUTE, compute("Standard_NC24r", UNKNOWN_NUMBER_VALUE))) == [
        "mandatory sriov-fabric",
        "mandatory size-retired",
    ]
    assert names(analyze(COMPUTE, compute("Standard_NC24s_v3", UNKNOWN_NUMBER_VALUE))) == [
        "mandatory size-retired",
        "advisory checked-at-up",
    ]


@pytest.mark.parametrize(
    "props",
    [
        {"properties": UNKNOWN_OBJECT_VALUE},
        {"properties": {"computeType": "AmlCompute", "properties": UNKNOWN_OBJECT_VALUE}},
        compute(UNKNOWN_STRING_VALUE, kind=UNKNOWN_STRING_VALUE),
    ],
)
def test_a_cluster_unknown_as_a_whole_is_reported_and_not_passed(analyze: Analyze, props: dict[str, Any]) -> None:
    assert names(analyze(COMPUTE, props)) == ["advisory checked-at-up"]


@pytest.mark.parametrize(
    "properties",
    [
        UNKNOWN_OBJECT_VALUE,
        job(UNKNOWN_STRING_VALUE),
        job("Standard_NC96ads_A100_v4", UNKNOWN_NUMBER_VALUE),
        job("Standard_NC24r", computeId=UNKNOWN_STRING_VALUE),
        {"jobType": "Command", "resources": UNKNOWN_OBJECT_VALUE},
        {"jobType": "Pipeline", "jobs": UNKNOWN_OBJECT_VALUE},
        {"jobType": "Pipeline", "jobs": {"step": UNKNOWN_OBJECT_VALUE}},
        {"jobType": "Sweep", "trial": UNKNOWN_OBJECT_VALUE},
        job("Standard_NC96ads_A100_v4", "${{parent.inputs.nodes}}"),
        job("${{parent.inputs.size}}"),
    ],
)
def test_a_job_that_cannot_be_judged_yet_is_reported_once_and_not_passed(analyze: Analyze, properties: Any) -> None:
    assert names(analyze(OWN_JOB, own(properties))) == ["advisory checked-at-up"]


def test_a_job_on_a_cluster_that_is_not_known_yet_needs_no_report(analyze: Analyze) -> None:
    assert analyze(JOB, {"properties": {"jobType": "Command", "computeId": UNKNOWN_STRING_VALUE}}) == []


def test_an_expression_is_reported_as_undecided_rather_than_checked_later(analyze: Analyze) -> None:
    (verdict,) = analyze(OWN_JOB, own(job("${{parent.inputs.size}}")))

    assert verdict[2] == (
        "body.properties.resources.instanceType: body.properties.resources.instanceType is an expression that Azure "
        "resolves later. sriov-fabric, size-unknown and size-retired are not decided here. Write the value out to "
        "have it judged. [checked-at-up]"
    )


def test_a_cluster_that_declares_no_maximum_is_asked_for_one(analyze: Analyze) -> None:
    props = {"properties": {"computeType": "AmlCompute", "properties": {"vmSize": "Standard_NC96ads_A100_v4"}}}
    (verdict,) = analyze(COMPUTE, props)

    assert verdict[:2] == ("advisory", "checked-at-up")
    assert "scaleSettings.maxNodeCount is not declared" in verdict[2]


SCALE = {"scaleSettings": {"maxNodeCount": 64}}


@pytest.mark.parametrize(
    ("token", "wrap"),
    [
        (COMPUTE, lambda body: body),
        (
            "azure-native:resources:Resource",
            lambda body: {
                "resourceProviderNamespace": "Microsoft.MachineLearningServices",
                "resourceType": "workspaces/computes",
                **body,
            },
        ),
        (
            "azapi:index/resourceAction:ResourceAction",
            lambda body: {
                "type": "Microsoft.MachineLearningServices/workspaces/computes@2020-08-01",
                "resourceId": CLUSTER_ID,
                "method": "PATCH",
                "body": body,
            },
        ),
    ],
    ids=["azure-native", "generic", "azapi"],
)
@pytest.mark.parametrize(
    "properties",
    [{"computeType": "AmlCompute", "properties": SCALE}, {"properties": {**SCALE, "vmSize": None}}, SCALE],
    ids=["whole", "null", "old-version"],
)
def test_a_cluster_that_may_grow_says_its_size(
    analyze: Analyze, token: str, wrap: Callable[[Any], Any], properties: dict[str, Any]
) -> None:
    assert names(analyze(token, wrap({"properties": properties}))) == ["mandatory template-unresolved"]


def test_the_sizes_that_a_tuning_job_offers_are_judged(analyze: Analyze) -> None:
    def tuning(*offered: str, **more: Any) -> Any:
        return own({"jobType": "FineTuning", "resources": {"instanceTypes": list(offered)}, **more})

    assert names(analyze(OWN_JOB, tuning("Standard_ND96isr_H100_v5", "Standard_NC24rs_v3"))) == [
        "mandatory size-retired"
    ]
    assert analyze(OWN_JOB, tuning("Standard_ND96isr_H100_v5", "Standard_NC96ads_A100_v4")) == []
    assert analyze(OWN_JOB, tuning("gpu-large", computeId=CLUSTER_ID)) == []
