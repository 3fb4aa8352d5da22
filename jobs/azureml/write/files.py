"""Whatever is declared as an Azure ML CLI v2 file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.azureml.write.command import command_file
from jobs.azureml.write.pipeline import pipeline_file
from jobs.azureml.write.schedule import schedule_file
from jobs.azureml.write.sweep import sweep_file
from jobs.model.job import Job
from jobs.model.pipeline import Pipeline
from jobs.model.schedule import Schedule
from jobs.model.sweep import Sweep

if TYPE_CHECKING:
    from collections.abc import Callable

    from jobs.model.schedule import Declared

WRITERS: dict[type[Declared], Callable[[Any], dict[str, Any]]] = {
    Job: command_file,
    Sweep: sweep_file,
    Pipeline: pipeline_file,
    Schedule: schedule_file,
}
"""Kind of declaration to the writer of its file."""


def file_of(declared: Declared) -> dict[str, Any]:
    """The file's content, for ``az ml job create -f``.

    Args:
        declared: ``enriched`` of a plan.
    """
    return next(WRITERS[kind] for kind in type(declared).__mro__ if kind in WRITERS)(declared)
