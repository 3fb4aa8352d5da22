"""A pipeline of two steps, one of them a component of its own file, and a stack that has what both need."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from amlstack.base.paths import PROJECT
from infra.declaration import Declaration, declare
from infra.settings import read_file

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.harness import Stack
    from tests.support.running import MakeStack, Sandbox

TODAY = date(2026, 7, 1)
STACK = """\
config:
  amlstack:location: westeurope
  amlstack:workspace: {name: aml-team, public_network: true}
  amlstack:clusters:
    - {name: a100, size: Standard_ND96asr_v4, nodes: {max: 2}}
    - {name: cpu, size: Standard_D2s_v3, nodes: {max: 4}}
  amlstack:environments: [{name: mine, image: "ubuntu:24.04"}]
"""
"""A test adds its ``amlstack:jobs``."""
PIPELINE = """\
type: pipeline
settings: {default_compute: "azureml:cpu"}
jobs:
  prepare:
    command: python prepare.py ${{outputs.data}}
    code: prepare
    environment: azureml:mine
    outputs: {data: {type: uri_folder}}
  train:
    component: ./train.yml
    inputs: {data: "${{parent.jobs.prepare.outputs.data}}"}
    compute: azureml:a100
    distribution: {type: pytorch, process_count_per_instance: 8}
    resources: {instance_count: 2}
    limits: {timeout: 3600}
"""
COMPONENT = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
command: python train.py ${{inputs.data}}
code: ./train
environment: azureml:mine
inputs: {data: {type: uri_folder}}
"""
NIGHTLY = """\
name: nightly
trigger: {type: cron, expression: "0 2 * * *", start_time: "2026-07-02T00:00:00"}
create_job: ./pipeline.yml
"""
WEEKLY = """\
from jobs import Job, Pattern, Pipeline, Recurrence, Schedule, TorchRun

job = Schedule(
    name="weekly",
    trigger=Recurrence(frequency="week", interval=1, schedule=Pattern(hours=(4,), minutes=(0,), week_days=("monday",))),
    create_job=Pipeline(
        jobs={
            "train": Job(
                command="train.py",
                code="train",
                environment="acpt-pytorch-2.8-cuda12.6",
                compute="a100",
                nodes=2,
                launcher=TorchRun(),
            )
        }
    ),
)
"""


def written(folder: Path, files: dict[str, str]) -> Path:
    """The pipeline, its component and the code of both, and ``files``, among them the stack's."""
    for name in ("prepare", "train"):
        (folder / name).mkdir()
        (folder / name / f"{name}.py").write_text(f"print('{name}')\n")
    for name, text in {"pipeline.yml": PIPELINE, "train.yml": COMPONENT, **files}.items():
        (folder / name).write_text(text)
    return folder


def judged(project: Path) -> Declaration:
    """The declarations of the folder's stack, and their faults."""
    return declare(read_file(project / "Pulumi.team.yaml"), on=TODAY, root=project)


def errors(project: Path) -> list[str]:
    """The faults, in words."""
    return [str(finding) for finding in judged(project).findings if finding.level == "error"]


def deployable(stack: MakeStack, sandbox: Sandbox, workspace: str, *jobs: Path) -> Stack:
    """The same stack for the real engine."""
    one = stack(PROJECT, sandbox=sandbox).set("amlstack:location", "westeurope").set("amlstack:workspace", workspace)
    sizes = {"a100": ("Standard_ND96asr_v4", 2), "cpu": ("Standard_D2s_v3", 4)}
    clusters = [{"name": name, "size": size, "nodes": {"max": high}} for name, (size, high) in sizes.items()]
    one.set("amlstack:clusters", clusters).set("amlstack:environments", [{"name": "mine", "image": "ubuntu:24.04"}])
    return one.set("amlstack:jobs", [str(job) for job in jobs])
