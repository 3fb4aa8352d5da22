"""The published JSON Schema: current, valid, with every key that is read, right about files right and wrong."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from amlstack.base.paths import PROJECT
from amlstack.cli.main import main
from jobs.azureml import schema
from jobs.azureml.read import command, component, data, kinds, pipeline, sweep
from tests.support import yaml_files
from tests.support.jobs import other_step_cases, parity_cases, pipeline_cases, schedule_cases, sweep_cases
from tests.support.rows import for_each

PAGE = PROJECT / "docs" / "schema" / "job.schema.json"
CORPUS = [Path(os.environ["AMLSTACK_CORPUS"])] if os.environ.get("AMLSTACK_CORPUS") else []
FILES = [
    path
    for folder in (PROJECT / "examples", *CORPUS)
    for path in sorted(folder.rglob("*.y*ml"))
    if {"command", "jobs", "trial", "launcher"} & (yaml_files.load(path.read_text()) or {}).keys()
]
JOB: dict[str, Any] = {"command": "x", "environment": "azureml:e:1"}
SWEEP: dict[str, Any] = {key: value for key, value in sweep_cases.BASE.items() if value is not None}
SPELT_OTHERWISE = {
    "command": "environment-named input-types outputs environment-full pytorch pytorch-count-cut tensorflow mpi"
    " limits-cut queue identity-managed-identity identity-managed-client identity-user identity-token services",
    "sweep": "word-random word-grid random-sobol random-numbers random-logbase mapping-bayesian goal-in-capitals"
    " every-distribution bandit-amount median-camel trial-mpi policy-nulls median-nulls",
    "pipeline": "type-in-capitals pytorch mpi step-nulls sweep",
    "passthrough": "automl-ner-without-target parallel-inline-full",
    "schedule": "cron recurrence",
}
"""Words in other letters (`MPI`), null for nothing, numbers that are cut: taken by the loader, marked by the schema."""
TAKEN: dict[str, Any] = {
    f"{kind}-{case}": {**start, **(yaml_files.load(lines) or {})}
    for kind, start, cases in (
        ("command", yaml_files.load(parity_cases.text("")), parity_cases.ACCEPTED),
        ("sweep", SWEEP, sweep_cases.ACCEPTED),
        ("pipeline", {"type": "pipeline"}, pipeline_cases.ACCEPTED),
        ("passthrough", {"type": "pipeline"}, other_step_cases.ACCEPTED),
        ("schedule", {"name": "s"}, schedule_cases.ACCEPTED),
    )
    for case, lines in cases.items()
}


@cache
def job_schema() -> dict[str, Any]:
    return schema.job_files()


@cache
def validator() -> jsonschema.Draft7Validator:
    return jsonschema.Draft7Validator(job_schema())


def marks(content: Any) -> list[str]:
    """The errors that the schema marks in a file in which keys are text and dates are no dates."""
    return [error.message for error in validator().iter_errors(json.loads(json.dumps(content, default=str)))]


def keys_of(name: str) -> set[str]:
    return set(job_schema()["definitions"][name]["properties"])


def test_published_schema_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert PAGE.read_text(encoding="utf-8") == capsys.readouterr().out, "amlstack schema > docs/schema/job.schema.json"


def test_printed_schema_is_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == job_schema()
    jsonschema.Draft7Validator.check_schema(job_schema())


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_schema_marks_nothing_in_real_files(path: Path) -> None:
    assert marks(yaml_files.load(path.read_text())) == []


@for_each("case", TAKEN)
def test_schema_marks_only_other_spellings_of_what_azure_ai_ml_takes(case: str) -> None:
    kind, _, name = case.partition("-")
    marked = marks({key: value for key, value in TAKEN[case].items() if value is not None or key == "outputs"})
    assert bool(marked) == (name in SPELT_OTHERWISE[kind].split()), marked


@for_each(
    "name, read",
    [
        ("Job", {*command.KEYS, *command.READ_ONLY}),
        ("Sweep", {*sweep.KEYS, *command.READ_ONLY}),
        ("Pipeline", {*pipeline.KEYS, *command.READ_ONLY}),
        ("InlineStep", {*pipeline.INLINE, *command.READ_ONLY}),
        ("Schedule", {*kinds.SCHEDULE_KEYS, *kinds.SCHEDULE_READ_ONLY} - {"provisioning_state"}),
        ("Environment", {*command.ENVIRONMENT, "properties"}),
        ("Input", {*data.DATA_INPUT, "value"}),
        ("Output", {*data.OUTPUT, "description"}),
        ("SweepResources", {*command.RESOURCES}),
        ("Port", {*data.INPUT_PORT}),
        ("PipelineSettings", {*pipeline.SETTINGS}),
    ],
)
def test_schema_has_the_keys_that_are_read(name: str, read: set[str]) -> None:
    assert keys_of(name) == read


def test_blocks_that_take_any_key_describe_those_that_are_read() -> None:
    assert keys_of("Component") - {*component.KEYS} - {*command.READ_ONLY} == set()
    assert keys_of("Step") - {*pipeline.STEP} - {*command.READ_ONLY} == set()
    assert keys_of("SweepStep") - {*pipeline.SWEEP} - {*command.READ_ONLY} == set()


def test_schema_describes_each_key() -> None:
    def described(each: dict[str, Any]) -> bool:
        return bool({"description", "const", "$ref"} & each.keys()) or any(map(described, each.get("anyOf", ())))

    keys = {
        f"{name}.{key}": each
        for name, definition in job_schema()["definitions"].items()
        for key, each in definition.get("properties", {}).items()
    }
    assert len(keys) > 100
    assert [key for key, each in keys.items() if not described(each)] == []


@for_each(
    "file, lines",
    [
        *((JOB, f"{key}x: 1") for key in command.KEYS),
        *((SWEEP, f"{key}x: 1") for key in sweep.KEYS),
        *(({"type": "pipeline", "jobs": {}}, f"{key}x: 1") for key in pipeline.KEYS),
        (JOB, "command: 3"),
        (JOB, "type: pipelin"),
        (JOB, "environment: {image: x, imgae: y}"),
        (JOB, "inputs: {a: {tpye: uri_file}}"),
        (JOB, "inputs: {a: {type: uri_fil}}"),
        (JOB, "inputs: {a: [1]}"),
        (JOB, "outputs: {a: x}"),
        (JOB, "distribution: {type: pytorhc}"),
        (JOB, "distribution: {type: mpi, worker_count: 1}"),
        (JOB, "distribution: {type: mpi, process_count_per_instance: 0}"),
        (JOB, "distribution: {process_count_per_instance: 1}"),
        (JOB, "resources: {instance_cout: 2}"),
        (JOB, "resources: {instance_count: [2]}"),
        (JOB, "limits: {timeout: -1}"),
        (JOB, "limits: {timeout: soon}"),
        (JOB, "tags: {a: 1}"),
        (JOB, "tags: a"),
        (JOB, "identity: {type: me}"),
        (JOB, "queue_settings: {job_tier: gold}"),
        (JOB, "services: {a: {type: ssh, nodes: '0'}}"),
        (JOB, "compute:"),
        (SWEEP, "objective: {goal: best, primary_metric: x}"),
        (SWEEP, "search_space: {lr: {type: choise, values: [1]}}"),
        (SWEEP, "limits: {max_trials: 1}"),
        ({"type": "pipeline"}, "jobs: {a: {command: x, resources: {instance_cout: 1}}}"),
        ({"type": "pipeline"}, "jobs: {a: {component: 'azureml:c:1', distribution: {type: mp}}}"),
        ({"type": "pipeline"}, "jobs: {a: {component: {command: x, environment: 'azureml:e:1', inputs: {b: {}}}}}"),
        ({"name": "s", "create_job": "azureml:x"}, "trigger: {type: cron, expresion: x}"),
        ({"name": "s", "create_job": "azureml:x"}, "trigger: {type: recurrence, frequency: dayly, interval: 1}"),
    ],
)
def test_schema_marks_unknown_keys_wrong_words_and_wrong_types(file: dict[str, Any], lines: str) -> None:
    assert marks(file | yaml_files.load(lines))


def test_schema_marks_what_a_file_lacks() -> None:
    assert "'command' is a required property" in marks({"environment": "azureml:e:1"})
    assert "'trial' is a required property" in marks({"type": "sweep"})
