"""A cluster declared for single-node jobs is excused from InfiniBand; no job across nodes runs on it, in any form."""

from __future__ import annotations

from datetime import date
from typing import Any

from pulumi_policy.proxy import UNKNOWN_OBJECT_VALUE

from policies.gate import Gate, read
from tests.support.policies.pack_subjects import COMPUTE, WORKSPACE, cluster, command, own, pack, seen, stack_of
from tests.support.policies.showing import SIZE_RULES_ALONE, TODAY, request, shown
from tests.support.rows import for_each

PROMISED = {**cluster(vmSize="Standard_NC96ads_A100_v4"), "tags": {"amlstack:single_node_jobs": "true"}}
ON_IT = f"{WORKSPACE}/computes/train"
STEP = {"type": "command", "command": "x", "resources": {"instance_count": 8}}
BODIES: dict[str, dict[str, Any]] = {
    "command": command(resources={"instanceCount": 8, "shmSize": "950g"}),
    "sweep": {"jobType": "Sweep", "computeId": ON_IT, "resources": {"instanceCount": 8}, "trial": {"command": "x"}},
    "step": {"jobType": "Pipeline", "jobs": {"one": {**STEP, "computeId": ON_IT}}},
    "step-by-default": {"jobType": "Pipeline", "settings": {"default_compute": ON_IT}, "jobs": {"one": STEP}},
}
FORMS: dict[str, Any] = {
    "own": ("amlstack:jobs:Job", own),
    "own-schedule": (
        "amlstack:schedules:Schedule",
        lambda body: {"body": {"properties": {"action": {"jobDefinition": body}}}},
    ),
    "azure-native": ("azure-native:machinelearningservices:Job", lambda body: {"properties": body}),
    "versioned": ("azure-native:machinelearningservices/v20250901:Job", lambda body: {"jobBaseProperties": body}),
    "schedule": (
        "azure-native:machinelearningservices:Schedule",
        lambda body: {"properties": {"action": {"jobDefinition": body}}},
    ),
    "generic": (
        "azure-native:resources:Resource",
        lambda body: {
            "resourceProviderNamespace": "Microsoft.MachineLearningServices",
            "resourceType": "workspaces/jobs",
            "properties": body,
        },
    ),
}


@for_each("form", FORMS)
@for_each("body", BODIES)
def test_a_job_across_nodes_is_refused_on_a_cluster_promised_for_single_node_jobs(form: str, body: str) -> None:
    token, wrap = FORMS[form]
    judge = pack(SIZE_RULES_ALONE)

    assert seen(judge, COMPUTE, PROMISED) == []
    assert seen(judge, token, wrap(BODIES[body])) == ["mandatory sriov-fabric"]


def test_the_declaration_gate_gives_the_same_verdict() -> None:
    gate = Gate(read(None)[0], TODAY)
    gate.judge(COMPUTE, "train", PROMISED)

    found = gate.judge("amlstack:jobs:Job", "run", own(BODIES["command"]))

    assert [one.code for one in found] == ["sriov-fabric"]
    assert found[0].where == "body.properties.resources.instanceCount"
    assert "wants 8 nodes of the cluster `Train`, which is declared for single-node jobs only" in found[0].message


def test_a_job_shown_before_its_cluster_is_judged_with_the_stack() -> None:
    judge = pack(SIZE_RULES_ALONE, date(2026, 8, 1))
    job = own(BODIES["command"])

    assert seen(judge, "amlstack:jobs:Job", job) == []
    assert seen(judge, COMPUTE, PROMISED) == []
    assert [(level, code) for level, code, _ in stack_of(judge, ("amlstack:jobs:Job", job), (COMPUTE, PROMISED))] == [
        ("mandatory", "sriov-fabric")
    ]


def test_a_job_that_was_judged_on_its_cluster_is_not_judged_again_with_the_stack() -> None:
    judge = pack(SIZE_RULES_ALONE)
    job = own(BODIES["command"])
    judge.Analyze(request(COMPUTE, PROMISED), None)

    assert len(shown(judge.Analyze(request("amlstack:jobs:Job", job), None))) == 1
    assert stack_of(judge, (COMPUTE, PROMISED), ("amlstack:jobs:Job", job)) == []


def test_a_promise_that_is_not_known_yet_waits() -> None:
    judge = pack(SIZE_RULES_ALONE)
    judge.Analyze(request(COMPUTE, {**PROMISED, "tags": UNKNOWN_OBJECT_VALUE}), None)

    assert seen(judge, "amlstack:jobs:Job", own(BODIES["command"])) == ["advisory checked-at-up"]
