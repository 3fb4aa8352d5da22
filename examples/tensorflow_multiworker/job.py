"""TensorFlow's MultiWorkerMirroredStrategy on two nodes: one worker per node, which would use all its GPUs."""

from __future__ import annotations

from jobs import Job, Limits, TensorFlow

NODES = 2

job = Job(
    name="tensorflow-multiworker",
    command="python train.py --epochs ${{inputs.epochs}} --world-size ${{inputs.world_size}}",
    code=".",
    inputs={"epochs": 5, "world_size": NODES},
    environment="azureml://registries/azureml/environments/tensorflow-2.16-cuda12/versions/30",
    compute="a100",
    limits=Limits(timeout="1h"),
    nodes=NODES,
    launcher=TensorFlow(),
    experiment_name="examples",
    display_name="TensorFlow, MultiWorkerMirroredStrategy",
)
