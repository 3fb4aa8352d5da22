"""Judges a cluster before money is spent on it: every node's hardware, settings and clock, then all-reduce over all.

`wait` makes it a gate: what depends on it starts only when it has completed. In front of a training of your own write
`python -m amlnode preflight && python train.py`.
"""

from __future__ import annotations

from jobs import Job, Limits, PerProcess

job = Job(
    name="preflight",
    command="python -m amlnode preflight && python -m amlnode bandwidth",
    code=".",
    environment="azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/13",
    environment_variables={"CUDA_VISIBLE_DEVICES": "0,1"},
    compute="a100",
    limits=Limits(timeout="1h"),
    nodes=2,
    # Two, so that a laptop rehearses it quickly. On the cluster leave it and the variable out: that means one per GPU,
    # and only that fills the fabric and is held against the bandwidth that the catalogue expects.
    launcher=PerProcess(processes_per_node=2),
    wait="completed",
    experiment_name="examples",
    display_name="Preflight and bandwidth",
)
