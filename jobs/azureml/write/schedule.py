"""A schedule as an Azure ML CLI v2 file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.azureml.write.command import SCHEMAS
from jobs.azureml.write.sweep import plain_values

if TYPE_CHECKING:
    from jobs.model.schedule import Schedule


def schedule_file(schedule: Schedule) -> dict[str, Any]:
    """A schedule file; what it starts stands in a file of its own, which it names."""
    result = schedule.model_dump(exclude_none=True, exclude={"create_job", "source_job", "is_enabled"})
    named = (
        schedule.create_job
        if isinstance(schedule.create_job, str)
        else schedule.source_job or (schedule.source and schedule.source.file)
    )
    file = {
        "$schema": f"{SCHEMAS}/schedule.schema.json",
        **{key: plain_values(value) for key, value in result.items() if value},
    }
    return {**file, "create_job": named or "./job.yml"}
