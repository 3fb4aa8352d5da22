"""`check` reads imports and pins of a job: what is missing or excludes each other is named, nothing else is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import jobs
from amlstack.cli.jobfiles.packages import check
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

CONDA = "dependencies:\n  - python=3.10\n  - pytorch::pytorch=2.3.0\n  - pip:\n    - scikit-learn\n"
CURATED = "acpt-pytorch-2.8-cuda12.6"


def found(
    folder: Path, script: str, *, command: str = "python train.py", conda: str = "", environment: str = CURATED
) -> list[tuple[str, int | None, str]]:
    (folder / "train.py").write_text(script)
    given: str | jobs.Environment = environment
    if conda:
        (folder / "conda.yml").write_text(conda)
        given = jobs.Environment(image="mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu20.04", conda_file="conda.yml")
    plan = jobs.plan(
        jobs.Job(command=command, code=".", environment=given, compute="c"), source=jobs.Source(base=folder)
    )
    return [(each.code, each.line, each.seen) for each in check("", plan)]


@pytest.mark.parametrize("conda", ["", CONDA])
def test_an_import_that_nothing_brings_is_found_at_its_line(conda: str, tmp_path: Path) -> None:
    ((code, line, seen),) = found(tmp_path, "import os\nimport torch\nfrom wandb.sdk import x\n", conda=conda)
    assert (code, line) == ("import-not-declared", 3)
    assert seen.startswith("`wandb` is imported")


def test_an_import_of_a_module_of_the_code_is_looked_at_too(tmp_path: Path) -> None:
    (tmp_path / "lib.py").write_text("import wandb\n")
    assert [code for code, _, _ in found(tmp_path, "import lib\n")] == ["import-not-declared"]


@for_each(
    "script, fields",
    {
        "brought under another name": ("import sklearn, torch", {"conda": CONDA}),
        "in a try": ("try:\n    import wandb\nexcept ImportError:\n    wandb = None", {}),
        "in a function": ("def log():\n    import wandb", {}),
        "installed by the command": ("import wandb", {"command": "pip install wandb && python train.py"}),
        "installed by a file": ("import wandb", {"command": "pip install -r requirements.txt && python train.py"}),
        "installed from a repository": (
            "import wandb",
            {"command": "pip install git+https://x.y/z && python train.py"},
        ),
        "installed by the code": ("import os\nos.system('pip install wandb')\nimport wandb", {}),
        "an image of which nothing is known": ("import wandb", {"environment": "example.org/mine:3"}),
        "an environment of a workspace": ("import wandb", {"environment": "azureml:mine:3"}),
        "of every environment": ("import pkg_resources, azureml.core, google.protobuf", {}),
        "a package of a file that is not here": ("import wandb", {"conda": f"{CONDA}    - -r other.txt\n"}),
        "the project itself": ("import wandb", {"conda": f"{CONDA}    - -e .\n"}),
        "no script of the code": ("import wandb", {"command": "python -c 'import os'"}),
    }.values(),
)
def test_what_is_brought_or_not_known_has_no_finding(script: str, fields: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("# tools\nwandb>=0.17 # logs\n")
    assert found(tmp_path, script, **fields) == []


@for_each(
    "lines, said",
    [
        ("numpy==1.26.4 numpy==2.0.0", "`numpy` is pinned to 1.26.4 and to 2.0.0"),
        ("torch==2.3.0 torchvision==0.15.2", "`torchvision` 0.15.2 is pinned beside `torch` 2.3.0"),
        ("torch==2.1 torchvision==0.20", "`torchvision` 0.20 is pinned beside `torch` 2.1"),
        ("torch==2.3.0 torchaudio==2.2.0", "`torchaudio` 2.2.0 is pinned beside `torch` 2.3.0"),
        ("torch==2.3.0+cu121 torchvision==0.18.0+cu121 torchaudio==2.3.0", ""),
        ("torch==1.13.1 torchvision==0.14.1 torchaudio==0.13.1", ""),
        ("torch==2.3.0 torchvision>=0.15", ""),
        ("numpy==1.26 numpy==1.26.0", ""),
        ("numpy torch==2.3.0", ""),
    ],
)
@for_each("place", ["pip of a conda file", "command", "requirements"])
def test_pins_that_exclude_each_other_are_found(lines: str, said: str, place: str, tmp_path: Path) -> None:
    if place == "command":
        result = found(tmp_path, "", command=f"pip install {lines} && python train.py")
    elif place == "requirements":
        (tmp_path / "requirements.txt").write_text(lines.replace(" ", "\n"))
        result = found(tmp_path, "", command="pip install -r requirements.txt && python train.py")
    else:
        conda = "dependencies:\n  - pip:\n" + "".join(f"    - {line}\n" for line in lines.split())
        result = found(tmp_path, "", conda=conda)
    assert result == ([("pins-conflict", None, said)] if said else [])


def test_pins_of_two_solvers_or_of_two_systems_do_not_exclude_each_other(tmp_path: Path) -> None:
    conda = "dependencies:\n  - numpy=1.26\n  - pip:\n    - numpy==2.0.0 ; python_version > '3.9'\n    - numpy==1.9.0\n"
    assert found(tmp_path, "", conda=conda) == []


def test_a_module_that_an_ignore_file_leaves_out_is_found(tmp_path: Path) -> None:
    (tmp_path / "lib.py").write_text("")
    (tmp_path / ".amlignore").write_text("lib.py\n")
    assert found(tmp_path, "import lib") == [
        ("module-left-out", None, "`lib.py` is imported, and `.amlignore` leaves it out of the upload")
    ]


def test_mlflow_is_missing_unless_a_package_brings_it(tmp_path: Path) -> None:
    server = CONDA + "    - azureml-inference-server-http\n"
    assert [code for code, _, _ in found(tmp_path, "import mlflow\n", conda=server)] == ["import-not-declared"]
    for package in ("azureml-mlflow", "mlflow-skinny", "pycaret"):
        assert found(tmp_path, "import mlflow\n", conda=f"{CONDA}    - {package}\n") == []
    assert found(tmp_path, "import mlflow\n") == []
