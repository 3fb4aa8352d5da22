"""Which fact of a resource each rule judges: rows of resources, and no condition in between that none of them holds."""

from __future__ import annotations

import ast
import copy
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from amlstack.catalog import sizes
from policies import checks
from policies.evaluation import binding, bindings, verdicts
from policies.evaluation.type_tokens import OWN_ENVIRONMENT
from policies.pack.server import Pack
from tests.support.policies.bend import Bend
from tests.support.policies.pack_subjects import COMPUTE, cluster, command, own
from tests.support.policies.showing import TODAY, request, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

JOB = "amlstack:jobs:Job"
CLASSIC = "azure:machinelearning/computeCluster:ComputeCluster"
WIDE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/Wide/subnets/n"
H100, NONE = "Standard_ND96isr_H100_v5", {"instanceCount": 2, "shmSize": "950g"}


class Row(NamedTuple):
    """Resources shown one after the other, the configuration, and whether the rule speaks about the last one."""

    code: str
    shown: tuple[tuple[str, dict[str, Any]], ...]
    config: dict[str, Any]
    speaks: bool
    waits: bool = False
    """Whether it says that it has to wait."""


def row(
    code: str, *resources: tuple[str, dict[str, Any]], speaks: bool = True, waits: bool = False, **settings: Any
) -> Row:
    return Row(code, resources, {code: {"enforcementLevel": "mandatory", **settings}}, speaks, waits)


def documented() -> Iterator[Row]:
    """Each rule's example, and what stands instead."""
    for rule in checks.RULES:
        if rule in checks.SIZE_RULES or rule.code == "stack-budget":
            continue
        for text, speaks in ((rule.example, True), (rule.instead, False)):
            token = re.match(r"# ([\w:-]+)", text)
            assert token is not None
            yield row(rule.code, (token[1], yaml.safe_load(text)), speaks=speaks, **rule.sample)


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


GB200, AGAIN = "Standard_ND128isr_NDR_GB200_v6", "torchrun --max_restarts 3 train.py"
CURATED = "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/7"
BASE = "mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04:20260701"
OURS = OWN_ENVIRONMENT, {"name": "Ours", "version": "ab12", "body": {"image": BASE}}
THEIRS = "azure-native:machinelearningservices:EnvironmentVersion", {
    "name": "ours", "version": "ab12", "properties": {"image": BASE},
}  # fmt: skip
OF_TORCH = {"image": "pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime"}
TORCH = OWN_ENVIRONMENT, {"name": "Ours", "version": "ab12", "body": OF_TORCH}
UNDER_CONDA = OWN_ENVIRONMENT, {**TORCH[1], "body": {**OF_TORCH, "condaFile": "dependencies: [pytorch]"}}
RTX = "Standard_NC144ds_xl_RTXPRO6000BSE_v6"
OUR_ID, OTHER_ID = (f"/subscriptions/s/workspaces/w/environments/ours/versions/{one}" for one in ("ab12", "cd34"))
ON_SPOT, ONE_NODE = (COMPUTE, cluster(vmPriority="LowPriority")), {"instanceCount": 1, "shmSize": "950g"}
OFF = {"environmentVariables": {"NCCL_IB_DISABLE": "1"}}
CLUSTER_4 = (COMPUTE, cluster())
UNKNOWN_NODES = {"scaleSettings": {"minNodeCount": 0, "maxNodeCount": UNKNOWN_STRING_VALUE}}
ROWS = [
    *documented(),
    # What is not configured is not judged, and waits for nothing.
    row("node-ceiling", (COMPUTE, cluster(**UNKNOWN_NODES)), speaks=False),
    row("node-ceiling", (COMPUTE, cluster(**UNKNOWN_NODES)), speaks=False, waits=True, nodes=4),
    row("node-ceiling", CLUSTER_4, nodes=3),
    row("node-ceiling", serverless(), nodes=1),
    row("node-ceiling", *on_cluster(), nodes=1, speaks=False),
    row("cluster-budget", CLUSTER_4, gpus=31),
    row("cluster-budget", serverless(), gpus=15),
    row("cluster-budget", serverless("Standard_ND96isr_H100"), gpus=15, speaks=False),
    row("cluster-budget", *on_cluster(), gpus=1, speaks=False),
    row("cluster-budget", (COMPUTE, cluster(**UNKNOWN_NODES)), speaks=False),
    row("cost-per-hour", serverless(), usd=199),
    row("cost-per-hour", serverless(), usd=200, speaks=False),
    row("cost-per-hour", *on_cluster(), usd=1, speaks=False),
    row("cost-per-hour", serverless("Standard_ND96isr_H100"), usd=1, speaks=False),
    row("cost-per-hour", (COMPUTE, cluster(**UNKNOWN_NODES)), speaks=False),
    row("cost-per-job", *on_cluster(), usd=199),
    row("cost-per-job", *on_cluster(), usd=200, speaks=False),
    row("cost-per-job", *on_cluster(limits={"timeout": "${{parent.inputs.t}}"}), usd=1, speaks=False, waits=True),
    row("cost-per-job", *on_cluster(limits={"timeout": "${{parent.inputs.t}}"}), speaks=False),
    row("cost-per-job", (JOB, own(command())), usd=1, speaks=False),
    row("size-retiring", serverless("Standard_HC44rs"), days=400),
    row("size-retiring", (COMPUTE, cluster(vmSize="Standard_HC44rs")), (JOB, own(command())), days=400, speaks=False),
    row("size-retiring", (COMPUTE, cluster(vmSize="Standard_ND96isr_H100")), days=400, speaks=False),
    row("scale-to-zero", (COMPUTE, cluster(scaleSettings={"maxNodeCount": 4})), nodes=0, speaks=False),
    row("scale-to-zero", (COMPUTE, cluster(scaleSettings={"minNodeCount": 1, "maxNodeCount": 4})), nodes=0),
    row("region-approved", (COMPUTE, {**cluster(), "location": UNKNOWN_STRING_VALUE}), speaks=False),
    row("region-approved", (COMPUTE, {**cluster(), "location": UNKNOWN_STRING_VALUE}), regions=["x"], speaks=False,
        waits=True),
    row("region-approved", CLUSTER_4, regions=["x"], speaks=False),
    row("tags-required", (COMPUTE, {**cluster(), "tags": UNKNOWN_STRING_VALUE}), speaks=False),
    row("tags-required", CLUSTER_4, required=["team"]),
    row("ssh-closed", classic(sshPublicAccessEnabled=False), speaks=False),
    row("ssh-closed", classic(sshPublicAccessEnabled=True)),
    row("ssh-closed", classic(), speaks=False),
    row("local-auth-off", classic()),
    row("local-auth-off", classic(localAuthEnabled=False), speaks=False),
    row("local-auth-off", classic(localAuthEnabled=True)),
    row("subnet-overlap", (COMPUTE, cluster(subnet={"id": WIDE})), networks={"wide": "10.0.0.0/8, 172.16.0.0/12"}),
    row("subnet-overlap", (COMPUTE, cluster(subnet={"id": WIDE})), networks={"wide": "10.0.0.0/8"}, speaks=False),
    row("subnet-overlap", (COMPUTE, cluster(subnet={"id": "nodes"})), networks={"wide": "172.16.0.0/12"}, speaks=False),
    row("subnet-overlap", (COMPUTE, cluster(subnet={"id": "/x/virtualNetworks"})), speaks=False),
    row("subnet-overlap", (COMPUTE, cluster(vmSize="Standard_DS3_v2", subnet={"id": UNKNOWN_STRING_VALUE})),
        speaks=False),
    row("subnet-overlap", (COMPUTE, cluster(vmSize="Standard_ND96isr_H100", subnet={"id": WIDE})), speaks=False),
    row("environment-approved", (JOB, own(command())), images=["x"], speaks=False),
    row("environment-approved", (JOB, own(command())), registries=["x"]),
    row("environment-approved", (JOB, own(command(environmentId=UNKNOWN_STRING_VALUE))), images=["x"], speaks=False),
    row("environment-approved", (JOB, own(command(environmentId=None))), registries=["x"], speaks=False),
    row("environment-approved", ("amlstack:environments:Version", {"body": {"image": "ghcr.io/x:1"}}), images=["x"]),
    row("environment-approved", ("amlstack:environments:Version", {"body": {"image": "ghcr.io/x:1"}}),
        registries=["x"], speaks=False),
    row("environment-approved", ("amlstack:environments:Version", {"body": {"image": UNKNOWN_STRING_VALUE}}),
        registries=["x"], speaks=False),
    row("environment-approved", ("amlstack:environments:Version", {"body": {}}), images=["x"], speaks=False),
    row("environment-pinned", ("amlstack:environments:Version", {"body": {"image": "ubuntu"}})),
    row("environment-pinned", ("amlstack:environments:Version", {"body": {}}), speaks=False),
    row("environment-pinned", (JOB, own(command(environmentId="azureml:a@latest")))),
    row("environment-pinned", (JOB, own(command(environmentId=None))), speaks=False),
    row("processes-beyond-gpus", *on_cluster(distribution={"processCountPerInstance": 9})),
    row("processes-beyond-gpus", *on_cluster(distribution={"processCountPerInstance": 8}), speaks=False),
    row("processes-beyond-gpus", *on_cluster(), speaks=False),
    row("processes-beyond-gpus", (JOB, own(command(distribution={"processCountPerInstance": 9}))), speaks=False),
    row("processes-beyond-gpus",
        serverless(distribution={"processCountPerInstance": 9}, resources={"instanceCount": UNKNOWN_STRING_VALUE})),
    row("processes-beyond-gpus",
        *on_cluster(computeId=UNKNOWN_STRING_VALUE, distribution={"processCountPerInstance": 9}), speaks=False,
        waits=True),
    row("gpus-idle", *on_cluster(distribution={"processCountPerInstance": 2})),
    row("gpus-idle", *on_cluster(), speaks=False),
    row("gpus-idle", *on_cluster(computeId=UNKNOWN_STRING_VALUE), speaks=False),
    row("gpus-idle", (JOB, own(command(distribution={"processCountPerInstance": 2}))), speaks=False),
    row("shared-memory", *on_cluster(resources={"instanceCount": 2}), gib_per_gpu=8),
    row("shared-memory", *on_cluster(resources={"instanceCount": 2, "dockerArgsList": ["--ipc", "--ipc=host"]}),
        gib_per_gpu=8, speaks=False),
    row("shared-memory", *on_cluster(resources={"instanceCount": 2, "dockerArgsList": [UNKNOWN_STRING_VALUE]}),
        gib_per_gpu=8, speaks=False, waits=True),
    row("shared-memory", (JOB, own(command(resources={}))), gib_per_gpu=8, speaks=False),
    row("shared-memory", serverless("Standard_DS3_v2", resources={"shmSize": UNKNOWN_STRING_VALUE}), gib_per_gpu=8,
        speaks=False),
    row("fabric-switched-off", *on_cluster(environmentVariables={"NCCL_IB_DISABLE": "1"})),
    row("fabric-switched-off", *on_cluster(environmentVariables={"NCCL_DEBUG": UNKNOWN_STRING_VALUE}), speaks=False),
    row("fabric-switched-off", *on_cluster(environmentVariables={"NCCL_NET": UNKNOWN_STRING_VALUE}), speaks=False,
        waits=True),
    # A cluster that the stack does not declare: what the job says itself is enough.
    row("fabric-switched-off", (JOB, own(command(environmentVariables={"NCCL_IB_DISABLE": "1"})))),
    row("fabric-switched-off", (JOB, own(command(command="NCCL_NET=Socket python t.py")))),
    row("fabric-switched-off", (JOB, own(command(environmentVariables={"NCCL_P2P_DISABLE": "1"}))), speaks=False),
    row("fabric-switched-off", (JOB, own(command(environmentVariables={"NCCL_IB_DISABLE": "1"}, resources={}))),
        speaks=False),
    row("fabric-switched-off", (JOB, own(command(environmentVariables={"NCCL_NET": UNKNOWN_STRING_VALUE}))),
        speaks=False, waits=True),
    row("fabric-switched-off",
        *on_cluster(environmentVariables={"NCCL_IB_DISABLE": "1", "NCCL_NET": UNKNOWN_STRING_VALUE}), waits=True),
    row("secret-in-job", (JOB, own(command(environmentVariables={"A_TOKEN": UNKNOWN_STRING_VALUE}))), speaks=False,
        waits=True),
    row("secret-in-job", (JOB, own(command(environmentVariables={"A": UNKNOWN_STRING_VALUE}))), speaks=False),
    row("secret-in-job", (JOB, own(command(tags={"k": "ghp_" + "a" * 36}))),),
    row("secret-in-job", (JOB, own({"jobType": "Pipeline", "inputs": {"client_secret": {"value": "0a1b2c3d4e"}}})),),
    row("sriov-fabric", *on_promised(resources={"instanceCount": 8})),
    row("sriov-fabric", *on_promised(resources={"instanceCount": 1}), speaks=False),
    row("sriov-fabric", *on_promised(resources={}), speaks=False),
    row("sriov-fabric", *on_promised(resources={"instanceCount": UNKNOWN_STRING_VALUE}), speaks=False, waits=True),
    row("sriov-fabric", *on_promised(computeId=UNKNOWN_STRING_VALUE), speaks=False, waits=True),
    row("sriov-fabric", *on_promised(computeId=UNKNOWN_STRING_VALUE, resources={"instanceCount": 1}), speaks=False),
    row("sriov-fabric", *on_cluster(computeId=UNKNOWN_STRING_VALUE), speaks=False),
    row("sriov-fabric", *on_cluster(computeId=None), speaks=False),
    row("sriov-fabric", on_promised()[0], (COMPUTE, {**cluster(), "computeName": "other"}),
        (JOB, own(command(computeId="other"))), speaks=False),
    row("sriov-fabric", *on_promised(computeId="elsewhere"), speaks=False),
    row("sriov-fabric", *on_promised(UNKNOWN_STRING_VALUE), speaks=False, waits=True),
    row("sriov-fabric", *on_promised("false"), speaks=False),
    row("sriov-fabric", on_promised()[0], serverless(), speaks=False),
    row("fabric-switched-off", serverless("Standard_DS3_v2", **OFF, resources={"instanceCount": UNKNOWN_STRING_VALUE}),
        speaks=False),
    row("fabric-switched-off",
        serverless("Standard_ND96is_H100_v5", **OFF, resources={"instanceCount": UNKNOWN_STRING_VALUE}), speaks=False),
    row("fabric-switched-off",
        serverless("Standard_HB120rs_v3", **OFF, resources={"instanceCount": UNKNOWN_STRING_VALUE}), speaks=False),
    row("fabric-switched-off", *on_cluster(command={"not": "text"}), speaks=False),
    row("size-closed", serverless("Standard_DS3_v2")),
    row("size-closed", serverless("Standard_DS3_v"), speaks=False),
    row("size-closed", serverless("Standard_DS3_v2"), subscription_created="2026-07-01"),
    row("size-closed", serverless("Standard_DS3_v2"), subscription_created="2026-06-30", speaks=False),
    row("size-closed", (COMPUTE, cluster(vmSize="Standard_DS3_v2")), (JOB, own(command())), speaks=False),
    row("size-closed", (COMPUTE, cluster(vmSize="Standard_D4s_v5")), speaks=False),
    # An image is known by the curated environment's name, or by the environment that the stack registers.
    row("image-cannot-run-here", (COMPUTE, cluster(vmSize=GB200)), (JOB, own(command(environmentId=CURATED)))),
    row("image-cannot-run-here", (COMPUTE, cluster(vmSize=GB200)), (JOB, own(command(environmentId="azureml:a:3"))),
        speaks=False),
    row("image-cannot-run-here",
        (COMPUTE, cluster(vmSize="Standard_NC24r")), (JOB, own(command(environmentId=CURATED))), speaks=False),
    row("image-cannot-run-here", (COMPUTE, cluster(vmSize=GB200)), (JOB, own(command(environmentId=None))),
        speaks=False),
    row("image-cannot-run-here", (COMPUTE, cluster(vmSize=GB200)), OURS, (JOB, own(command(environmentId=OUR_ID)))),
    row("image-cannot-run-here", (COMPUTE, cluster(vmSize=GB200)), OURS, (JOB, own(command(environmentId=OTHER_ID))),
        speaks=False),
    row("image-cannot-run-here", (COMPUTE, cluster(vmSize=GB200)), THEIRS, (JOB, own(command(environmentId=OUR_ID)))),
    # A conda environment on top replaces the image's PyTorch.
    row("image-cannot-run-here", (COMPUTE, cluster(vmSize=RTX)), TORCH, (JOB, own(command(environmentId=OUR_ID)))),
    row("image-cannot-run-here", (COMPUTE, cluster(vmSize=RTX)), UNDER_CONDA, (JOB, own(command(environmentId=OUR_ID))),
        speaks=False),
    row("image-cannot-run-here", OURS, (JOB, own(command(environmentId=OUR_ID, command="mpirun -mca btl openib x")))),
    row("image-cannot-run-here", OURS,
        (JOB, own(command(environmentId=OUR_ID, environmentVariables={"OMPI_MCA_btl": "openib"})))),
    row("image-cannot-run-here", *on_cluster(environmentId=UNKNOWN_STRING_VALUE), speaks=False, waits=True),
    row("nebula-gone", (OWN_ENVIRONMENT, {"body": {"image": "a:1", "condaFile": "pip: [nebulaml]"}})),
    row("nebula-gone", (OWN_ENVIRONMENT, {"body": {"image": "nebulaml:1", "condaFile": "pip: [torch]"}}), speaks=False),
    row("nebula-gone", (OWN_ENVIRONMENT, {"body": {"image": "a:1"}}), speaks=False),
    row("restart-without-checkpoint", *on_cluster(command=AGAIN)),
    row("restart-without-checkpoint", *on_cluster(command=AGAIN, inputs={"resume_from": {}}), speaks=False),
    row("restart-without-checkpoint", *on_cluster(command=AGAIN, environmentVariables={"CKPT": "x"}), speaks=False),
    row("restart-without-checkpoint", *on_cluster(command=AGAIN, environmentVariables={"X": "/ckpt"}), speaks=False),
    row("restart-without-checkpoint", *on_cluster(command=AGAIN, outputs={"out": {}}), speaks=False),
    row("restart-without-checkpoint", *on_cluster(environmentVariables=UNKNOWN_STRING_VALUE), speaks=False),
    row("restart-without-checkpoint", *on_cluster(command=AGAIN, environmentVariables=UNKNOWN_STRING_VALUE),
        speaks=False, waits=True),
    row("restart-without-checkpoint", ON_SPOT, (JOB, own(command(resources=ONE_NODE, limits={"timeout": "PT8H"})))),
    row("restart-without-checkpoint", ON_SPOT, (JOB, own(command(resources=ONE_NODE, limits={"timeout": "PT8H"}))),
        hours=9, speaks=False),
    row("restart-without-checkpoint", ON_SPOT, (JOB, own(command(limits={"timeout": "PT8H"}))), speaks=False),
    row("spot-checkpoint", (COMPUTE, cluster(vmPriority="LowPriority")), (JOB, own(command()))),
    row("spot-checkpoint", (COMPUTE, cluster(vmPriority="Dedicated")), (JOB, own(command())), speaks=False),
    row("spot-checkpoint", (COMPUTE, cluster(vmPriority="LowPriority")),
        (JOB, own(command(resources={"instanceCount": 1}))), speaks=False),
    row("spot-checkpoint", (COMPUTE, cluster(vmPriority="LowPriority")),
        (JOB, own(command(outputs={"a": "text", "b": {"mode": 3}}))), speaks=False),
    row("spot-checkpoint", (COMPUTE, cluster(vmPriority="LowPriority")), serverless(), speaks=False),
    row("spot-checkpoint", serverless(queueSettings={"jobTier": "spot"})),
    row("spot-checkpoint", serverless(), speaks=False),
    row("spot-checkpoint", (JOB, own(command(queueSettings={"jobTier": "Standard"}))), speaks=False),
    row("spot-checkpoint",
        serverless(queueSettings={"jobTier": "Standard"}, resources={"instanceCount": UNKNOWN_STRING_VALUE}),
        speaks=False),
    row("spot-checkpoint", (COMPUTE, cluster(vmPriority="LowPriority")),
        (JOB, own(command(outputs={"a": {"mode": "Upload"}})))),
    row("spot-checkpoint", (COMPUTE, cluster(vmPriority="LowPriority")),
        (JOB, own(command(outputs={"a": {"mode": UNKNOWN_STRING_VALUE}}))), speaks=False, waits=True),
    row("spot-checkpoint", (COMPUTE, cluster(vmPriority="LowPriority")),
        (JOB, own(command(resources={"instanceCount": 1}, outputs=UNKNOWN_STRING_VALUE))), speaks=False),
    row("fabric-switched-off", serverless(UNKNOWN_STRING_VALUE), speaks=False),
    row("fabric-switched-off", serverless(UNKNOWN_STRING_VALUE, environmentVariables={"NCCL_IB_DISABLE": "1"}),
        speaks=False, waits=True),
    row("shared-memory", *on_cluster(resources={"instanceCount": 2, "dockerArgs": "--ipc=host"}), gib_per_gpu=8,
        speaks=False),
    row("shared-memory", *on_cluster(resources={"instanceCount": 2, "dockerArgs": {"--ipc=host": ""}}), gib_per_gpu=8),
    # The price is that of the region and the priority; what is not known of them counts as the first known, dedicated.
    row("cost-per-hour", (COMPUTE, {**cluster(), "location": "UK South"}), usd=479),
    row("cost-per-hour", (COMPUTE, {**cluster(), "location": "UK South"}), usd=480, speaks=False),
    row("cost-per-hour", (COMPUTE, nodes_in("uksouth")), usd=479),
    row("cost-per-hour", (COMPUTE, nodes_in("westeurope")), usd=400, speaks=False),
    row("cost-per-hour", (COMPUTE, nodes_in("[variables('region')]")), usd=400, speaks=False),
    row("cost-per-hour", (COMPUTE, nodes_in("[variables('region')]")), usd=399),
    row("cost-per-hour", (COMPUTE, nodes_in(UNKNOWN_STRING_VALUE)), usd=400, speaks=False),
    row("cost-per-hour", (COMPUTE, nodes_in(UNKNOWN_STRING_VALUE)), usd=399),
    row("cost-per-hour", (COMPUTE, nodes_in("uksouth", vmPriority="LowPriority")), usd=96, speaks=False),
    row("cost-per-hour", (COMPUTE, nodes_in("uksouth", vmPriority="LowPriority")), usd=95),
    row("cost-per-hour", (COMPUTE, nodes_in("uksouth", vmPriority="Dedicated")), usd=96),
    row("cost-per-hour", (COMPUTE, nodes_in("uksouth", vmPriority=UNKNOWN_STRING_VALUE)), usd=479),
    row("cost-per-hour", (COMPUTE, nodes_in("uksouth", vmPriority=UNKNOWN_STRING_VALUE)), usd=480, speaks=False),
    row("cost-per-hour", serverless(resources={"locations": ["uksouth", "westeurope"]}), usd=239),
    row("cost-per-hour", serverless(resources={"locations": []}), usd=200, speaks=False),
    row("cost-per-hour", serverless(resources={"locations": [3]}), usd=199),
    row("cost-per-hour",
        serverless(resources={"locations": ["uksouth"]}, queueSettings={"jobTier": "Spot"}), usd=48, speaks=False),
    row("cost-per-job", (COMPUTE, nodes_in("uksouth")), (JOB, own(command())), usd=239),
    row("cost-per-job", (COMPUTE, nodes_in("uksouth")), (JOB, own(command())), usd=240, speaks=False),
    row("cost-per-job", (COMPUTE, nodes_in("uksouth", vmPriority="LowPriority")), (JOB, own(command())), usd=48,
        speaks=False),
    row("cost-per-job", (COMPUTE, nodes_in("uksouth")), serverless(), usd=200, speaks=False),
    row("cost-per-job", serverless(resources={"locations": ["uksouth"]}), usd=239),
    row("cost-per-job", sweep(timeout="PT10H"), usd=7999),
    row("cost-per-job", sweep(timeout="PT10H"), usd=8000, speaks=False),
    row("cost-per-job", sweep(timeout="PT10H", maxConcurrentTrials=2), usd=3999),
    row("cost-per-job", sweep(timeout="PT10H", maxConcurrentTrials=2), usd=4000, speaks=False),
    row("cost-per-job", sweep(trialTimeout="PT1H", maxConcurrentTrials=2), usd=799),
    row("cost-per-job", sweep(trialTimeout="PT1H", maxConcurrentTrials=2), usd=800, speaks=False),
    row("cost-per-job", sweep(timeout="PT1H", trialTimeout="PT1H", maxConcurrentTrials=2), usd=399),
    row("cost-per-job", sweep(timeout="PT1H", trialTimeout="PT1H", maxConcurrentTrials=2), usd=400, speaks=False),
    row("cost-per-job", sweep(), usd=10**9),
    row("job-timeout", (JOB, own(command(limits={})))),
    row("job-timeout", (JOB, own(command(limits={"timeout": 3600}))), speaks=False),
    row("job-timeout", (JOB, own(command(limits={"timeout": 3601}))), hours=1),
    row("job-timeout", (JOB, own(command(limits={"timeout": "PT1H"}))), hours=1, speaks=False),
    row("job-timeout", (JOB, own(command(limits={"timeout": "PT61M"}))), hours=1),
    row("job-timeout", (JOB, own(command(limits={"timeout": "${{parent.inputs.t}}"}))), hours=1, speaks=False,
        waits=True),
    row("job-timeout", (JOB, own(command(limits={"timeout": {"not": "a time"}})))),
]  # fmt: skip


@pytest.fixture(autouse=True)
def priced(monkeypatch: pytest.MonkeyPatch) -> None:
    """One size has a price, the one that the examples speak of."""
    size = sizes.get(H100)
    assert size is not None
    at_home = sizes.Price(100.0, "westeurope", TODAY, "made up")
    abroad = sizes.Price(120.0, "uksouth", TODAY, "made up", low_priority=24.0)
    with_price = replace(size, prices=(at_home, abroad))
    known = {**sizes.by_lower_name(), H100.lower(): with_price}
    monkeypatch.setattr(sizes, "by_lower_name", lambda: known)


def holds(one: Row) -> bool:
    pack = Pack("amlstack", "1.0.0", TODAY, one.config)
    answers = [shown(pack.Analyze(request(token, props), None)) for token, props in one.shown]
    refusing = {code for level, code, _ in answers[-1] if level == "mandatory"}
    waits = [message for _, code, message in answers[-1] if code == "checked-at-up" and one.code in message]
    return (one.code in refusing) is one.speaks and bool(waits) is one.waits


@pytest.mark.parametrize("one", ROWS, ids=lambda one: one.code)
def test_a_rule_judges_what_it_is_bound_to(one: Row) -> None:
    assert holds(one)


MODULES = (bindings.size, bindings.cluster, bindings.cost, bindings.resource, bindings.job)


def bent(original: ModuleType) -> Iterator[tuple[ast.AST, ModuleType]]:
    """A module with one condition bent, again and again, and its source."""
    assert original.__file__ is not None
    tree = ast.parse(Path(original.__file__).read_text(encoding="utf-8"))
    number = 0
    while True:
        bend = Bend(number)
        source = ast.fix_missing_locations(bend.visit(copy.deepcopy(tree)))
        if bend.met <= number:
            return
        module = ModuleType("bent_bindings")
        sys.modules[module.__name__] = module
        try:
            exec(compile(source, original.__file__, "exec"), module.__dict__)
        finally:
            del sys.modules[module.__name__]
        yield source, module
        number += 1


@pytest.mark.parametrize("original", [*MODULES, binding], ids=lambda module: module.__name__.rpartition(".")[2])
def test_no_bent_condition_of_a_binding_survives(original: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    survivors = []
    bound = {one.rule.code for one in getattr(original, "BINDINGS", bindings.BINDINGS)}
    rows = [one for one in ROWS if one.code in bound]
    for source, module in bent(original):
        if original is binding:  # what the bindings of all subjects read with
            for user in (*MODULES, verdicts):
                for name in vars(user).keys() & {"size_of", "cluster_of", "nodes_of", "timeout_of",
                                                 "seconds_of", "where_nodes", "region_of",
                                                 "preemptible", "paid_as"}:  # fmt: skip
                    monkeypatch.setattr(user, name, getattr(module, name))
        else:
            of_kind = {kind: tuple(one for one in module.BINDINGS if kind in one.kinds) for kind in verdicts._OF_KIND}
            monkeypatch.setattr(verdicts, "_OF_KIND", of_kind)
        noticed = next((place for place, one in enumerate(rows) if not survives(one)), None)
        if noticed is None:
            survivors.append(changed(original, source))
        else:  # what notices one often notices the next
            rows.insert(0, rows.pop(noticed))

    assert survivors == []


def changed(original: ModuleType, source: ast.AST) -> str:
    assert original.__file__ is not None
    lines = ast.unparse(ast.parse(Path(original.__file__).read_text(encoding="utf-8"))).splitlines()
    return "\n".join(line for line in ast.unparse(source).splitlines() if line not in lines)


def survives(one: Row) -> bool:
    try:
        return holds(one)
    except Exception:  # noqa: BLE001 - a bent binding that breaks was noticed
        return False
