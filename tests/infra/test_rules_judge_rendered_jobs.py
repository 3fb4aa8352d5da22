"""Rules judge the body that a job becomes, once, at a field of its declaration, and never what an error leads to."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import yaml

import jobs
from infra import judgement
from policies import config
from policies.gate import Gate
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

TODAY = date(2026, 8, 1)
A100 = jobs.Target("Standard_ND96asr_v4", "elsewhere")
CPU = jobs.Target("Standard_DS3_v2", "elsewhere")
NO_FABRIC = jobs.Target("Standard_NC96ads_A100_v4", "elsewhere")
QUIET = {"job-timeout": "disabled", "environment-pinned": "disabled", "shared-memory": "disabled"}


def found(declared: jobs.Declared, target: jobs.Target | None = None, **levels: Any) -> list[tuple[str, str, str]]:
    """Code, level and field of what is wrong with a declaration on a cluster of another stack."""

    def find(job: jobs.Job) -> tuple[jobs.Target, tuple[()]]:
        return target or jobs.Target(job.instance_type), ()

    planned = jobs.resolve(declared, find)
    gate = Gate(config.read({**QUIET, **levels}), TODAY)
    return [(one.code, str(one.level), one.where) for one in judgement.of_plan(gate, "run", planned, jobs.Source())]


def job(**fields: Any) -> jobs.Job:
    return jobs.Job(
        **{"command": "python train.py", "environment": "acpt-pytorch-2.8-cuda12.6", "compute": "elsewhere"} | fields
    )


@for_each("fields, target, expected", [
        ({"nodes": 2}, A100, []),
        ({"nodes": 2}, NO_FABRIC, [("sriov-fabric", "error", "compute")]),
        ({"nodes": 1}, NO_FABRIC, []),
        ({}, jobs.Target("Standard_NC24rs_v3", "elsewhere"), [("size-retired", "error", "compute")]),
        ({"nodes": 2}, jobs.Target("Standard_ND96asr_v5", "elsewhere"), [("size-unknown", "error", "compute")]),
        ({}, jobs.Target("Standard_ND96asr_v5", "elsewhere"), [("size-unknown", "warning", "compute")]),
        ({"launcher": jobs.TorchRun()}, jobs.Target("Standard_ND96asr_v5", "elsewhere"),
         [("size-unknown", "error", "compute")]),
        ({"compute": None}, jobs.Target("Standard_NC24rs_v3"), [("size-retired", "error", "compute")]),
        ({"compute": None, "instance_type": "Standard_NC24s_v3", "nodes": 2}, None,
         [("sriov-fabric", "error", "instance_type"), ("size-retired", "error", "instance_type")]),
        ({"compute": "local"}, jobs.Target(), []),
        ({"compute": "Local"}, jobs.Target("Standard_NC24rs_v3", "local"), []),
        ({"launcher": jobs.PerProcess(processes_per_node=16)}, A100, [("processes-beyond-gpus", "error", "launcher")]),
        ({"launcher": jobs.TorchRun(processes_per_node=16)}, A100, [("processes-beyond-gpus", "error", "launcher")]),
        ({"environment_variables": {"NCCL_IB_DISABLE": 1}, "nodes": 2}, A100,
         [("fabric-switched-off", "error", "environment_variables.NCCL_IB_DISABLE")]),
        ({"environment_variables": {"NCCL_IB_DISABLE": 1}}, A100, []),
        ({"environment_variables": {"NCCL_IB_DISABLE": 1}, "nodes": 2}, CPU, []),
        ({"command": "NCCL_IB_DISABLE=1 python t.py", "nodes": 2}, A100, [("fabric-switched-off", "error", "command")]),
        ({"docker_args": "-e NCCL_NET=Socket", "nodes": 2}, A100, [("fabric-switched-off", "error", "docker_args")]),
        ({"queue_settings": {"job_tier": "spot"}, "nodes": 2, "compute": None, "instance_type": "Standard_ND96asr_v4"},
         None, [("spot-checkpoint", "warning", "outputs")]),
])  # fmt: skip
def test_a_job_has_one_finding_for_each_mistake(
    fields: dict[str, Any], target: jobs.Target | None, expected: list[tuple[str, str, str]]
) -> None:
    assert found(job(**fields), target) == expected


def test_a_rule_that_a_plan_runs_has_the_configured_level() -> None:
    crowded = job(launcher=jobs.TorchRun(processes_per_node=16))

    assert found(crowded, A100, **{"processes-beyond-gpus": "advisory"})[0][1] == "warning"
    assert found(crowded, A100, **{"processes-beyond-gpus": "disabled"}) == []


BASE: dict[str, Any] = {
    "type": "command",
    "command": "python train.py",
    "environment": "azureml:mine:1",
    "compute": "azureml:elsewhere",
    "resources": {"instance_count": 2, "shm_size": "512g"},
    "limits": {"timeout": 3600},
    "outputs": {"model": {"type": "uri_folder", "mode": "rw_mount"}},
    "queue_settings": {"job_tier": "spot"},
}


@for_each("changed, expected", [
        ({}, []),
        ({"resources": {"instance_count": 2}}, ["shared-memory"]),
        ({"resources": {"instance_count": 2, "shm_size": 64}}, ["value-kind"]),
        ({"resources": {"instance_count": 2, "shm_sise": "512g"}}, ["key-unknown"]),
        ({"resources": {"instance_count": 2, "docker_args": 5}}, ["value-kind"]),
        ({"resources": 5}, ["value-kind"]),
        ({"resources": {"instance_count": "two", "shm_size": "512g"}}, ["value-kind"]),
        ({"limits": {}}, ["job-timeout"]),
        ({"limits": {"timeout": "1h"}}, ["value-kind"]),
        ({"limits": {"timout": 3600}}, ["key-unknown"]),
        ({"limits": "none"}, ["value-kind"]),
        ({"outputs": {}}, ["spot-checkpoint"]),
        ({"outputs": "model"}, ["value-kind"]),
        ({"environment": "azureml:mine@latest"}, ["environment-pinned"]),
        ({"environment": 5}, ["value-kind"]),
        ({"environment_variables": ["NCCL_IB_DISABLE=1"]}, ["value-kind"]),
        ({"distribution": {"type": "pytorch", "process_count_per_instance": "eight"}}, ["value-kind"]),
])  # fmt: skip
def test_a_value_that_cannot_be_read_has_no_consequences(
    tmp_path: Path, changed: dict[str, Any], expected: list[str]
) -> None:
    file = tmp_path / "job.yml"
    for text, prefix in (
        ({**BASE, **changed}, ""),
        ({"type": "pipeline", "jobs": {"train": {**BASE, **changed}}}, "jobs.train."),
    ):
        file.write_text(yaml.safe_dump(text))
        loaded = jobs.load(file)
        gate = Gate(config.read({}), TODAY)

        codes = [finding.code for finding in loaded.findings]
        for declared in loaded.jobs:
            planned = jobs.resolve(declared, lambda _: (A100, ()), source=loaded.source)
            codes += [one.code for one in judgement.of_plan(gate, "run", planned, loaded.source)]

        assert codes == expected, (prefix, loaded.findings)


COMPONENT = """\
type: command
name: crowded
version: 1
environment: azureml:mine:1
command: NCCL_IB_DISABLE=1 python train.py
"""
INNER = """\
type: pipeline
name: inner
version: 1
jobs:
  deep:
    type: command
    component: crowded.yml
    compute: azureml:elsewhere
    resources: {instance_count: 2, shm_size: 512g}
"""
OUTER = """\
type: pipeline
jobs:
  here:
    type: command
    command: python train.py
    environment: azureml:mine:1
    compute: azureml:elsewhere
    resources: {instance_count: 2, shm_size: 512g}
    distribution: {type: pytorch, process_count_per_instance: 9}
    limits: {timeout: 3600}
  there:
    type: command
    component: crowded.yml
    compute: azureml:elsewhere
    resources: {instance_count: 2, shm_size: 512g}
    limits: {timeout: 3600}
  below:
    type: pipeline
    component: inner.yml
"""


def test_findings_on_steps_lead_to_the_file_and_line_that_say_it(tmp_path: Path) -> None:
    for name, text in (("crowded.yml", COMPONENT), ("inner.yml", INNER), ("outer.yml", OUTER)):
        (tmp_path / name).write_text(text)
    loaded = jobs.load(tmp_path / "outer.yml")
    (declared,) = loaded.jobs
    planned = jobs.resolve(declared, lambda _: (A100, ()), source=loaded.source)

    found = judgement.of_plan(Gate(config.read(QUIET), TODAY), "run", planned, loaded.source)

    assert sorted((one.code, str(one.file).rpartition("/")[2], one.line) for one in found) == [
        ("fabric-switched-off", "crowded.yml", 5),
        ("fabric-switched-off", "crowded.yml", 5),
        ("processes-beyond-gpus", "outer.yml", 9),
    ]
