"""Open MPI starts one process per node, and `amlnode launch` there starts the node's ranks.

It replaces the `launch.py` of Azure's guides; `python -m amlnode write . launch.py` writes it as a file of that name.
"""

from __future__ import annotations

from jobs import Job, Limits, Mpi

NODES = 2
# Two, so that a laptop trains it within a minute; 8 is the full width of Standard_ND96asr_v4, one rank per GPU.
RANKS_PER_NODE = 2

job = Job(
    name="mpi-per-node",
    command=(
        f"python -m amlnode launch --nproc {RANKS_PER_NODE} train.py "
        "--epochs ${{inputs.epochs}} --world-size ${{inputs.world_size}}"
    ),
    code=".",
    inputs={"epochs": 6, "world_size": NODES * RANKS_PER_NODE},
    environment="azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/13",
    compute="a100",
    limits=Limits(timeout="1h"),
    nodes=NODES,
    launcher=Mpi(processes_per_node=1, backend="nccl"),
    experiment_name="examples",
    display_name="Open MPI, per node",
)
