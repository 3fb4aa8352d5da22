"""Files that a command names, read for rules: an import of Nebula, a configuration of it, a script that resumes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from infra.declaration import declare
from infra.settings import parse
from tests.support.policies.showing import TODAY

if TYPE_CHECKING:
    from pathlib import Path

GPUS = {"name": "train", "size": "Standard_ND96isr_H100_v5", "nodes": {"max": 2}}


def codes(root: Path, command: str, environment: object = "azureml:mine:3") -> set[str]:
    """The rules that speak about a job in whose folder `src` its code lies."""
    job = {"command": command, "code": "src", "environment": environment, "compute": "azureml:train"}
    (root / "run.yml").write_text(json.dumps({**job, "resources": {"instance_count": 2}}))
    values = {"location": "westeurope", "workspace": "w-team", "clusters": [GPUS], "jobs": ["run.yml"]}
    return {finding.code for finding in declare(parse(values), on=TODAY, root=root).findings}


@pytest.fixture
def src(tmp_path: Path) -> Path:
    folder = tmp_path / "src"
    folder.mkdir()
    (folder / "train.py").write_text("print(1)\n")
    return folder


def test_a_script_that_imports_nebula_is_found(src: Path) -> None:
    assert "nebula-gone" not in codes(src.parent, "torchrun train.py")

    (src / "train.py").write_text("import os\nimport nebulaml as nm\n")

    assert "nebula-gone" in codes(src.parent, "torchrun train.py")


@pytest.mark.parametrize("written", ["--deepspeed ds.json", "--deepspeed_config=ds.json"])
def test_a_configuration_with_nebula_is_found_where_the_command_names_it(src: Path, written: str) -> None:
    (src / "ds.json").write_text(
        '{"train_batch_size": 8, "nebula": {"enabled": true, "persistent_storage_path": "/p"}}'
    )

    assert "nebula-gone" not in codes(src.parent, "torchrun train.py")
    assert "nebula-gone" in codes(src.parent, f"torchrun train.py {written}")


@pytest.mark.parametrize("file", [True, False])
def test_a_conda_file_that_asks_for_nebula_is_found(src: Path, *, file: bool) -> None:
    packages = {"dependencies": ["python=3.10", {"pip": ["nebulaml"]}]}
    (src.parent / "conda.json").write_text(json.dumps(packages))
    environment = {"image": "mcr.microsoft.com/a/b:1", "conda_file": "conda.json" if file else packages}

    assert "nebula-gone" in codes(src.parent, "torchrun train.py", environment)


def test_restarts_need_no_word_in_the_job_where_the_script_speaks_of_its_checkpoint(src: Path) -> None:
    command = "torchrun --max_restarts 3 train.py"
    assert "restart-without-checkpoint" in codes(src.parent, command)

    (src / "train.py").write_text("if snapshot.exists(): load(snapshot)\n")

    assert "restart-without-checkpoint" not in codes(src.parent, command)


def test_the_image_of_an_inline_environment_is_known_to_the_job(src: Path) -> None:
    image = {"image": "mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04:20260701"}

    assert "image-cannot-run-here" in codes(src.parent, "mpirun --mca btl self,openib python train.py", image)
    assert "image-cannot-run-here" not in codes(src.parent, "mpirun --mca btl self,tcp python train.py", image)
