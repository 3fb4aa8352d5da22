"""Job files of the walk: tiny, on CPUs, with one image that is built by nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import yaml

from amlstack.base import paths

if TYPE_CHECKING:
    from amlstack.prove.proof import Proof

IMAGE: Final = "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04"
"""Python and Open MPI; an environment of an image alone is not built."""
_TORCH: Final = "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/labels/latest"
_RENDEZVOUS: Final = "--nnodes 2 --node_rank $NODE_RANK --master_addr $MASTER_ADDR --master_port $MASTER_PORT"
_COMMON: Final[dict[str, Any]] = {"environment": "azureml:prove@latest", "compute": "azureml:cpu"}
_RANK: Final = "import os; print('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])"
_MPI: Final = "import os; print('rank', os.environ['OMPI_COMM_WORLD_RANK'], 'of', os.environ['OMPI_COMM_WORLD_SIZE'])"


def _command(command: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": command, **_COMMON, **more}


def _two_nodes(command: str, kind: str) -> dict[str, Any]:
    distribution = {"type": kind, "process_count_per_instance": 1}
    return _command(command, distribution=distribution, resources={"instance_count": 2}, limits={"timeout": 1200})


FILES: Final[dict[str, dict[str, Any]]] = {
    "torchrun": {
        **_two_nodes(f"torchrun {_RENDEZVOUS} --nproc_per_node 1 rank.py", "pytorch"),
        "environment": _TORCH,
        "code": "src",
    },
    "mpi": {**_two_nodes("python rank_mpi.py", "mpi"), "code": "src"},
    "hello": _command("echo hello"),
    "endless": _command("exec sleep 3600", limits={"timeout": 3600}),
    "sweep": {
        "type": "sweep",
        "trial": {"command": "echo ${{search_space.lr}}", "environment": _COMMON["environment"]},
        "compute": _COMMON["compute"],
        "search_space": {"lr": {"type": "choice", "values": [0.1, 0.2]}},
        "sampling_algorithm": "grid",
        "objective": {"primary_metric": "loss", "goal": "minimize"},
        "limits": {"max_total_trials": 2, "max_concurrent_trials": 2, "timeout": 1800},
    },
    "pipeline": {
        "type": "pipeline",
        "settings": {"default_compute": _COMMON["compute"]},
        "jobs": {
            "make": {
                "type": "command",
                "command": "echo 1 > ${{outputs.made}}/one.txt",
                "environment": _COMMON["environment"],
                "outputs": {"made": {"type": "uri_folder"}},
            },
            "read": {
                "type": "command",
                "command": "cat ${{inputs.made}}/one.txt",
                "environment": _COMMON["environment"],
                "inputs": {"made": "${{parent.jobs.make.outputs.made}}"},
            },
        },
    },
    "nightly": {
        "name": "nightly",
        "trigger": {"type": "cron", "expression": "0 3 1 1 *", "start_time": "2035-01-01T00:00:00"},
        "create_job": "./pipeline.yml",
    },
}


def write(proof: Proof) -> str:
    """Write them below the project; the folder's path in it."""
    folder = proof.folder / "jobs"
    (folder / "src").mkdir(parents=True, exist_ok=True)
    (folder / "data").mkdir(exist_ok=True)
    (folder / "src" / "rank.py").write_text(_RANK + "\n", "utf-8")
    (folder / "src" / "rank_mpi.py").write_text(_MPI + "\n", "utf-8")
    (folder / "data" / "numbers.csv").write_text("1,2\n3,4\n", "utf-8")
    for name, content in FILES.items():
        named = content if "name" in content else {"name": name, **content}
        (folder / f"{name}.yml").write_text(yaml.safe_dump(named, sort_keys=False), "utf-8")
    return str(folder.relative_to(paths.PROJECT))
