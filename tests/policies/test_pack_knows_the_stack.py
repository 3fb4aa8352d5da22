"""What the rules see beyond a size: templates, the stack's clusters, exceptions, unknowns, the age."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from pulumi.runtime.proto import analyzer_pb2 as proto
from pulumi_policy.proxy import UNKNOWN_OBJECT_VALUE, UNKNOWN_STRING_VALUE
from showing import TODAY, request, shown

from amlstack.catalog import sizes
from policies import checks, config
from policies.bindings import BINDINGS
from policies.checks import stack_budget
from policies.server import Pack

COMPUTE = "azure-native:machinelearningservices:Compute"
DEPLOYMENT = "azure-native:resources:Deployment"
WORKSPACE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
ENVIRONMENT = "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/7"


def cluster(**inner: Any) -> dict[str, Any]:
    scale = {"minNodeCount": 0, "maxNodeCount": 4, "nodeIdleTimeBeforeScaleDown": "PT10M"}
    inner = {"vmSize": "Standard_ND96isr_H100_v5", "scaleSettings": scale, "enableNodePublicIp": False,
             "remoteLoginPortPublicAccess": "Disabled", **inner}  # fmt: skip
    return {
        "computeName": "train",
        "properties": {"computeType": "AmlCompute", "disableLocalAuth": True, "properties": inner},
    }


def command(**more: Any) -> dict[str, Any]:
    return {
        "jobType": "Command",
        "command": "python t.py",
        "environmentId": ENVIRONMENT,
        "computeId": f"{WORKSPACE}/computes/Train",
        "limits": {"timeout": "PT1H"},
        "resources": {"instanceCount": 2, "shmSize": "950g"},
        **more,
    }


def own(properties: Any) -> dict[str, Any]:
    return {"body": {"properties": properties}}


def seen(pack: Pack, token: str, props: dict[str, Any], name: str = "it") -> list[str]:
    return [f"{level} {code}" for level, code, _ in shown(pack.Analyze(request(token, props, name), None))]


def stack_of(pack: Pack, *resources: tuple[str, dict[str, Any]]) -> list[tuple[str, str, str]]:
    asked = [request(token, props) for token, props in resources]
    each = [
        proto.AnalyzerResource(type=one.type, urn=one.urn, name=one.name, properties=one.properties) for one in asked
    ]
    return shown(pack.AnalyzeStack(proto.AnalyzeStackRequest(resources=each), None))


def pack(said: dict[str, Any] | None = None, on: date = TODAY) -> Pack:
    return Pack("amlstack", "1.2.3", on, said)


def test_every_registered_rule_is_bound_to_what_it_judges() -> None:
    bound = {binding.rule.code for binding in BINDINGS}

    assert bound | {rule.code for rule in checks.SIZE_RULES} | {stack_budget.RULE.code} == {
        rule.code for rule in checks.RULES
    }


def test_a_cluster_and_a_job_that_keep_every_rule_are_passed_without_a_word() -> None:
    judge = pack()

    assert seen(judge, COMPUTE, cluster()) == []
    assert seen(judge, "amlstack:jobs:Job", own(command())) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
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
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["command", "trial", "step", "scheduled", "own schedule"])
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


@pytest.mark.parametrize(
    ("spec", "step", "expected"),
    [
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
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", [OWN_COMPONENT, AZURES_COMPONENT], ids=["own", "azure-native"])
def test_a_step_is_judged_with_the_component_that_it_runs(
    spec: dict[str, Any], step: dict[str, Any], expected: list[str], form: tuple[str, dict[str, Any], str]
) -> None:
    token, props, key = form
    judge = pack()
    assert seen(judge, COMPUTE, cluster()) == []
    assert seen(judge, token, {**props, key: component(**spec)}) == []

    assert seen(judge, "amlstack:jobs:Job", pipeline(**step)) == expected


def test_the_trial_of_a_sweep_step_is_judged_with_its_component() -> None:
    judge = pack()
    seen(judge, COMPUTE, cluster())
    token, props, key = OWN_COMPONENT
    seen(judge, token, {**props, key: component(command="NCCL_IB_DISABLE=1 python t.py")})
    sweep = {"type": "sweep", "componentId": None, "trial": {"componentId": COMPONENT_ID}}

    assert seen(judge, "amlstack:jobs:Job", pipeline(**sweep)) == ["mandatory fabric-switched-off"]


def test_a_step_of_a_component_that_nobody_showed_is_judged_by_what_it_says_itself() -> None:
    judge = pack()
    seen(judge, COMPUTE, cluster())
    variables = {"environment_variables": {"NCCL_IB_DISABLE": "1"}, "resources": {"instance_count": 2}}

    assert seen(judge, "amlstack:jobs:Job", pipeline(**variables, limits={})) == [
        "advisory shared-memory",
        "mandatory fabric-switched-off",
        "advisory job-timeout",
    ]


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
    known = {size.name.lower(): replace(size, price_per_hour=sizes.Price(100.0, "westeurope", TODAY, "made up"))}
    monkeypatch.setattr(sizes, "_by_lower_name", lambda: known)
    trial = {"command": "x", "resources": {"instanceType": size.name, "instanceCount": 2, "shmSize": "950g"}}
    sweep = {"jobType": "Sweep", "limits": {"maxTotalTrials": 4, **limits}, "trial": trial}

    assert "mandatory cost-per-job" not in seen(pack({"cost-per-job": {"usd": cost}}), *_job(sweep))
    assert "mandatory cost-per-job" in seen(pack({"cost-per-job": {"usd": cost - 1}}), *_job(sweep))


def _job(properties: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "amlstack:jobs:Job", own(properties)


def test_a_job_on_a_cluster_that_nobody_showed_is_judged_by_what_needs_no_size() -> None:
    job = command(environmentVariables={"NCCL_IB_DISABLE": "1"}, limits={})

    assert seen(pack(), "amlstack:jobs:Job", own(job)) == ["advisory job-timeout"]


def test_jobs_on_low_priority_nodes_need_a_mounted_output() -> None:
    judge = pack()
    seen(judge, COMPUTE, cluster(vmPriority="LowPriority"))

    assert seen(judge, "amlstack:jobs:Job", own(command())) == ["advisory spot-checkpoint"]
    mounted = command(outputs={"c": {"mode": "ReadWriteMount"}})
    assert seen(judge, "amlstack:jobs:Job", own(mounted)) == []


def arm(kind: str, props: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": kind, "name": "w/train", "apiVersion": "2025-12-01", **props, **more}


ML = "Microsoft.MachineLearningServices/workspaces"
RETIRED = cluster(vmSize="Standard_NC24rs_v3")


@pytest.mark.parametrize(
    "resources",
    [
        [arm(f"{ML}/computes", RETIRED)],
        {"symbolic": arm(f"{ML}/computes", RETIRED)},
        [arm(ML, {}, resources=[arm("computes", RETIRED)])],
        [{"type": "Microsoft.Resources/deployments", "name": "inner",
          "properties": {"template": {"resources": [arm(f"{ML}/computes", RETIRED)]}}}],
        [{"type": "Microsoft.Storage/storageAccounts", "name": "s"}, arm(f"{ML}/computes", RETIRED)],
    ],
    ids=["top", "symbolic", "child", "nested", "second"],
)  # fmt: skip
def test_an_arm_template_hides_nothing(resources: Any) -> None:
    found = seen(pack(), DEPLOYMENT, {"properties": {"template": {"resources": resources}}})

    assert found == ["mandatory size-retired"]


def test_what_a_template_does_not_say_is_said_to_be_undecided() -> None:
    size = cluster(vmSize="[parameters('size')]")
    template = {"properties": {"template": {"resources": [arm(f"{ML}/computes", size)]}}}
    linked = {"properties": {"templateLink": {"uri": "https://example.org/t.json"}}}

    assert seen(pack(), DEPLOYMENT, template) == ["advisory checked-at-up"]
    assert seen(pack(), DEPLOYMENT, linked) == ["advisory checked-at-up"]
    assert seen(pack(), DEPLOYMENT, {"properties": {"template": UNKNOWN_OBJECT_VALUE}}) == ["advisory checked-at-up"]


def test_images_are_judged_where_environments_are_registered() -> None:
    judge = pack({"environment-approved": {"images": ["mcr.microsoft.com"]}})
    expected = ["mandatory environment-approved", "advisory environment-pinned"]

    assert seen(judge, "amlstack:environments:Version", {"body": {"image": "ghcr.io/x"}}) == expected
    props = {"properties": {"image": "ghcr.io/x"}}
    assert seen(judge, "azure-native:machinelearningservices:EnvironmentVersion", props) == expected


def test_tags_and_regions_are_judged_on_every_azure_resource_with_a_place() -> None:
    judge = pack({"tags-required": {"required": ["team"]}, "region-approved": {"regions": ["westeurope"]}})
    token = "azure-native:storage:StorageAccount"

    assert seen(judge, token, {"location": "westeurope", "tags": {"team": "a"}}) == []
    assert seen(judge, token, {"location": "eastus"}) == ["mandatory region-approved", "mandatory tags-required"]
    assert seen(judge, token, {"location": UNKNOWN_STRING_VALUE, "tags": {"team": "a"}}) == ["advisory checked-at-up"]
    assert seen(pack(), token, {"location": "eastus"}) == []
    assert seen(judge, "random:index:RandomString", {"location": "eastus"}) == []


def test_a_network_of_the_stack_that_overlaps_infiniband_is_refused() -> None:
    judge = pack()
    network = {"virtualNetworkName": "train", "addressSpace": {"addressPrefixes": ["172.16.0.0/12"]}}
    subnet = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/Train/subnets/n"

    assert seen(judge, "azure-native:network:VirtualNetwork", network) == []
    assert seen(judge, COMPUTE, cluster(subnet={"id": subnet})) == ["mandatory subnet-overlap"]
    assert seen(judge, COMPUTE, cluster(subnet={"id": subnet.replace("Train", "other")})) == []
    assert seen(judge, COMPUTE, cluster(subnet={"id": UNKNOWN_STRING_VALUE})) == ["advisory checked-at-up"]


def test_the_classic_provider_s_switches_are_read_the_other_way_round() -> None:
    token = "azure:machinelearning/computeCluster:ComputeCluster"
    scale = {"minNodeCount": 0, "maxNodeCount": 4, "scaleDownNodesAfterIdleDuration": "PT10M"}
    good = {"vmSize": "Standard_ND96isr_H100_v5", "scaleSettings": scale, "nodePublicIpEnabled": False,
            "localAuthEnabled": False}  # fmt: skip

    assert seen(pack(), token, good) == []
    bad = {**good, "localAuthEnabled": True, "sshPublicAccessEnabled": True, "nodePublicIpEnabled": True}
    assert seen(pack(), token, bad) == ["advisory node-public-ip", "advisory ssh-closed", "advisory local-auth-off"]


WAIVER = {"rule": "size-retired", "resource": "old-*", "owner": "hpc", "reason": "Draining", "expires": "2026-08-01"}


@pytest.mark.parametrize(
    ("name", "on", "expected"),
    [
        ("old-1", TODAY, ["advisory size-retired"]),
        ("old-1", date(2026, 8, 2), ["mandatory size-retired"]),
        ("new-1", TODAY, ["mandatory size-retired"]),
    ],
)
def test_an_exception_counts_on_its_resources_until_its_day(name: str, on: date, expected: list[str]) -> None:
    judge = pack({"exception-expired": {"exceptions": [WAIVER]}}, on)

    assert seen(judge, COMPUTE, RETIRED, name) == expected
    expired = [(level, code) for level, code, _ in stack_of(judge)]
    assert expired == ([("mandatory", "exception-expired")] if on > TODAY else [])


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({**WAIVER, "owner": ""}, r"exceptions\[0\] lacks owner"),
        ({**WAIVER, "rule": "size-old"}, "no rule 'size-old'"),
        ({**WAIVER, "expires": "soon"}, "'soon' is no day"),
        ("size-retired", "lacks rule, resource"),
    ],
)
def test_an_exception_without_owner_reason_or_day_is_none(entry: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config.read({"exception-expired": {"exceptions": [entry]}})


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"node-cieling": "mandatory"}, "no rule 'node-cieling'"),
        ({"node-ceiling": "strict"}, "'strict' is no level"),
        ({"node-ceiling": {"node": 4}}, "no setting node. It has nodes"),
        ({"ssh-closed": {"node": 4}}, "no setting node. It has none"),
        ({"ssh-closed": 4}, "write a level, or an object of settings"),
        ({"node-ceiling": {"nodes": "many"}}, 'nodes is a whole number, 0 or more, not "many"'),
        ({"node-ceiling": {"nodes": 1.5}}, "nodes is a whole number, 0 or more, not 1.5"),
        ({"node-ceiling": {"nodes": True}}, "nodes is a whole number"),
        ({"cost-per-job": {"usd": -1}}, "usd is a number, 0 or more, not -1"),
        ({"region-approved": {"regions": "westeurope"}}, "regions is a list of texts"),
        ({"tags-required": {"required": [1]}}, "required is a list of texts"),
        ({"tags-required": {"required": ["a"], "values": ["a"]}}, "values is an object of texts"),
        ({"exception-expired": {"exceptions": {"rule": "x"}}}, "exceptions is a list"),
    ],
)
def test_a_wrong_configuration_says_what_is_wrong(said: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config.read(said)


def test_a_stack_is_judged_by_the_sum_of_its_clusters_and_serverless_jobs() -> None:
    judge = pack({"stack-budget": {"gpus": 48}})
    resources = {"instanceType": "Standard_ND96isr_H100_v5", "instanceCount": 2}
    serverless = {"jobType": "Command", "command": "x", "resources": resources}

    assert stack_of(judge, (COMPUTE, cluster()), ("amlstack:jobs:Job", own(command()))) == []
    assert stack_of(judge, (COMPUTE, cluster()), ("amlstack:jobs:Job", own(serverless))) == []
    ((level, code, message),) = stack_of(judge, (COMPUTE, cluster()), (COMPUTE, cluster()))
    assert (level, code) == ("mandatory", "stack-budget")
    assert "The stack may grow to 64 GPUs" in message
    unknown = stack_of(judge, (COMPUTE, cluster(vmSize=UNKNOWN_STRING_VALUE)))
    assert [(level, code) for level, code, _ in unknown] == [("advisory", "checked-at-up")]


def test_a_pack_older_than_the_newest_retirement_says_so() -> None:
    newest = max(size.retired for size in sizes.all_sizes() if size.retired)
    always = {"catalogue-old": {"days": 99999}}

    assert stack_of(pack(always, newest)) == []
    ((level, code, message),) = stack_of(pack(always, date(newest.year + 1, 1, 1)))
    assert (level, code) == ("advisory", "catalogue-old")
    assert f"Version 1.2.3 knows no retirement after {newest.isoformat()}" in message
    ((_, _, message),) = stack_of(pack({"catalogue-old": {"days": 10}}))
    assert "was last checked in" in message


def test_a_disabled_rule_is_silent_about_unknown_values_too() -> None:
    quiet = {rule.code: "disabled" for rule in config.ALL if rule not in checks.SIZE_RULES}

    assert seen(pack(quiet), COMPUTE, cluster(scaleSettings=UNKNOWN_OBJECT_VALUE)) == []
