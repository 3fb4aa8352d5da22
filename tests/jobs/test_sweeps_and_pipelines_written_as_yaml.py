"""Sweeps and pipelines are written as YAML that reads as the same, and their steps keep what was added."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import jobs
from jobs.azureml.write import file_of
from tests.support import yaml_files
from tests.support.jobs import other_step_cases, pipeline_cases, sweep_cases
from tests.support.jobs.written_files import body, specs
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path


def enriched(path: Path) -> Any:
    loaded = jobs.load(path)
    (declared,) = loaded.jobs
    return jobs.resolve(declared, lambda _: (jobs.Target(), ()), source=loaded.source).enriched


@for_each("case", sweep_cases.ACCEPTED)
def test_a_sweep_survives_the_round_trip(case: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first.yml", tmp_path / "second.yml"
    result = {**sweep_cases.BASE, **(yaml_files.load(sweep_cases.ACCEPTED[case]) or {})}
    first.write_text(yaml_files.dump(result))
    before = enriched(first)
    second.write_text(yaml_files.dump(file_of(before)))
    assert body(enriched(second)) == body(before)


PIPELINES = {**pipeline_cases.ACCEPTED, **other_step_cases.ACCEPTED}


@for_each("case", PIPELINES)
def test_a_pipeline_survives_the_round_trip(case: str, tmp_path: Path) -> None:
    pipeline_cases.folder(tmp_path)
    other_step_cases.folder(tmp_path)
    first, second = tmp_path / "first.yml", tmp_path / "second.yml"
    first.write_text(f"type: pipeline\n{PIPELINES[case]}")
    before = enriched(first)
    second.write_text(yaml_files.dump(file_of(before)))
    after = enriched(second)
    assert body(after) == body(before)
    assert specs(after) == specs(before)


TRAINER = jobs.Component(
    command="env -0; train.py --lr ${{inputs.lr}}",
    environment="acpt-pytorch-2.8-cuda12.6",
    launcher=jobs.PerProcess(processes_per_node=8),
    nodes=2,
    inputs={"lr": jobs.Port(type="number")},
)


def planned(trial: jobs.Component) -> jobs.PipelinePlan:
    step = jobs.SweepStep(
        trial=trial,
        compute="a100",
        search_space={"lr": jobs.Uniform(min_value=0, max_value=1)},
        objective=jobs.Objective(primary_metric="loss", goal="minimize"),
        limits=jobs.SweepLimits(max_total_trials=2),
        sampling_algorithm="random",
    )
    target = jobs.Target("Standard_ND96asr_v4", "a100", 2)
    plan = jobs.resolve(jobs.Pipeline(jobs={"tune": step}), lambda _: (target, ()))
    assert isinstance(plan, jobs.PipelinePlan)
    assert plan.findings == ()
    return plan


def command_of(plan: jobs.PipelinePlan) -> str:
    (body,) = jobs.render(plan.enriched).components.values()
    return str(body["properties"]["componentSpec"]["command"])


def test_what_the_plan_adds_is_set_by_the_command_itself() -> None:
    plan = planned(TRAINER.model_copy(update={"command": "python -m amlnode preflight && " + TRAINER.command,
                                              "code": jobs.Code(path=".")}))  # fmt: skip
    (part,) = plan.parts.values()
    added = part.enriched.environment_variables
    assert {"NCCL_IB_PCI_RELAXED_ORDERING", "AMLSTACK_PLAN"} <= added.keys()
    setting, _, rest = command_of(plan).partition("; ")
    assert rest.startswith("python -m amlnode preflight && env -0")
    ran = subprocess.run(["bash", "-c", f"{setting}; env -0"], capture_output=True, text=True, check=True, env={})
    seen = dict(line.split("=", 1) for line in ran.stdout.split("\0") if line)
    assert {name: seen[name] for name in added} == {name: str(value) for name, value in added.items()}
    assert json.loads(seen["AMLSTACK_PLAN"])["gpus"] == 8


def test_a_command_in_azure_mls_own_words_stays_as_it_is() -> None:
    own = jobs.Component(command="train.py ${{inputs.lr}}", environment="azureml:e:1", inputs=TRAINER.inputs, nodes=2)
    assert command_of(planned(own)) == own.command
