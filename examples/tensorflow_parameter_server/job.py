"""TensorFlow with a parameter server on two nodes: the first worker coordinates, the others compute."""

from __future__ import annotations

from jobs import Job, Limits, TensorFlow

WORKERS = 4

job = Job(
    name="tensorflow-parameter-server",
    command="python train.py --epochs ${{inputs.epochs}} --world-size ${{inputs.world_size}}",
    code=".",
    inputs={"epochs": 5, "world_size": WORKERS},
    environment="azureml://registries/azureml/environments/tensorflow-2.16-cuda12/versions/30",
    compute="a100",
    limits=Limits(timeout="1h"),
    nodes=2,
    launcher=TensorFlow(workers=WORKERS, parameter_servers=1),
    experiment_name="examples",
    display_name="TensorFlow, parameter server",
)
