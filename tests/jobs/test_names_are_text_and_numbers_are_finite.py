"""Names in a job file are text, and its numbers are such as JSON can say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

import jobs
from jobs import load
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

JOB: dict[str, Any] = {"command": "x", "environment": "azureml:e:1"}
NUMBERED = {1: "a"}


def step(result: dict[Any, Any]) -> dict[str, Any]:
    return {"type": "pipeline", "jobs": {"t": result}}


def trial(result: dict[Any, Any]) -> dict[str, Any]:
    rest = {"objective": {"goal": "maximize", "primary_metric": "a"}, "limits": {"max_total_trials": 1}}
    return step({"type": "sweep", "trial": "azureml:c:1", **rest, **result})


REFUSED = {
    "tags": {**JOB, "tags": NUMBERED},
    "conda-file": {**JOB, "environment": {"image": "x", "conda_file": NUMBERED}},
    "environment-tags": {**JOB, "environment": {"image": "x", "tags": NUMBERED}},
    "inference": {**JOB, "environment": {"image": "x", "inference_config": NUMBERED}},
    "resources": {**JOB, "resources": {"properties": NUMBERED}},
    "settings": {"type": "pipeline", "settings": NUMBERED},
    "steps": {"type": "pipeline", "jobs": {1: JOB}},
    "step-of-a-component": step({"component": "azureml:c:1", **NUMBERED}),
    "sweep-step": trial(NUMBERED),
    "parallel-step": step({"type": "parallel", "component": "azureml:c:1", **NUMBERED}),
    "spark-settings": step({"type": "spark", "entry": {"file": "a.py"}, "conf": NUMBERED}),
    "component": step({"component": {**JOB, **NUMBERED}}),
    "component-properties": step({"component": {**JOB, "properties": NUMBERED}}),
    "component-inputs": step({"component": {**JOB, "inputs": {1: {"type": "string"}}}}),
    "spark-component": step({"type": "spark", "component": {"entry": {"file": "a.py"}, "properties": NUMBERED}}),
}
ACCEPTED = {
    "services": {**JOB, "services": {"a": {"type": "ssh", "properties": NUMBERED}}},
    "variables": {**JOB, "environment_variables": NUMBERED},
    "component-variables": step({"component": {**JOB, "environment_variables": NUMBERED}}),
}
"""azure-ai-ml makes text of these."""


def errors(folder: Path, result: dict[str, Any]) -> list[str]:
    path = folder / "job.yml"
    path.write_text(yaml.safe_dump(result))
    return [each.code for each in load(path).findings if each.level == "error"]


@for_each("case", REFUSED)
def test_a_number_as_a_name_is_one_finding(case: str, tmp_path: Path) -> None:
    assert errors(tmp_path, REFUSED[case]) == ["name-kind"]


@pytest.mark.parametrize("case", ACCEPTED)
def test_a_number_that_becomes_text_is_taken(case: str, tmp_path: Path) -> None:
    assert errors(tmp_path, ACCEPTED[case]) == []


YAML = "command: python -V\nenvironment: azureml:e:1\ncompute: azureml:c\n"
PYTHON = "from jobs import Job\njob = Job(command='python -V', environment='azureml:e:1', {})\n"


@pytest.mark.parametrize(
    ("key", "where"),
    [
        ("environment_variables: {A: .nan, B: 1}", "environment_variables.A"),
        ("inputs: {lr: -.inf}", "inputs.lr"),
        ("resources: {properties: {x: {y: [1, .inf]}}}", "resources.properties.x.y[1]"),
        ("services: {s: {type: ssh, properties: {p: .nan}}}", "services.s.properties.p"),
    ],
)
def test_a_number_that_is_not_finite_is_a_finding_at_its_place(key: str, where: str, tmp_path: Path) -> None:
    file = tmp_path / "job.yml"
    file.write_text(YAML + key + "\n")
    (found,) = [each for each in jobs.load(file).findings if each.code == "value-kind"]
    assert (found.where, found.line) == (where, 4)
    assert "finite number" in found.seen


@pytest.mark.parametrize("field", ["environment_variables={'A': float('nan')}", "inputs={'lr': float('inf')}"])
def test_a_python_file_with_a_number_that_is_not_finite_has_a_finding(field: str, tmp_path: Path) -> None:
    file = tmp_path / "job.py"
    file.write_text(PYTHON.format(field))
    loaded = jobs.load(file)
    assert loaded.jobs == ()
    assert any("finite number" in each.seen for each in loaded.findings), loaded.findings


@pytest.mark.parametrize("key", ["default", "min", "max"])
def test_a_bound_or_default_of_a_component_is_finite(tmp_path: Path, key: str) -> None:
    file = tmp_path / "component.yml"
    port = f"lr: {{type: number, {key}: .inf}}"
    file.write_text(f"name: c\nversion: 1\ntype: command\ncommand: echo\nenvironment: azureml:e:1\ninputs:\n  {port}\n")
    (finding,) = (each for each in jobs.load(file).findings if each.where.startswith("inputs"))
    assert (finding.where, finding.line) == (f"inputs.lr.{key}", 7)
    assert "a finite number" in finding.seen


@pytest.mark.parametrize("values", ["[16, .inf]", "[{inner: {type: choice, values: [.nan]}}]"])
def test_a_choice_of_a_sweep_is_finite(values: str, tmp_path: Path) -> None:
    file = tmp_path / "sweep.yml"
    trial = "{command: 'echo ${{search_space.x}}', environment: 'azureml:e:1'}"
    space = f"search_space: {{x: {{type: choice, values: {values}}}}}"
    file.write_text(f"type: sweep\ntrial: {trial}\ncompute: azureml:c\n{space}\n")
    assert "a finite number" in next(each.seen for each in jobs.load(file).findings if each.code == "value-kind")
