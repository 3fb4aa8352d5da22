"""TensorFlow's MultiWorkerMirroredStrategy on two nodes: one worker per node, which would use all its GPUs."""

from __future__ import annotations

from jobs import Job, TensorFlow

NODES = 2

job = Job(
    name="tensorflow-multiworker",
    command="python train.py --epochs ${{inputs.epochs}} --world-size ${{inputs.world_size}}",
    code=".",
    inputs={"epochs": 5, "world_size": NODES},
    environment="tensorflow-2.16-cuda12",
    compute="a100",
    nodes=NODES,
    launcher=TensorFlow(),
    experiment_name="examples",
    display_name="TensorFlow, MultiWorkerMirroredStrategy",
)
