"""Whatever is declared as an Azure ML CLI v2 file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.azureml.write.command import command_file
from jobs.azureml.write.pipeline import pipeline_file
from jobs.azureml.write.schedule import schedule_file
from jobs.azureml.write.sweep import sweep_file
from jobs.model.pipeline import Pipeline
from jobs.model.schedule import Schedule
from jobs.model.sweep import Sweep

if TYPE_CHECKING:
    from jobs.model.job import Job


def file_of(declared: Job | Sweep | Pipeline | Schedule) -> dict[str, Any]:
    """The file's content, for ``az ml job create -f``.

    Args:
        declared: ``enriched`` of a plan.
    """
    if isinstance(declared, Schedule):
        return schedule_file(declared)
    if isinstance(declared, Pipeline):
        return pipeline_file(declared)
    return sweep_file(declared) if isinstance(declared, Sweep) else command_file(declared)
