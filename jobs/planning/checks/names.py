"""The name of a job, and names that somebody was to replace."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding, Level
from jobs.model.values import Input

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobs.model.job import Job

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,199}")
PLACEHOLDER = re.compile(r"<[A-Za-z][^<>]*>")
"""Neither a name, an id nor a path holds angle brackets."""
_INSTEAD = {"compute": "Write the name of a cluster, or `serverless`."}


def run_name(job: Job) -> Iterator[Finding]:
    """The name, which becomes the first part of the run's id."""
    if job.name is not None and not _NAME.fullmatch(job.name):
        yield Finding(
            "name-form",
            "name",
            f"`{job.name[:60]}` is the job's name",
            "A run's name is 1 to 200 letters, digits, `-` and `_`, and begins with a letter or digit",
            f"Write `{re.sub(r'[^A-Za-z0-9_-]+', '-', job.name).strip('-_')[:200] or 'job'}`; "
            "display_name takes any text.",
            Level.ERROR if job.typed else Level.WARNING,
        )


def placeholders(job: Job) -> Iterator[Finding]:
    """Text such as ``<your-cluster>``, which the author of an example left for somebody to replace."""
    fields = {"compute": job.compute, "experiment_name": job.experiment_name}
    if isinstance(job.environment, str):
        fields["environment"] = job.environment
    fields |= {f"inputs.{name}.path": value.path for name, value in job.inputs.items() if isinstance(value, Input)}
    for where, value in fields.items():
        if value and (match := PLACEHOLDER.search(value)):
            yield Finding(
                "placeholder",
                where,
                f"`{value}` is a placeholder" if match[0] == value else f"`{value}` holds the placeholder `{match[0]}`",
                "A name or path is that of something that exists",
                _INSTEAD.get(where, "Replace it."),
                Level.ERROR if job.typed else Level.WARNING,
            )
