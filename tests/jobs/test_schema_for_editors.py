"""The published JSON Schema: current, valid, with every key that is read, right about files right and wrong."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import parity_cases as cases
import pytest
import sweep_cases
import yaml

from amlstack.cli.main import main
from amlstack.paths import PROJECT
from jobs.azureml import command, schema, sweep

if TYPE_CHECKING:
    from pathlib import Path

PAGE = PROJECT / "docs" / "schema" / "job.schema.json"
VALIDATOR = jsonschema.Draft7Validator(schema.job_files())
EXAMPLES = [
    path
    for path in sorted((PROJECT / "examples").rglob("*.yml"))
    if "command" in (yaml.safe_load(path.read_text()) or {}) or "jobs" in (yaml.safe_load(path.read_text()) or {})
]
MARKED = {"pytorch-count-cut", "limits-cut"}
"""Taken with a warning."""


def plain(value: Any) -> Any:
    """A YAML value as an editor has it: text for dates, and keys that are text."""
    return json.loads(json.dumps(value, default=str))


def faults(told: Any) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(plain(told))]


def test_the_published_schema_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert PAGE.read_text(encoding="utf-8") == capsys.readouterr().out, "amlstack schema > docs/schema/job.schema.json"


def test_it_is_a_schema() -> None:
    jsonschema.Draft7Validator.check_schema(schema.job_files())


def test_it_has_every_key_that_is_read_and_says_what_each_is() -> None:
    keys = schema.command_keys()
    assert set(keys) == {*command.KEYS, *command.READ_ONLY}
    assert set(schema.sweep_keys()) == {*sweep.KEYS, *command.READ_ONLY}
    assert [key for key, each in keys.items() if "description" not in each] == ["$schema"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_examples_are_right(path: Path) -> None:
    assert faults(yaml.safe_load(path.read_text())) == []


@pytest.mark.parametrize("case", sorted({*cases.ACCEPTED} - MARKED))
def test_what_azure_ai_ml_takes_is_not_marked(case: str) -> None:
    assert faults(yaml.safe_load(cases.text(cases.ACCEPTED[case]))) == []


@pytest.mark.parametrize("case", sorted(MARKED))
def test_what_only_warns_is_marked(case: str) -> None:
    assert faults(yaml.safe_load(cases.text(cases.ACCEPTED[case])))


@pytest.mark.parametrize("case", sweep_cases.ACCEPTED)
def test_sweeps_that_azure_ai_ml_takes_are_not_marked(case: str) -> None:
    told = {**sweep_cases.BASE, **(yaml.safe_load(sweep_cases.ACCEPTED[case]) or {})}
    assert faults({key: value for key, value in told.items() if value is not None}) == []


def test_pipelines_are_let_through() -> None:
    assert faults({"type": "pipeline", "jobs": {"a": {"type": "command"}}}) == []


@pytest.mark.parametrize(
    "lines",
    [
        "comand: x\n",
        "command: 3\n",
        "type: pipelin\n",
        "environment: acpt\n",
        "environment: {}\n",
        "environment: {image: x, build: {path: y}}\n",
        "environment: {image: x, imgae: y}\n",
        "inputs: {a: {tpye: uri_file}}\n",
        "inputs: {a: {type: uri_fil}}\n",
        "inputs: {a: [1]}\n",
        "inputs: {a-b: 1}\n",
        "outputs: {a: x}\n",
        "distribution: {type: pytorhc}\n",
        "distribution: {type: mpi, worker_count: 1}\n",
        "distribution: {type: mpi, process_count_per_instance: 0}\n",
        "distribution: {process_count_per_instance: 1}\n",
        "resources: {instance_cout: 2}\n",
        "resources: {instance_count: two}\n",
        "limits: {timeout: -1}\n",
        "limits: {timeout: soon}\n",
        "tags: {a: 1}\n",
        "tags: a\n",
        "identity: {type: me}\n",
        "queue_settings: {job_tier: gold}\n",
        "services: {a: {type: ssh, nodes: '0'}}\n",
        "compute:\n",
    ],
)
def test_what_is_wrong_is_marked(lines: str) -> None:
    assert faults(yaml.safe_load(cases.text(lines)))


def test_a_file_without_a_command_is_marked() -> None:
    assert "'command' is a required property" in faults({"environment": "azureml:e:1"})
    assert "'trial' is a required property" in faults({"type": "sweep"})
