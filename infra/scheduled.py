"""Schedules of a stack: what each starts, with the code, environments and components of that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import jobs
from amlstack.base.findings import Finding, Level
from infra.composed import with_environments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from amlstack import snapshot
    from infra.composed import Environment
    from infra.settings import JobFile

OF_RUNS = ("rerun", "on_edit", "wait", "delete_history")
"""What the stack may say of a file of jobs and what means nothing for a schedule."""


@dataclass(frozen=True, slots=True)
class Timed:
    """One schedule of the stack.

    Attributes:
        name: Name of the schedule in the workspace.
        plan: What it starts against the clusters of its parts.
        codes: The content of each part's folder, by the part's place; parts without one are not there.
    """

    name: str
    plan: jobs.SchedulePlan
    codes: Mapping[str, snapshot.Snapshot]


def declared(schedule: jobs.Schedule, job_file: JobFile, means: Environment) -> jobs.Schedule:
    """The schedule as the stack means it: enabled or not, and with its environments.

    Args:
        schedule: As its file says it.
        job_file: What the stack says over the file.
        means: From a job or a component to what the stack says of its environment.
    """
    update: dict[str, object] = {} if job_file.enabled is None else {"is_enabled": job_file.enabled}
    started = schedule.create_job
    if isinstance(started, jobs.Job):
        update["create_job"] = started.model_copy(update=means(started))
    elif not isinstance(started, str):
        update["create_job"] = with_environments(started, means)
    return schedule.model_copy(update=update)


def misplaced(job: jobs.Declared, job_file: JobFile) -> Iterator[Finding]:
    """What the stack says of a file that means nothing for what is in it."""
    timed = isinstance(job, jobs.Schedule)
    names = OF_RUNS if timed else ("enabled",)
    if said := [name for name in names if getattr(job_file, name) is not None]:
        yield Finding(
            "setting-misplaced",
            said[0],
            f"The stack says {', '.join(f'`{name}`' for name in said)} of {'a schedule' if timed else 'a job'}",
            f"{', '.join(f'`{name}`' for name in OF_RUNS)} are said of jobs, `enabled` of schedules",
            "Take it out of the stack's settings: it changes nothing.",
            Level.WARNING,
        )


def placing(schedule: jobs.Schedule, source: jobs.Source) -> Callable[[Finding], Finding]:
    """Places a finding on what a schedule starts: in the file that says it, which may be another one."""
    if schedule.file is not None:
        return jobs.load(schedule.file).source.locate
    return lambda finding: source.locate(finding.under("create_job"))
