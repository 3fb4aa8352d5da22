"""The training of ../ddp_torchrun, every night at two: a pipeline of one step, as Azure ML schedules nothing else."""

from __future__ import annotations

from jobs import Cron, Job, Limits, Pipeline, Schedule, TorchRun

job = Schedule(
    name="nightly-ddp",
    display_name="DDP every night",
    # Without a start the first job would begin as soon as the schedule is made.
    trigger=Cron(expression="0 2 * * *", start_time="2026-07-01T00:00:00"),
    create_job=Pipeline(
        display_name="Nightly DDP",
        experiment_name="examples",
        jobs={
            "train": Job(
                command="train.py --epochs 8",
                code="../ddp_torchrun",
                environment="azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/13",
                environment_variables={"CUDA_VISIBLE_DEVICES": "0,1"},
                compute="a100",
                nodes=2,
                limits=Limits(timeout=3600),
                launcher=TorchRun(processes_per_node=2),
            )
        },
    ),
)
