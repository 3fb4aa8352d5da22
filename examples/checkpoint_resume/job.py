"""A training that survives pre-emption: its checkpoints lie in a mounted output, and starting it again resumes.

For clusters whose priority is LowPriority. A node that is taken away takes `outputs/` along; a mount stays. Try it:
`amlstack sandbox evict checkpoint-resume --node 1` while it runs, then start the job again (`rerun`).
"""

from __future__ import annotations

from jobs import Job, Limits, Output, PerProcess

NODES = 2

job = Job(
    name="checkpoint-resume",
    command=(
        "python train.py --epochs ${{inputs.epochs}} --world-size ${{inputs.world_size}} "
        "--checkpoints ${{outputs.checkpoints}}"
    ),
    code=".",
    inputs={"epochs": 8, "world_size": NODES},
    # A path of its own: by default every run would have another folder, and none would find the last one's.
    outputs={
        "checkpoints": Output(
            mode="rw_mount", path="azureml://datastores/workspaceblobstore/paths/checkpoints/checkpoint-resume"
        )
    },
    environment="azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/13",
    compute="a100",
    limits=Limits(timeout="1h"),
    nodes=NODES,
    launcher=PerProcess(processes_per_node=1),
    experiment_name="examples",
    display_name="Checkpoints and resumption",
)
