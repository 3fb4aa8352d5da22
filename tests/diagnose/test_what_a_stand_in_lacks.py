"""A missing module in a rehearsal is the stand-in's fault where the image has it, and the code's where it has not."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from amlstack.diagnose import diagnose
from amlstack.images import environments, standins

if TYPE_CHECKING:
    from pathlib import Path

LOG = """\
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    import {name}
ModuleNotFoundError: No module named '{name}'
"""


def job(folder: Path, name: str, standin: standins.StandIn | None) -> Path:
    (folder / "user_logs").mkdir()
    (folder / "user_logs/std_log_process_00.txt").write_text(LOG.format(name=name))
    if standin is not None:
        known = environments.for_diagnosis(standin, "azureml:AzureML-sklearn-1.5@latest")
        (folder / "stand-in.json").write_text(json.dumps(known))
    return folder


@pytest.mark.parametrize("name", ["sklearnex", "sklearnex.linear_model", "azureml.core", "azureml"])
def test_what_the_image_has_is_the_stand_ins_fault(tmp_path: Path, name: str) -> None:
    verdict = diagnose([job(tmp_path, name, standins.resolve("sklearn-1.5"))])
    assert verdict.cause == "stand-in-lacks-module"
    assert f"the stand-in lacks `{name}`" in verdict.means
    assert '[stand_in."azureml:AzureML-sklearn-1.5@latest"]' in verdict.advice


def test_what_the_image_has_not_is_the_codes_fault(tmp_path: Path) -> None:
    assert diagnose([job(tmp_path, "torch", standins.resolve("sklearn-1.5"))]).cause == "missing-module"


def test_where_not_all_of_the_image_is_known_the_verdict_is_unsure(tmp_path: Path) -> None:
    verdict = diagnose([job(tmp_path, "einops_exts", standins.resolve("nvcr.io/nvidia/pytorch:25.01-py3"))])
    assert (verdict.cause, verdict.confidence) == ("stand-in-lacks-module", "low")
    assert "may well find it on Azure" in verdict.means


def test_without_a_stand_in_the_logs_alone_count(tmp_path: Path) -> None:
    assert diagnose([job(tmp_path, "sklearnex", None)]).cause == "missing-module"


def test_a_package_that_could_not_be_had_is_not_blamed_on_the_code(tmp_path: Path) -> None:
    standin = environments.from_conda("dependencies: [python, {pip: [flash-attn]}]")
    assert diagnose([job(tmp_path, "flash_attn", standin)]).cause == "stand-in-lacks-module"


def test_what_the_rehearsal_itself_writes_is_no_cause(tmp_path: Path) -> None:
    (tmp_path / "user_logs").mkdir()
    (tmp_path / "user_logs/std_log_process_00.txt").write_text(
        "amlstack: GPU calls of torch are not carried to the CPU: ImportError(\"cannot import name '_device'\")\n"
        + LOG.format(name="mine")
    )
    assert diagnose([tmp_path]).cause == "missing-module"


FAILS = """\
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    mlflow.pytorch.log_model(model, "model")
  File "{site}/mlflow/pytorch/__init__.py", line 326, in log_model
    return Model.log(
  File "{site}/{module}/models/model.py", line 1172, in log
    raise
{exception}
"""
IMAGE = "acpt-pytorch-2.8-cuda12.6"
SITE = "/root/.cache/amlstack/images/pytorch-0/lib/python3.11/site-packages"


def failed(folder: Path, module: str, exception: str, site: str = SITE) -> Path:
    """A job in a stand-in whose torch is older than the image's, as that of the curated image is, and so its MLflow."""
    (folder / "user_logs").mkdir()
    text = FAILS.format(site=site, module=module, exception=exception)
    (folder / "user_logs/std_log_process_00.txt").write_text(text)
    standin = standins.resolve(IMAGE)
    standin = replace(standin, versions=(*dict(standin.versions, **{"mlflow-skinny": "2.16.2"}).items(),))
    (folder / "stand-in.json").write_text(json.dumps(environments.for_diagnosis(standin, IMAGE)))
    return folder


@pytest.mark.parametrize(
    ("module", "exception"),
    [
        ("mlflow", "mlflow.exceptions.MlflowException: The `pt2` format requires `input_example`."),
        ("mlflow", "TypeError: log() got an unexpected keyword argument 'artifact_path'"),
        ("torch", "ImportError: cannot import name 'log' from 'torch.distributed' (/x/torch/distributed/__init__.py)"),
        ("sklearn", "AttributeError: module 'torch' has no attribute 'float4'"),
    ],
)
def test_a_package_of_another_version_than_the_images_is_named_before_the_code(
    tmp_path: Path, module: str, exception: str
) -> None:
    verdict = diagnose([failed(tmp_path, module, exception)])
    assert verdict.cause == "stand-in-differs"
    assert verdict.confidence == "medium"
    name, here, there = (
        ("mlflow-skinny", "3.13.0", "2.16.2") if "torch" not in exception else ("torch", "2.8.0", "2.10.0")
    )
    assert f"`{name}` is {here} in the stand-in and {there} in the image" in verdict.means
    assert f'`requirements = ["{name}=={there}"]`' in verdict.advice


def test_an_exception_that_any_version_raises_stays_the_codes(tmp_path: Path) -> None:
    verdict = diagnose(
        [failed(tmp_path, "torch", "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x4 and 3x2)")]
    )
    assert (verdict.cause, verdict.confidence) == ("python-exception", "high")
    assert "it was raised in `torch`: `torch` is 2.8.0 in the stand-in and 2.10.0 in the image" in verdict.reason


def test_what_the_job_installs_itself_is_no_difference_of_the_stand_in(tmp_path: Path) -> None:
    layer = "/tmp/amlstack-abc/environment-0/lib/python3.11/site-packages"
    verdict = diagnose([failed(tmp_path, "mlflow", "mlflow.exceptions.MlflowException: no", site=layer)])
    assert verdict.cause == "python-exception"
