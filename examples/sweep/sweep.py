"""A learning rate and a momentum tuned: each trial logs its loss to MLflow, trials that fall behind are ended."""

from __future__ import annotations

from jobs import Bandit, Choice, Job, LogUniform, Objective, Random, SingleNode, Sweep, SweepLimits

job = Sweep(
    name="sweep",
    trial=Job(
        command=(
            "python train.py --epochs ${{inputs.epochs}}"
            " --lr ${{search_space.lr}} --momentum ${{search_space.momentum}}"
        ),
        code=".",
        inputs={"epochs": 6},
        environment="azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/13",
        environment_variables={"CUDA_VISIBLE_DEVICES": "0"},
        compute="a100",
        launcher=SingleNode(processes_per_node=1),
    ),
    search_space={"lr": LogUniform(min_value=-8, max_value=-2), "momentum": Choice(values=(0.0, 0.9))},
    objective=Objective(primary_metric="loss", goal="minimize"),
    sampling_algorithm=Random(rule="sobol", seed=7),
    limits=SweepLimits(max_total_trials=4, max_concurrent_trials=2, trial_timeout=600),
    early_termination=Bandit(slack_factor=0.5, evaluation_interval=2, delay_evaluation=2),
    experiment_name="examples",
    display_name="Sweep",
)
