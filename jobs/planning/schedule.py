"""The plan of a schedule: that of what it starts, and what is wrong with its trigger."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from amlstack.base.findings import Finding, Level
from jobs.model.pipeline import Pipeline
from jobs.model.schedule import Recurrence
from jobs.planning.plans import Resolved, written_fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from jobs.model.schedule import Cron, Schedule
    from jobs.model.sweep import SweepLimits
    from jobs.planning.pipeline import PipelinePlan
    from jobs.planning.plans import Plan
    from jobs.planning.sweep import SweepPlan
    from jobs.values import Source


@dataclass(frozen=True)
class SchedulePlan(Resolved):
    """A schedule with the plan of what it starts.

    Attributes:
        job: As declared.
        started: The plan of what it starts; None where that is a job that ran before.
        findings: What is wrong with either.
        base: Folder that the schedule's relative paths start from.
    """

    job: Schedule
    started: Plan | SweepPlan | PipelinePlan | None
    findings: tuple[Finding, ...]
    base: Path
    timed: ClassVar[bool] = True

    @property
    def runs(self) -> Plan | SweepPlan | PipelinePlan | None:  # type: ignore[override]
        """The plan of what it starts; None for a job that ran before."""
        return self.started

    @property
    def parts(self) -> Mapping[str, Plan]:
        """Those of what it starts; none of a job that ran before."""
        return {} if self.started is None else self.started.parts

    def trials(self, place: str) -> SweepLimits | None:
        """The trials of the part at a place."""
        return None if self.started is None else self.started.trials(place)

    @cached_property
    def enriched(self) -> Schedule:
        """The schedule with what it starts in Azure ML's words."""
        return self.job if self.started is None else self.job.model_copy(update={"create_job": self.started.enriched})

    @cached_property
    def declaration(self) -> dict[str, Any]:
        """The declaration as plain data."""
        started = self.job.create_job if self.started is None else self.started.declaration
        return {**written_fields(self.job, leave=("create_job", "source")), "create_job": started}


def plan_schedule(schedule: Schedule, started: Plan | SweepPlan | PipelinePlan | None, source: Source) -> SchedulePlan:
    """The plan of a schedule.

    Args:
        schedule: As declared.
        started: The plan of what it starts; None for a job that ran before.
        source: The schedule's file.
    """
    found = tuple(source.locate(finding) for finding in check(schedule))
    if started is not None:
        of_start = started.findings
        found += of_start if schedule.source else tuple(finding.under("create_job") for finding in of_start)
    return SchedulePlan(schedule, started, found, source.base)


def check(schedule: Schedule) -> Iterator[Finding]:
    """Findings on a schedule beside those on what it starts."""
    if not isinstance(schedule.create_job, Pipeline | str):
        kind = type(schedule.create_job).__name__.lower()
        yield Finding(
            "schedule-kind",
            "create_job",
            f"The schedule starts a {'command job' if kind == 'job' else kind}",
            "azure-ai-ml schedules pipelines, and refuses this",
            "Make it a pipeline of one step.",
        )
    yield from _trigger(schedule.trigger)
    if schedule.trigger.start_time is None and schedule.is_enabled is not False:
        yield Finding(
            "schedule-starts-at-once",
            "trigger",
            "The trigger has no `start_time`",
            "Azure ML then starts the first job as soon as the schedule is made",
            "Write one to be sure of the first start.",
            Level.INFO,
        )


def _trigger(trigger: Cron | Recurrence) -> Iterator[Finding]:
    if not isinstance(trigger, Recurrence):
        if len(trigger.expression.split()) != 5:
            yield Finding(
                "cron-expression",
                "trigger.expression",
                f"`expression` must have five fields, got `{trigger.expression}`",
                "The fields of cron are minute, hour, day of the month, month, day of the week",
                "Write `0 8 * * 1` for every Monday at eight.",
                Level.WARNING,
            )
        return
    pattern = trigger.schedule
    for key, values, most in (
        ("hours", pattern.hours if pattern else (), 23),
        ("minutes", pattern.minutes if pattern else (), 59),
    ):
        if any(not 0 <= value <= most for value in values):
            yield Finding(
                "value-range",
                f"trigger.schedule.{key}",
                f"`{key}` must be from 0 to {most}, got {', '.join(map(str, values))}",
                "",
                level=Level.WARNING,
            )
