"""The training of ../ddp_torchrun on one node: torchrun there needs no rendezvous to find its ranks."""

from __future__ import annotations

from jobs import Job, Limits, SingleNode

# Two, so that a laptop trains it within a minute; 8 is the full width of Standard_ND96asr_v4, one rank per GPU,
# without CUDA_VISIBLE_DEVICES.
RANKS = 2

job = Job(
    name="single-node",
    command="python train.py --epochs ${{inputs.epochs}} --world-size ${{inputs.world_size}}",
    code="../ddp_torchrun",
    inputs={"epochs": 8, "world_size": RANKS},
    environment="azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/13",
    environment_variables={"CUDA_VISIBLE_DEVICES": "0,1"},
    compute="a100",
    limits=Limits(timeout="1h"),
    launcher=SingleNode(processes_per_node=RANKS),
    experiment_name="examples",
    display_name="Single node",
)
