"""The jobs of the guides' v1 parts in own words, each with the start of its ranks that the v2 parts describe."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.support.migrate.programs import HEAD

ENVIRONMENT = "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/13"
_NODES = "--nnodes 2 --node_rank $NODE_RANK --master_addr $MASTER_ADDR --master_port $MASTER_PORT"
_LAUNCH = "python -m torch.distributed.launch"


class Guide(NamedTuple):
    """One job.

    Attributes:
        v1: The arguments of its ScriptRunConfig.
        command: The command in v2.
        distribution: The distribution there: its type, and what else it says.
        nodes: The nodes.
        ranks: The ranks that the training code sees on two nodes with one process each; 0 where another job of the
            table shows the same.
    """

    v1: str
    command: str
    distribution: dict[str, Any] | None
    nodes: int = 2
    ranks: int = 0


def _per_node(kind: str, count: int) -> dict[str, Any]:
    return {"type": kind, "process_count_per_instance": count}


GUIDES = {
    "MPI": Guide(
        "script='train.py', distributed_job_config=MpiConfiguration(process_count_per_node=4, node_count=2)",
        "python train.py", _per_node("mpi", 4), ranks=2),
    "PyTorch, per process": Guide(
        "script='train.py', arguments=['--epochs', 50],"
        " distributed_job_config=PyTorchConfiguration(process_count=8, node_count=2)",
        "python train.py --epochs 50", _per_node("pytorch", 4), ranks=2),
    "PyTorch, per node": Guide(
        f"command=['{_LAUNCH} --nproc_per_node 4 {_NODES}  --use_env train.py --epochs 50'],"
        " distributed_job_config=PyTorchConfiguration(node_count=2)",
        f"torchrun --nproc_per_node 4 {_NODES} train.py --epochs 50", _per_node("pytorch", 1), ranks=2),
    "PyTorch, one node": Guide(
        f"command=['{_LAUNCH} --nproc_per_node 4 \\\n   --use_env train.py --epochs 50']",
        "torchrun --nproc_per_node 4 train.py --epochs 50", None, nodes=1, ranks=1),
    "Hugging Face, one node": Guide(
        f"command=['{_LAUNCH} --nproc_per_node 8 \\\n  text-classification/run_glue.py --task_name mnli --do_train"
        " --learning_rate 2e-5 --output_dir /tmp/out'], distributed_job_config=PyTorchConfiguration()",
        f"{_LAUNCH} --nproc_per_node 8 text-classification/run_glue.py --task_name mnli --do_train"
        " --learning_rate 2e-5 --output_dir /tmp/out", _per_node("pytorch", 1), nodes=1, ranks=1),
    "TensorFlow": Guide(
        "script='train.py', distributed_job_config=TensorflowConfiguration(worker_count=2, parameter_server_count=0)",
        "python train.py", {"type": "tensorflow", "worker_count": 2, "parameter_server_count": 0}, ranks=2),
    "MPI, of the archive": Guide(
        "script=\"train.py\", distributed_job_config=MpiConfiguration(node_count=2, process_count_per_node=4)",
        "python train.py", _per_node("mpi", 4)),
    "DistributedDataParallel by MPI": Guide(
        "script='train.py', arguments=None, distributed_job_config=MpiConfiguration(4, 2)",
        "python train.py", _per_node("mpi", 4)),
    "a launcher of one's own by MPI": Guide(
        "script='launch.py', arguments=['--nproc_per_node', 4, '--use_env', 'train.py'],"
        " distributed_job_config=MpiConfiguration(process_count_per_node=1, node_count=2)",
        "python launch.py --nproc_per_node 4 --use_env train.py", _per_node("mpi", 1), ranks=2),
    "Horovod": Guide(
        "script='train.py', distributed_job_config=MpiConfiguration(node_count=2)",
        "python train.py", _per_node("mpi", 1)),
    "PyTorch, two per node": Guide(
        "script='train.py', arguments=['--epochs', 25],"
        " distributed_job_config=PyTorchConfiguration(process_count=4, node_count=2)",
        "python train.py --epochs 25", _per_node("pytorch", 2)),
    "PyTorch, per node, split": Guide(
        f"command='{_LAUNCH} --nproc_per_node 2 {_NODES} --use_env train.py --epochs 50'.split(),"
        " distributed_job_config=PyTorchConfiguration(node_count=2)",
        f"torchrun --nproc_per_node 2 {_NODES} train.py --epochs 50", _per_node("pytorch", 1)),
}  # fmt: skip


def program(guide: Guide) -> str:
    """A program that submits the job, its cluster by name and its environment as the guides name theirs."""
    return (
        f"{HEAD}\nenv = Environment.get(workspace=ws, name='AzureML-PyTorch-1.6-GPU')\n"
        f"config = ScriptRunConfig(source_directory='./src', {guide.v1},\n    compute_target='a100', environment=env)\n"
        f"run = Experiment(ws, 'experiment_name').submit(config)\n"
    )


def job(guide: Guide) -> dict[str, Any]:
    """The job file that the guides' v2 parts describe."""
    return {
        "type": "command",
        "experiment_name": "experiment_name",
        "code": "../src",
        "command": guide.command,
        "environment": ENVIRONMENT,
        "compute": "azureml:a100",
        **({"distribution": guide.distribution} if guide.distribution else {}),
        "resources": {"instance_count": guide.nodes},
    }
