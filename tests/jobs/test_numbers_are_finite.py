"""JSON has no word for `.nan` and `.inf`: they are findings wherever a file hands values on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import jobs

if TYPE_CHECKING:
    from pathlib import Path

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
