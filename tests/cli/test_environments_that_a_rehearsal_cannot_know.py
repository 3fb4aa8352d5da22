"""The message about an environment that a rehearsal found nowhere: the search, its places, the remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import jobs
from amlstack.cli import targets
from amlstack.cli.rehearsal import environments

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.base.findings import Finding

REFUSAL = "UserError (400): 'mine' or 'other' was not found in the workspace."
STACK = """\
config:
  amlstack:workspace: aml-prod
  amlstack:location: westeurope
  amlstack:clusters: [{name: big, size: Standard_ND96isr_H100_v5, nodes: {min: 0, max: 2}}]
  amlstack:environments: [{name: mine, image: mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu20.04}]
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Pulumi.prod.yaml").write_text(STACK)
    return tmp_path


def result(here: Path, environment: str, *, size: str | None = None, stack: str | None = None) -> list[Finding]:
    path = here / "job.yml"
    path.write_text(f"command: echo\nenvironment: {environment}\ncompute: azureml:big\n")
    where = targets.find(size, stack)
    loaded = jobs.load(path)
    plan = jobs.resolve(loaded.jobs[0], where.of, source=loaded.source)
    return list(environments.unregistered(plan, where, path, REFUSAL))


def test_the_stack_that_declares_it_is_named(here: Path) -> None:
    (finding,) = result(here, "azureml:mine@latest", size="Standard_ND96isr_H100_v5")
    assert "`azureml:mine@latest` was looked for in the sandbox's workspace" in finding.seen
    assert finding.seen.endswith("no stack's settings were read, because --size was given")
    assert finding.remedy == "Give --stack prod, which declares `mine`, and leave --size out."


def test_an_environment_that_no_stack_declares(here: Path) -> None:
    (finding,) = result(here, "azureml:other:3", stack="prod")
    assert finding.seen.endswith("among the environments of Pulumi.prod.yaml (mine)")
    assert "declare it in a stack" in finding.remedy


@pytest.mark.parametrize(
    "environment",
    ["azureml:AzureML-acpt-pytorch-2.8-cuda12.6@latest", "azureml://registries/azureml/environments/a/versions/1",
     "{image: x}"],
)  # fmt: skip
def test_an_environment_that_needs_no_workspace_gives_no_note(environment: str, here: Path) -> None:
    assert result(here, environment, size="Standard_ND96isr_H100_v5") == []


def test_an_environment_that_the_stack_declares_gives_no_note(here: Path) -> None:
    assert result(here, "azureml:mine", stack="prod") == []
