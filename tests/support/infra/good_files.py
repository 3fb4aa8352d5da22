"""Good job files and settings, one of each kind, with the files that they name."""

from __future__ import annotations

COMMAND = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
name: train
command: python train.py --epochs ${{inputs.epochs}} --data ${{inputs.data}} --out ${{outputs.model}}
code: src
environment: azureml:acpt@latest
inputs:
  epochs: 3
  data: {type: uri_folder, path: azureml://datastores/d/paths/x, mode: ro_mount}
outputs:
  model: {type: uri_folder, mode: rw_mount}
environment_variables: {NCCL_DEBUG: INFO}
compute: azureml:a100
distribution: {type: pytorch, process_count_per_instance: 8}
resources: {instance_count: 2, shm_size: 64g, docker_args: --ipc=host}
limits: {timeout: 900}
identity: {type: managed, client_id: c}
queue_settings: {job_tier: spot, priority: low}
services:
  board: {type: tensor_board, log_dir: outputs, nodes: all}
tags: {team: a}
"""
SWEEP = """\
type: sweep
trial:
  command: python train.py --lr ${{search_space.lr}}
  code: src
  environment: {image: "mcr.microsoft.com/x:1", conda_file: conda.yml}
compute: azureml:a100
sampling_algorithm: {type: random, seed: 3, rule: sobol}
search_space:
  lr: {type: loguniform, min_value: -6, max_value: -1}
  batch: {type: choice, values: [16, 32]}
objective: {primary_metric: loss, goal: minimize}
limits: {max_total_trials: 4, max_concurrent_trials: 2, trial_timeout: 600}
early_termination: {type: bandit, slack_factor: 0.1, evaluation_interval: 1}
"""
PIPELINE = """\
type: pipeline
settings: {default_compute: azureml:a100, continue_on_step_failure: true}
inputs: {samples: 512}
outputs:
  report: {type: uri_folder}
jobs:
  prepare:
    command: python prepare.py --samples ${{inputs.samples}} --data ${{outputs.data}}
    code: src
    environment: azureml:e:1
    inputs: {samples: "${{parent.inputs.samples}}"}
    outputs: {data: {type: uri_folder}}
  train:
    type: command
    component: ./component.yml
    inputs: {data: "${{parent.jobs.prepare.outputs.data}}"}
    outputs: {model: "${{parent.outputs.report}}"}
    resources: {instance_count: 2}
  tune:
    type: sweep
    trial: ./component.yml
    inputs: {data: {type: uri_folder, path: "azureml:d:1"}}
    search_space: {lr: {type: uniform, min_value: 0, max_value: 1}}
    objective: {primary_metric: loss, goal: minimize}
    limits: {max_total_trials: 2}
  score:
    type: parallel
    mini_batch_size: "10"
    input_data: ${{inputs.data}}
    task: {type: run_function, code: src, entry_script: score.py, environment: azureml:e:1}
    inputs: {data: {type: mltable, path: azureml:d:1}}
  inner:
    type: pipeline
    component: ./inner.yml
"""
SCHEDULE = """\
name: nightly
trigger: {type: recurrence, frequency: day, interval: 1, schedule: {hours: [2], minutes: [0]}, time_zone: UTC}
create_job: ./nightly.yml
"""
COMPONENT = """\
name: c
version: 1
type: command
inputs:
  data: {type: uri_folder}
  lr: {type: number, default: 0.1, optional: true}
outputs: {model: {type: uri_folder}}
command: python train.py $[[--lr ${{inputs.lr}}]] ${{inputs.data}} ${{outputs.model}}
code: src
environment: azureml:e:1
"""
INNER = "type: pipeline\njobs:\n  a: {type: command, component: ./plain.yml}\n"
PLAIN = "type: command\ncommand: echo\nenvironment: azureml:e:1\n"
PYTHON = """\
from jobs import Bandit, Choice, Cron, Input, Job, Limits, Objective, Output, Pipeline, PerProcess, Random, Schedule
from jobs import SingleNode, Sweep, SweepLimits, TorchRun, Uniform

train = Job(
    name="train",
    command="python train.py --lr ${{inputs.lr}}",
    code="src",
    inputs={"lr": 0.1, "data": Input(path="azureml:d:1")},
    outputs={"model": Output(type="uri_folder", mode="rw_mount")},
    environment="acpt-pytorch-2.8-cuda12.6",
    environment_variables={"NCCL_DEBUG": "INFO"},
    compute="a100",
    nodes=2,
    launcher=TorchRun(processes_per_node=8),
    limits=Limits(timeout=3600),
    tags={"team": "a"},
)
sweep = Sweep(
    trial=train,
    search_space={"lr": Uniform(min_value=0, max_value=1), "b": Choice(values=(1, 2))},
    objective=Objective(primary_metric="loss", goal="minimize"),
    sampling_algorithm=Random(seed=7),
    limits=SweepLimits(max_total_trials=4),
    early_termination=Bandit(slack_factor=0.5),
)
nightly = Schedule(
    name="n", trigger=Cron(expression="0 2 * * *"), create_job=Pipeline(name="p", jobs={"train": train})
)
job = train
"""
SETTINGS = """\
config:
  amlstack:location: westeurope
  amlstack:workspace: aml-team
  amlstack:tags: {team: a}
  amlstack:clusters:
    - name: a100
      size: Standard_ND96asr_v4
      nodes: {min: 0, max: 2, idle: PT10M}
      priority: dedicated
      tags: {x: y}
    - {name: cpu, size: Standard_DS3_v2, nodes: {max: 1}, single_node_jobs: true}
    - include: clusters.yml
  amlstack:environments:
    - acpt-pytorch-2.8-cuda12.6
    - {name: own, image: "mcr.microsoft.com/x:1", conda: conda.yml}
  amlstack:jobs:
    - good.yml
    - {file: nightly.yml, rerun: again, on_edit: keep, wait: started}
  amlstack:policies: rules.json
"""
YAMLS = {"command": COMMAND, "sweep": SWEEP, "pipeline": PIPELINE, "schedule": SCHEDULE, "component": COMPONENT}
NEIGHBOURS = {
    "src/train.py": "print(1)\n",
    "good.yml": COMMAND,
    "component.yml": COMPONENT,
    "inner.yml": INNER,
    "plain.yml": PLAIN,
    "nightly.yml": f"type: pipeline\nsettings: {{default_compute: azureml:a100}}\n{INNER.partition(chr(10))[2]}",
    "conda.yml": "dependencies: [python]\n",
    "clusters.yml": "- {name: more, size: Standard_DS3_v2, nodes: {max: two}, tags: {x: {secure: v1}}}\n- 7\n",
    "rules.json": "{}",
}
"""Files that the bad ones may name."""
