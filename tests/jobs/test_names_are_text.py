"""A name in a file that YAML reads as a number or a truth value is one finding, wherever it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from jobs import load

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


@pytest.mark.parametrize("case", REFUSED)
def test_a_number_as_a_name_is_one_finding(case: str, tmp_path: Path) -> None:
    assert errors(tmp_path, REFUSED[case]) == ["name-kind"]


@pytest.mark.parametrize("case", ACCEPTED)
def test_a_number_that_becomes_text_is_taken(case: str, tmp_path: Path) -> None:
    assert errors(tmp_path, ACCEPTED[case]) == []
