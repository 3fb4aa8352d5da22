"""The message about an environment that a rehearsal found nowhere: the search, its places, the remedy."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

import pytest

from amlstack.cli import targets
from amlstack.cli.rehearsal import environments

if TYPE_CHECKING:
    from pathlib import Path

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


def result(environment: str, *, size: str | None = None, stack: str | None = None) -> tuple[str, str]:
    return environments.found_nowhere(environment, targets.find(size, stack), pathlib.Path.cwd())


def test_the_stack_that_declares_it_is_named() -> None:
    seen, remedy = result("azureml:mine@latest", size="Standard_ND96isr_H100_v5")
    assert "`azureml:mine@latest` was looked for in the sandbox's workspace" in seen
    assert seen.endswith("no stack's settings were read, because --size was given")
    assert remedy == "Give --stack prod, which declares `mine`, and leave --size out."


def test_an_environment_that_no_stack_declares() -> None:
    seen, remedy = result("azureml:other:3", stack="prod")
    assert seen.endswith("among the environments of Pulumi.prod.yaml (mine)")
    assert "declare it in a stack" in remedy


def test_a_file_near_the_job_that_declares_it_is_named(here: Path) -> None:
    (here / "azure").mkdir()
    (here / "azure" / "env.yml").write_text("$schema: https://x/environment.schema.json\nname: other\nimage: a\n")
    _, remedy = result("azureml:other:3", stack="prod")
    assert remedy == "Write `environment: file:azure/env.yml`, which declares `azureml:other:3`."
