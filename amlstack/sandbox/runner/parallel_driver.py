"""Lays what drives a parallel step beside the step's code on a node."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from amlstack.base import paths
from amlstack.sandbox.orchestration.parallel_step import PROPERTY

if TYPE_CHECKING:
    from amlstack.catalog.sizes import Size
    from amlstack.sandbox.contract.spec import Spec
    from amlstack.sandbox.store.store import JobRow

FOLDER = "driver"
"""Below the working folder, as Azure ML has it."""
_DRIVER = "amlparallel"
_HELPERS = "azureml_user"


def wanted(job: JobRow) -> bool:
    """True where a job drives a parallel step."""
    return str((job.properties.get("properties") or {}).get(PROPERTY)).lower() == "true"


def place(work: Path, spec: Spec, size: Size | None) -> None:
    """Puts it into a node's working folder.

    Args:
        work: The folder.
        spec: The job.
        size: Of the nodes, which says how many workers each has by default: one for GPUs, else one for each core (YAML
            reference of the parallel job); the sandbox starts no more than this machine has cores for all nodes.
    """
    source = paths.PROJECT / _DRIVER
    skip = shutil.ignore_patterns("__pycache__")
    folder = work / FOLDER
    for name in (_DRIVER, _HELPERS, "fallback"):
        shutil.rmtree(folder / name, ignore_errors=True)
    shutil.copytree(source, folder / _DRIVER, ignore=shutil.ignore_patterns("__pycache__", _HELPERS))
    shutil.copytree(source / _HELPERS, folder / _HELPERS, ignore=skip)
    if any(port.kind == "mltable" for port in spec.inputs.values()):
        shutil.copytree(Path(yaml.__file__).parent, folder / "fallback" / "yaml", ignore=skip)
    (folder / "here.json").write_text(json.dumps(_workers(spec, size)) + "\n")


def _workers(spec: Spec, size: Size | None) -> dict[str, int]:
    here = max(1, len(os.sched_getaffinity(0)) // spec.nodes)
    declared = 1 if size is not None and size.gpus else (size.vcpus if size is not None else None) or here
    found = {"default_workers": min(declared, here)}
    return found if spec.scale is None else {**found, "most_workers": spec.scale.ranks}
