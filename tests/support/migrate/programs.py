"""Programs of SDK v1 written for tests, and what becomes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from amlstack.migrate.migration import Migration, migrate

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """
from azureml.core import Dataset, Datastore, Environment, Experiment, ScriptRunConfig, Workspace
from azureml.core.runconfig import MpiConfiguration, PyTorchConfiguration, RunConfiguration, TensorflowConfiguration
from azureml.core.compute import AmlCompute, ComputeTarget
from azureml.core.conda_dependencies import CondaDependencies
from azureml.data import OutputFileDatasetConfig
from azureml.train.dnn import PyTorch, TensorFlow, Mpi
from azureml.train.estimator import Estimator
ws = Workspace.from_config()
env = Environment.get(ws, "team", version="3")
"""


def migrated(folder: Path, program: str, *, name: str = "submit.py") -> Migration:
    """The result for a program that begins with `HEAD`."""
    (folder / "src").mkdir(exist_ok=True)
    (folder / name).write_text(HEAD + program, "utf-8")
    return migrate([folder / name], folder / "v2")


def the_job(found: Migration) -> dict[str, Any]:
    """The only job file."""
    [text] = [text for name, text in found.files.items() if name.endswith(".yml")]
    content = yaml.safe_load(text)
    assert isinstance(content, dict)
    return content


def hands(found: Migration) -> list[str]:
    """The constructs that need a hand."""
    return [item.construct for item in found.items if item.state == "hand"]
