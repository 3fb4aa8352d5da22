"""The rules' view beyond one resource: networks, regions, budgets of the stack, the catalogue's age."""

from __future__ import annotations

from datetime import date, timedelta

from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from amlstack.catalog import sizes
from policies import checks
from policies.evaluation.bindings import BINDINGS
from tests.support.policies.pack_subjects import COMPUTE, cluster, command, own, pack, seen, stack_of


def test_every_registered_rule_is_bound_to_what_it_judges() -> None:
    bound = {binding.rule.code for binding in BINDINGS}

    assert bound | {rule.code for rule in checks.SIZE_RULES} | {"stack-budget"} == {rule.code for rule in checks.RULES}


def test_a_cluster_and_a_job_that_keep_every_rule_are_passed_without_a_word() -> None:
    judge = pack()

    assert seen(judge, COMPUTE, cluster()) == []
    assert seen(judge, "amlstack:jobs:Job", own(command())) == []


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
    assert seen(judge, token, {"location": "westeurope", "tags": {"team": UNKNOWN_STRING_VALUE}}) == []
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
    checked = max(size.checked for size in sizes.all_sizes())
    assert stack_of(pack({"catalogue-old": {"days": 10}}, checked + timedelta(days=10))) == []
    ((_, _, message),) = stack_of(pack({"catalogue-old": {"days": 10}}, checked + timedelta(days=11)))
    assert "was last checked in" in message
