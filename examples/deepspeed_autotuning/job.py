"""DeepSpeed's tuner on two nodes: it tries configurations, then trains with the best, without ssh and hostfile.

Azure ML starts `python -m amlnode deepspeed` on each node; what was found lies in outputs/autotuning_results.
"""

from __future__ import annotations

from jobs import DeepSpeed, Job, Limits

NODES = 2
# One, so that a laptop tunes it in a minute or two; 8 is the full width of Standard_ND96asr_v4, one rank per GPU.
RANKS_PER_NODE = 1

job = Job(
    name="deepspeed-autotuning",
    command="python train.py --epochs ${{inputs.epochs}} --world-size ${{inputs.world_size}}",
    code="../deepspeed_mpi",
    inputs={"epochs": 4, "world_size": NODES * RANKS_PER_NODE},
    environment="azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/13",
    compute="a100",
    limits=Limits(timeout="1h"),
    nodes=NODES,
    launcher=DeepSpeed(processes_per_node=RANKS_PER_NODE, config="ds_config_tuning.json", autotuning="run"),
    experiment_name="examples",
    display_name="DeepSpeed, autotuning",
)
