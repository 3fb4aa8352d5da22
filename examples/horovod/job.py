"""Horovod on two nodes: mpirun starts the ranks, Horovod sums the gradients.

Azure ML has no curated image with Horovod that is still built; this is Horovod's own.
"""

from __future__ import annotations

from jobs import Environment, Horovod, Job, Limits

NODES = 2
# Two, so that a laptop trains it within a minute; 8 is the full width of Standard_ND96asr_v4, one rank per GPU,
# without CUDA_VISIBLE_DEVICES.
RANKS_PER_NODE = 2

job = Job(
    name="horovod",
    command="python train.py --epochs ${{inputs.epochs}} --world-size ${{inputs.world_size}}",
    code=".",
    inputs={"epochs": 5, "world_size": NODES * RANKS_PER_NODE},
    environment=Environment(image="horovod/horovod:0.28.1"),
    environment_variables={"CUDA_VISIBLE_DEVICES": "0,1"},
    compute="a100",
    limits=Limits(timeout="1h"),
    nodes=NODES,
    launcher=Horovod(processes_per_node=RANKS_PER_NODE),
    experiment_name="examples",
    display_name="Horovod",
)
