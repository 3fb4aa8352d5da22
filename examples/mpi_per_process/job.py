"""Open MPI starts every rank: mpirun over two nodes, with the functions of `aml_mpienv.py` from Azure's guides."""

from __future__ import annotations

from jobs import Job, Limits, Mpi

NODES = 2
# Two, so that a laptop trains it within a minute; 8 is the full width of Standard_ND96asr_v4, one rank per GPU,
# without CUDA_VISIBLE_DEVICES.
RANKS_PER_NODE = 2

job = Job(
    name="mpi-per-process",
    command="python train.py --epochs ${{inputs.epochs}} --world-size ${{inputs.world_size}}",
    code=".",
    inputs={"epochs": 6, "world_size": NODES * RANKS_PER_NODE},
    environment="azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/13",
    environment_variables={"CUDA_VISIBLE_DEVICES": "0,1"},
    compute="a100",
    limits=Limits(timeout="1h"),
    nodes=NODES,
    # mpirun only starts the ranks here: NCCL carries their collectives.
    launcher=Mpi(processes_per_node=RANKS_PER_NODE, backend="nccl"),
    experiment_name="examples",
    display_name="Open MPI, per process",
)
