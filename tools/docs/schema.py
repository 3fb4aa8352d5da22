"""The two files below docs/schema: what ``amlstack schema`` prints."""

from __future__ import annotations

from amlstack.cli.commands.schema import printed
from infra.settings.schema import stack_file
from jobs.azureml.schema import job_files


def of_jobs() -> str:
    """docs/schema/job.schema.json."""
    return f"{printed(job_files(), 'definitions')}\n"


def of_stacks() -> str:
    """docs/schema/stack.schema.json."""
    return f"{printed(stack_file(), '$defs')}\n"
