"""Whole bodies of typed jobs, and what references become in a workspace."""

from __future__ import annotations

import pytest

import jobs
from amlstack.base.paths import PROJECT
from tests.support.rows import for_each

WORKSPACE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
CODE = f"{WORKSPACE}/codes/0123/versions/1"


def test_a_torchrun_job_on_two_a100_nodes() -> None:
    job = jobs.Job(
        name="ddp",
        command="python train.py --epochs ${{inputs.epochs}} --checkpoints ${{outputs.model}}",
        code=".",
        inputs={"epochs": 3, "data": jobs.Input(path="azureml:cifar:2", mode="ro_mount")},
        outputs={"model": jobs.Output(mode="upload", name="ddp-model")},
        environment="acpt-pytorch-2.8-cuda12.6",
        environment_variables={"OMP_NUM_THREADS": "4"},
        compute="a100",
        nodes=2,
        launcher=jobs.TorchRun(),
        limits=jobs.Limits(timeout=5400),
        tags={"team": "vision"},
        display_name="DDP",
        experiment_name="cifar",
    )
    source = jobs.Source(base=PROJECT / "examples" / "checkpoint_resume")
    plan = jobs.plan(job, jobs.Target("Standard_ND96asr_v4", "a100", 2), source=source)
    assert plan.findings == ()
    assert jobs.body(plan.enriched, jobs.Refs(WORKSPACE, CODE)) == {
        "properties": {
            "jobType": "Command",
            "command": "torchrun --nnodes 2 --nproc_per_node 8 --node_rank $NODE_RANK --master_addr $MASTER_ADDR "
            "--master_port $MASTER_PORT train.py --epochs ${{inputs.epochs}} --checkpoints ${{outputs.model}}",
            "environmentId": "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/labels/latest",
            "codeId": CODE,
            "computeId": f"{WORKSPACE}/computes/a100",
            "displayName": "DDP",
            "experimentName": "cifar",
            "isArchived": False,
            "inputs": {
                "epochs": {"jobInputType": "literal", "value": "3"},
                "data": {
                    "jobInputType": "uri_folder",
                    "uri": f"{WORKSPACE}/data/cifar/versions/2",
                    "mode": "ReadOnlyMount",
                },
            },
            "outputs": {"model": {"jobOutputType": "uri_folder", "mode": "Upload", "assetName": "ddp-model"}},
            "environmentVariables": {
                "OMP_NUM_THREADS": "4",
                "NCCL_IB_PCI_RELAXED_ORDERING": "1",
                "UCX_IB_PCI_RELAXED_ORDERING": "on",
                "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
                "NCCL_SOCKET_IFNAME": "eth0",
                "NCCL_IGNORE_CPU_AFFINITY": "1",
            },
            "distribution": {"distributionType": "PyTorch", "processCountPerInstance": 1},
            "resources": {
                "instanceCount": 2,
                "properties": {},
                "shmSize": "450g",
                "dockerArgs": "--ipc=host --ulimit memlock=-1",
            },
            "limits": {"jobLimitsType": "Command", "timeout": "PT1H30M"},
            "tags": {"team": "vision"},
            "properties": {},
        }
    }


@pytest.mark.parametrize("compute", ["serverless", "azureml:Serverless"])
def test_the_word_for_serverless_is_no_cluster_in_a_request(compute: str) -> None:
    job = jobs.Job(command="x", environment="azureml:mine:4", compute=compute, instance_type="Standard_ND96asr_v4")
    assert "computeId" not in jobs.render(job, jobs.Refs("/workspaces/w")).body["properties"]
    plan = jobs.plan(job)
    assert (plan.target.cluster, plan.target.size) == (None, "Standard_ND96asr_v4")


def test_a_per_process_job_on_serverless_h100() -> None:
    job = jobs.Job(
        command="python train.py",
        environment="azureml:mine:4",
        instance_type="Standard_ND96isr_H100_v5",
        locations=("westeurope",),
        nodes=2,
        launcher=jobs.PerProcess(),
        enrich=False,
        queue_settings=jobs.QueueSettings(job_tier="spot", priority="high"),
        identity=jobs.Identity(type="managed", client_id="c"),
        services={"look": jobs.Service(type="tensor_board", log_dir="runs", nodes="all")},
    )
    plan = jobs.plan(job)
    assert plan.findings == ()
    assert jobs.body(plan.enriched, jobs.Refs(WORKSPACE)) == {
        "properties": {
            "jobType": "Command",
            "command": "python train.py",
            "environmentId": f"{WORKSPACE}/environments/mine/versions/4",
            "isArchived": False,
            "inputs": {},
            "outputs": {},
            "environmentVariables": {},
            "distribution": {"distributionType": "PyTorch", "processCountPerInstance": 8},
            "resources": {
                "instanceCount": 2,
                "instanceType": "Standard_ND96isr_H100_v5",
                "properties": {},
                "locations": ["westeurope"],
            },
            "queueSettings": {"jobTier": "Spot", "priority": 3},
            "identity": {"identityType": "Managed", "clientId": "c"},
            "services": {
                "look": {
                    "jobServiceType": "TensorBoard",
                    "nodes": {"nodesValueType": "All"},
                    "properties": {"logDir": "runs"},
                }
            },
            "tags": {},
            "properties": {},
        }
    }


@for_each(
    "written, short, full",
    [
        ("azureml:e:1", "e:1", f"{WORKSPACE}/environments/e/versions/1"),
        ("azureml:e@latest", "e@latest", "azureml:e@latest"),
        ("azureml:AzureML-x@latest", "AzureML-x@latest", "azureml:AzureML-x@latest"),
        ("azureml:e", "e", "e"),
        ("azureml://registries/r/environments/e/versions/1",) * 1
        + ("azureml://registries/r/environments/e/versions/1",) * 2,
        ("acpt-pytorch-2.8-cuda12.6",)
        + ("azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/labels/latest",) * 2,
        (f"azureml:{WORKSPACE}/environments/e/versions/1",) + (f"{WORKSPACE}/environments/e/versions/1",) * 2,
    ],
)
def test_environment_references(written: str, short: str, full: str) -> None:
    assert jobs.Refs().environment_id(written) == short
    assert jobs.Refs(WORKSPACE).environment_id(written) == full


@for_each(
    "path, kind, full",
    [
        ("azureml:x:1", "uri_folder", f"{WORKSPACE}/data/x/versions/1"),
        ("azureml:x:1", "mlflow_model", f"{WORKSPACE}/models/x/versions/1"),
        ("azureml:x@latest", "mltable", "azureml:x@latest"),
        ("https://example.org/x", "uri_file", "https://example.org/x"),
        ("azureml://datastores/d/paths/x", "uri_file", "azureml://datastores/d/paths/x"),
    ],
)
def test_data_references(path: str, kind: str, full: str) -> None:
    assert jobs.Refs(WORKSPACE).data_uri(path, kind) == full


@pytest.mark.parametrize("written", ["gpu", "azureml:gpu"])
def test_computes_become_ids(written: str) -> None:
    assert jobs.Refs(WORKSPACE).compute_id(written) == f"{WORKSPACE}/computes/gpu"
    assert jobs.Refs().compute_id(written) == "gpu"
    assert jobs.Refs(WORKSPACE).compute_id(f"azureml:{WORKSPACE}/computes/gpu") == f"{WORKSPACE}/computes/gpu"
