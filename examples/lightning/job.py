"""PyTorch Lightning on two nodes: one process per node, whose Trainer starts that node's ranks."""

from __future__ import annotations

from jobs import Job, Lightning, Limits

NODES = 2
# Two, so that a laptop trains it within a minute; 8 is the full width of Standard_ND96asr_v4, one rank per GPU,
# without CUDA_VISIBLE_DEVICES.
RANKS_PER_NODE = 2

job = Job(
    name="lightning",
    command="python train.py --epochs ${{inputs.epochs}} --world-size ${{inputs.world_size}}",
    code=".",
    inputs={"epochs": 5, "world_size": NODES * RANKS_PER_NODE},
    environment="azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/13",
    environment_variables={"CUDA_VISIBLE_DEVICES": "0,1"},
    compute="a100",
    limits=Limits(timeout="1h"),
    nodes=NODES,
    launcher=Lightning(processes_per_node=RANKS_PER_NODE, arguments="flags"),
    experiment_name="examples",
    display_name="Lightning",
)
