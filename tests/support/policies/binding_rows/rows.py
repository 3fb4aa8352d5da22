"""A row of what each rule judges, and the resources that rows show."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies import checks
from tests.support import yaml_files
from tests.support.policies.pack_subjects import COMPUTE, cluster, command, own

if TYPE_CHECKING:
    from collections.abc import Iterator

JOB = "amlstack:jobs:Job"
CLASSIC = "azure:machinelearning/computeCluster:ComputeCluster"
WIDE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/Wide/subnets/n"
H100, NONE = "Standard_ND96isr_H100_v5", {"instanceCount": 2, "shmSize": "950g"}
CLUSTER_4 = (COMPUTE, cluster())
UNKNOWN_NODES = {"scaleSettings": {"minNodeCount": 0, "maxNodeCount": UNKNOWN_STRING_VALUE}}


class Row(NamedTuple):
    """Resources shown one after the other, the configuration, and whether the rule speaks about the last one."""

    code: str
    shown: tuple[tuple[str, dict[str, Any]], ...]
    config: dict[str, Any]
    speaks: bool
    waits: bool = False
    """True where it says that it has to wait."""


def row(
    code: str, *resources: tuple[str, dict[str, Any]], speaks: bool = True, waits: bool = False, **settings: Any
) -> Row:
    return Row(code, resources, {code: {"enforcementLevel": "mandatory", **settings}}, speaks, waits)


def documented() -> Iterator[Row]:
    """Each rule's example, and what stands instead."""
    for rule in checks.RULES:
        if rule in checks.SIZE_RULES or rule.code == "stack-budget":
            continue
        for text, speaks in ((rule.words.example, True), (rule.words.instead, False)):
            token = re.match(r"# ([\w:-]+)", text)
            assert token is not None
            yield row(rule.code, (token[1], yaml_files.load(text)), speaks=speaks, **rule.words.sample)


def on_cluster(**more: Any) -> tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]]]:
    return (COMPUTE, cluster()), (JOB, own(command(**more)))


def on_promised(promise: str = "true", **more: Any) -> tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]]]:
    """A job on a cluster that is declared, or not, for jobs of one node only; the size itself would do."""
    return (COMPUTE, {**cluster(), "tags": {"amlstack:single_node_jobs": promise}}), (JOB, own(command(**more)))


def nodes_in(region: str, **inner: Any) -> dict[str, Any]:
    """A cluster whose nodes are elsewhere than its workspace."""
    whole = cluster(**inner)
    return {**whole, "location": "westeurope", "properties": {**whole["properties"], "computeLocation": region}}


def serverless(size: str = H100, **more: Any) -> tuple[str, dict[str, Any]]:
    resources = {"instanceType": size, **NONE, **more.pop("resources", {})}
    return JOB, own({**command(**more), "computeId": None, "resources": resources})


def sweep(**limits: Any) -> tuple[str, dict[str, Any]]:
    trial = {"command": "x", "resources": {"instanceType": H100, **NONE}}
    return JOB, own({"jobType": "Sweep", "limits": {"maxTotalTrials": 4, **limits}, "trial": trial})


def classic(**more: Any) -> tuple[str, dict[str, Any]]:
    scale = {"minNodeCount": 0, "maxNodeCount": 4}
    return CLASSIC, {"vmSize": H100, "scaleSettings": scale, **more}
