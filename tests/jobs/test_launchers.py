"""Each launcher on Azure ML's wire, equal to what azure-ai-ml sends for the lowered command."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, get_args

import pytest

import jobs
from jobs import launchers
from jobs.azureml.write import command_file
from jobs.launchers import Custom
from tests.support import yaml_files
from tests.support.jobs import oracle
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

    from jobs.launchers import TypedLauncher

SIZES = {
    "ndv2": "Standard_ND40rs_v2",
    "a100": "Standard_ND96asr_v4",
    "h100": "Standard_ND96isr_H100_v5",
    "gb200": "Standard_ND128isr_NDR_GB200_v6",
}
NODE = "--node_rank $NODE_RANK --master_addr $MASTER_ADDR --master_port $MASTER_PORT"
ACCELERATE = (
    "--num_machines 2 --num_processes 16 "
    "--machine_rank $NODE_RANK --main_process_ip $MASTER_ADDR --main_process_port $MASTER_PORT"
)


def plan(launcher: TypedLauncher, *, nodes: int = 2, size: str = "a100", **fields: Any) -> jobs.Plan:
    job = jobs.Job(
        **{"command": "python train.py --lr 1", "environment": "azureml:e:1"} | fields,
        compute=size,
        nodes=nodes,
        launcher=launcher,
    )
    return jobs.plan(job, jobs.Target(SIZES[size], size, 16))


@for_each(
    "launcher, command, distribution, ranks",
    [
        (
            jobs.TorchRun(),
            f"torchrun --nnodes 2 --nproc_per_node 8 {NODE} train.py --lr 1",
            {"distributionType": "PyTorch", "processCountPerInstance": 1},
            8,
        ),
        (
            jobs.PerProcess(),
            "python train.py --lr 1",
            {"distributionType": "PyTorch", "processCountPerInstance": 8},
            8,
        ),
        (
            jobs.Mpi(backend="mpi"),
            "python train.py --lr 1",
            {"distributionType": "Mpi", "processCountPerInstance": 8},
            8,
        ),
        (
            jobs.Mpi(processes_per_node=1, backend="nccl"),
            "python train.py --lr 1",
            {"distributionType": "Mpi", "processCountPerInstance": 1},
            1,
        ),
        (
            jobs.Horovod(framework="tensorflow"),
            "python train.py --lr 1",
            {"distributionType": "Mpi", "processCountPerInstance": 8},
            8,
        ),
        (
            jobs.DeepSpeed(),
            "python train.py --lr 1",
            {"distributionType": "Mpi", "processCountPerInstance": 8},
            8,
        ),
        (
            jobs.DeepSpeed(on="pytorch", config="ds.json", processes_per_node=4),
            "python train.py --lr 1 --deepspeed --deepspeed_config ds.json",
            {"distributionType": "PyTorch", "processCountPerInstance": 4},
            4,
        ),
        (
            jobs.Lightning(),
            "env -u WORLD_SIZE -u RANK -u LOCAL_RANK python train.py --lr 1",
            {"distributionType": "PyTorch", "processCountPerInstance": 1},
            8,
        ),
        (
            jobs.Lightning(arguments="cli"),
            "env -u WORLD_SIZE -u RANK -u LOCAL_RANK python train.py --lr 1 --trainer.num_nodes 2 --trainer.devices 8",
            {"distributionType": "PyTorch", "processCountPerInstance": 1},
            8,
        ),
        (
            jobs.HuggingFace(),
            f"torchrun --nnodes 2 --nproc_per_node 8 {NODE} train.py --lr 1",
            {"distributionType": "PyTorch", "processCountPerInstance": 1},
            8,
        ),
        (
            jobs.HuggingFace(per="process", local_rank_argument=True),
            "python train.py --lr 1 --local_rank $LOCAL_RANK",
            {"distributionType": "PyTorch", "processCountPerInstance": 8},
            8,
        ),
        (
            jobs.Accelerate(mixed_precision="bf16"),
            f"accelerate launch --multi_gpu {ACCELERATE} --mixed_precision bf16 train.py --lr 1",
            {"distributionType": "PyTorch", "processCountPerInstance": 1},
            8,
        ),
        (
            jobs.TensorFlow(),
            "python train.py --lr 1",
            {"distributionType": "TensorFlow", "workerCount": 2, "parameterServerCount": 0},
            1,
        ),
        (
            jobs.TensorFlow(workers=4, parameter_servers=1),
            "python train.py --lr 1",
            {"distributionType": "TensorFlow", "workerCount": 4, "parameterServerCount": 1},
            2,
        ),
    ],
)
def test_two_nodes_of_eight_gpus(launcher: Any, command: str, distribution: dict[str, Any], ranks: int) -> None:
    planned = plan(launcher)
    assert planned.findings == ()
    properties = jobs.body(planned.enriched)["properties"]
    assert properties["command"] == command
    assert properties["distribution"] == distribution
    assert properties["resources"]["instanceCount"] == 2
    assert planned.processes_per_node == ranks


def test_single_node_starts_its_ranks_alone() -> None:
    planned = plan(jobs.SingleNode(), nodes=1)
    assert planned.findings == ()
    properties = jobs.body(planned.enriched)["properties"]
    assert properties["command"] == "torchrun --standalone --nproc_per_node 8 train.py --lr 1"
    assert "distribution" not in properties
    assert properties["environmentVariables"] == {}
    assert plan(jobs.SingleNode(processes_per_node=1), nodes=1).enriched.command == "python train.py --lr 1"


@pytest.mark.parametrize("nodes", [1, 2])
def test_autotuning_goes_through_deepspeeds_launcher_once_per_node(nodes: int) -> None:
    planned = plan(jobs.DeepSpeed(autotuning="tune", config="ds.json"), nodes=nodes)
    assert planned.findings == ()
    properties = jobs.body(planned.enriched)["properties"]
    assert properties["command"] == (
        "python -m amlnode deepspeed --nproc 8 --autotuning tune train.py --lr 1 --deepspeed --deepspeed_config ds.json"
    )
    per_node = {"distributionType": "PyTorch", "processCountPerInstance": 1}
    assert properties.get("distribution") == (per_node if nodes > 1 else None)
    assert planned.processes_per_node == 8


@pytest.mark.parametrize(
    ("launcher", "nodes", "expected"),
    [
        (jobs.TorchRun(max_restarts=2), 2, "1"),
        (jobs.TorchRun(max_restarts=2), 1, None),
        (jobs.TorchRun(rdzv="c10d"), 2, None),
        (jobs.TorchRun(), 2, None),
    ],
)
def test_restarts_over_several_nodes_get_a_store_for_each_attempt(
    launcher: jobs.TorchRun, nodes: int, expected: str | None
) -> None:
    planned = plan(launcher, nodes=nodes)
    assert planned.findings == ()
    assert planned.enriched.environment_variables.get("TORCH_DISABLE_SHARE_RDZV_TCP_STORE") == expected


def test_autotuning_needs_a_configuration_to_vary() -> None:
    tune = jobs.DeepSpeed(autotuning="tune")
    assert [finding.code for finding in plan(tune, nodes=1).findings] == ["autotuning-config"]
    for command in ("python t.py --deepspeed ds.json", "python t.py --deepspeed_config=ds.json --deepspeed"):
        assert plan(tune, nodes=1, command=command).findings == ()


@for_each(
    "launcher, fields, codes",
    [
        (jobs.SingleNode(), {}, ["single-node"]),
        (jobs.Mpi(), {}, ["backend-unsaid"]),
        (jobs.TorchRun(processes_per_node=16), {}, ["processes-beyond-gpus"]),
        (jobs.Horovod(), {"command": "horovodrun -np 16 python t.py"}, ["launcher-in-command"]),
        (jobs.DeepSpeed(), {"command": "deepspeed train.py"}, ["launcher-in-command"]),
        (jobs.TorchRun(processes_per_node=4), {}, ["gpus-idle"]),
        (jobs.Lightning(), {"command": "python t.py --devices 4"}, ["lightning-counts"]),
        (jobs.Lightning(), {"command": "python t.py fit --trainer.num_nodes=3"}, ["lightning-counts"]),
        (jobs.Lightning(), {"command": "python t.py --devices 8 --num_nodes 2"}, []),
        (jobs.Lightning(), {"command": "bash run.sh"}, ["command-not-python"]),
        (jobs.Accelerate(), {"command": "accelerate launch t.py"}, ["launcher-in-command"]),
        (jobs.TensorFlow(workers=3), {}, ["workers-on-nodes"]),
        (jobs.TensorFlow(), {"environment_variables": {"TF_CONFIG": "{}"}}, ["variable-reserved"]),
        (jobs.Mpi(backend="mpi"), {"environment_variables": {"OMPI_COMM_WORLD_RANK": 0}}, ["variable-reserved"]),
        (jobs.Lightning(), {"environment_variables": {"LOCAL_RANK": 0}}, ["variable-reserved"]),
    ],
)
def test_what_a_launcher_refuses(launcher: Any, fields: dict[str, Any], codes: list[str]) -> None:
    assert [finding.code for finding in plan(launcher, **fields).findings] == codes


def test_a_launchers_file_must_lie_in_the_code_folder(tmp_path: Path) -> None:
    (tmp_path / "ds_config.json").write_text("{}")
    (tmp_path / "t.py").write_text("")
    job = jobs.Job(command="python t.py", environment="azureml:e:1", code=str(tmp_path), compute="a100",
                   launcher=jobs.DeepSpeed(config="ds.json"))  # fmt: skip
    (finding,) = jobs.plan(job, jobs.Target(SIZES["a100"])).findings
    assert (finding.code, finding.where) == ("launcher-file-missing", "launcher.config")
    assert "ds_config.json" in finding.remedy


@for_each(
    "launcher, variables",
    [
        (jobs.Mpi(backend="mpi"), set()),
        (jobs.Mpi(), set()),
        (jobs.Mpi(backend="nccl"), {"NCCL_SOCKET_IFNAME", "UCX_TLS", "OMPI_MCA_coll_hcoll_enable"}),
        (jobs.Horovod(), {"NCCL_SOCKET_IFNAME", "UCX_TLS", "OMPI_MCA_coll_hcoll_enable"}),
        (jobs.Horovod(backend="mpi"), set()),
        (jobs.DeepSpeed(on="pytorch"), {"NCCL_SOCKET_IFNAME"}),
    ],
)
def test_mpi_is_kept_off_the_fabric_only_where_nccl_carries_the_data(launcher: Any, variables: set[str]) -> None:
    result = set(plan(launcher).enriched.environment_variables)
    marks = {"NCCL_SOCKET_IFNAME", "UCX_TLS", "OMPI_MCA_coll_hcoll_enable"}
    assert result & marks == variables


ALL = [
    *(kind() for kind in launchers.TYPED),
    jobs.HuggingFace(per="process"),
    jobs.DeepSpeed(on="pytorch"),
    jobs.TorchRun(max_restarts=1),
    jobs.TorchRun(program="launch"),
    jobs.Mpi(processes_per_node=1),
]


@pytest.mark.parametrize("launcher", ALL, ids=lambda value: value.type)
@for_each("nodes, size", itertools.product([1, 2, 8], SIZES))
def test_azure_ai_ml_sends_the_same_of_the_enriched_job(launcher: Any, nodes: int, size: str, tmp_path: Path) -> None:
    planned = plan(launcher, nodes=nodes, size=size)
    path = tmp_path / "job.yml"
    path.write_text(yaml_files.dump(command_file(planned.enriched)))
    assert jobs.body(planned.enriched) == oracle.body(path)


def test_the_union_holds_every_launcher_by_its_own_name() -> None:
    union = set(get_args(get_args(launchers.Launcher)[0]))
    assert union == {*launchers.TYPED, Custom}
    names = [kind.model_fields["type"].default for kind in union]
    assert len(set(names)) == len(names)


@for_each("kind", launchers.TYPED)
def test_every_launcher_says_what_it_reserves_and_why(kind: type[TypedLauncher]) -> None:
    assert kind.RESERVED
    assert kind.WHY.endswith(".")
