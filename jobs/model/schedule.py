"""`Schedule`: a pipeline (or a job that ran before) started again and again."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StrictBool, StrictInt, StrictStr

from jobs.model.job import Job
from jobs.model.pipeline import Pipeline
from jobs.model.sweep import Sweep
from jobs.model.values import Model, OwnSource

if TYPE_CHECKING:
    from collections.abc import Callable

WEEK_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
WeekDay = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def _time(value: str) -> str:
    if len(value) <= len("2026-01-01"):
        message = "a time has a date and a clock, such as 2026-01-01T08:00:00"
        raise ValueError(message)
    datetime.fromisoformat(value)
    return value


Time = Annotated[StrictStr, AfterValidator(_time)]


class _Trigger(Model):
    start_time: Annotated[Time | None, Field(description="First start, ISO-8601 without a zone; unset: now.")] = None
    end_time: Annotated[Time | None, Field(description="No start after it, ISO-8601 without a zone.")] = None
    time_zone: Annotated[str, Field(description="Time zone of the times, in Windows' names.")] = "UTC"


class Cron(_Trigger):
    """Starts at the times of a cron expression."""

    type: Literal["cron"] = "cron"
    expression: Annotated[StrictStr, Field(description="minute hour day-of-month month day-of-week")]


class Pattern(Model):
    """At which hours and minutes, and on which days, a recurrence starts."""

    hours: Annotated[tuple[StrictInt, ...], Field(description="Hours, 0 to 23.")]
    minutes: Annotated[tuple[StrictInt, ...], Field(description="Minutes, 0 to 59.")]
    week_days: Annotated[tuple[WeekDay, ...] | None, Field(description="Days of the week.")] = None
    month_days: Annotated[tuple[StrictInt, ...] | None, Field(description="Days of the month.")] = None


class Recurrence(_Trigger):
    """Starts every so many minutes, hours, days, weeks or months."""

    type: Literal["recurrence"] = "recurrence"
    frequency: Annotated[Literal["minute", "hour", "day", "week", "month"], Field(description="The unit.")]
    interval: Annotated[Annotated[StrictInt, Field(ge=1)], Field(description="How many of them.")]
    schedule: Annotated[Pattern | None, Field(description="When on such a day; unset: at the time of the start.")] = (
        None
    )


class Schedule(Model):
    """A pipeline, or a job that ran before by its name, started by a trigger."""

    name: Annotated[str, Field(description="Name of the schedule.")]
    trigger: Annotated[Cron | Recurrence, Field(discriminator="type", description="When it starts.")]
    create_job: Annotated[
        Pipeline | Job | Sweep | str, Field(description="What it starts; a text names a job that ran before.")
    ]
    source_job: Annotated[str | None, Field(description="The job that ran before, when `create_job` changes it.")] = (
        None
    )
    source: OwnSource = None
    display_name: Annotated[str | None, Field(description="Name shown in the studio.")] = None
    description: Annotated[str | None, Field(description="Description.")] = None
    tags: dict[str, str | None] = Field(default_factory=dict, description="Tags.")
    properties: dict[str, str | None] = Field(default_factory=dict, description="Properties.")
    is_enabled: Annotated[StrictBool | None, Field(description="Whether it starts anything; unset: it does.")] = None

    def with_parts(self, change: Callable[[Any], Any]) -> Self:
        """The same schedule, with what it starts changed; a job that ran before stays."""
        if isinstance(self.create_job, str):
            return self
        return self.model_copy(update={"create_job": self.create_job.with_parts(change)})


Declared = Job | Sweep | Pipeline | Schedule
"""Whatever a job file declares."""


def trigger_text(trigger: Cron | Recurrence) -> str:
    """When it starts, as a person reads it: ``cron `0 8 * * 1`, UTC, from 2026-07-01T00:00:00``."""
    if isinstance(trigger, Cron):
        words = [f"cron `{trigger.expression}`"]
    else:
        unit = trigger.frequency if trigger.interval == 1 else f"{trigger.interval} {trigger.frequency}s"
        words = [f"every {unit}", *_pattern_text(trigger.schedule)]
    times = (("from", trigger.start_time), ("until", trigger.end_time))
    return ", ".join([*words, trigger.time_zone, *(f"{word} {time}" for word, time in times if time)])


def _pattern_text(pattern: Pattern | None) -> list[str]:
    if pattern is None:
        return []
    clocks = [f"{hour}:{minute:02}" for hour in pattern.hours for minute in pattern.minutes]
    days = [*(pattern.week_days or ()), *(f"day {day}" for day in pattern.month_days or ())]
    return [f"{word} {' and '.join(each)}" for word, each in (("at", clocks), ("on", days)) if each]
