"""`Schedule`: a pipeline (or a job that ran before) started again and again."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, StrictBool, StrictInt, StrictStr

from jobs.model.job import Job
from jobs.model.pipeline import Pipeline
from jobs.model.sweep import Sweep
from jobs.values import Model, OwnSource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
    start_time: Time | None = None
    """First start, ISO-8601 without a zone; unset: now."""
    end_time: Time | None = None
    """No start after it, ISO-8601 without a zone."""
    time_zone: str = "UTC"
    """Time zone of the times, in Windows' names."""


class Cron(_Trigger):
    """Starts at the times of a cron expression."""

    type: Literal["cron"] = "cron"
    expression: StrictStr
    """minute hour day-of-month month day-of-week"""


class Pattern(Model):
    """At which hours and minutes, and on which days, a recurrence starts."""

    hours: tuple[StrictInt, ...]
    """Hours, 0 to 23."""
    minutes: tuple[StrictInt, ...]
    """Minutes, 0 to 59."""
    week_days: tuple[WeekDay, ...] | None = None
    """Days of the week."""
    month_days: tuple[StrictInt, ...] | None = None
    """Days of the month."""


class Recurrence(_Trigger):
    """Starts every so many minutes, hours, days, weeks or months."""

    type: Literal["recurrence"] = "recurrence"
    frequency: Literal["minute", "hour", "day", "week", "month"]
    """The unit."""
    interval: Annotated[StrictInt, Field(ge=1)]
    """How many of them."""
    schedule: Pattern | None = None
    """When on such a day; unset: at the time of the start."""


class Schedule(Model):
    """A pipeline, or a job that ran before by its name, started by a trigger."""

    timed: ClassVar[bool] = True
    """Times start what it runs."""
    HOLDS: ClassVar[str] = "create_job"

    name: str
    """Name of the schedule."""
    trigger: Annotated[Cron | Recurrence, Field(discriminator="type")]
    """When it starts."""
    create_job: Pipeline | Job | Sweep | str
    """What it starts; a text names a job that ran before."""
    source_job: str | None = None
    """The job that ran before, when `create_job` changes it."""
    source: OwnSource = None
    display_name: str | None = None
    """Name shown in the studio."""
    description: str | None = None
    """Description."""
    tags: dict[str, str | None] = Field(default_factory=dict)
    """Tags."""
    properties: dict[str, str | None] = Field(default_factory=dict)
    """Properties."""
    is_enabled: StrictBool | None = None
    """Whether it starts anything; unset: it does."""

    @property
    def runs(self) -> Pipeline | Job | Sweep | None:
        """The declaration that it starts; None for a job that ran before."""
        return None if isinstance(self.create_job, str) else self.create_job

    @property
    def steps(self) -> Mapping[str, Any]:
        """The steps of what it starts, by name."""
        return self.runs.steps if self.runs else {}

    @property
    def parts(self) -> Mapping[str, Any]:
        """Those of what it starts, below `create_job`."""
        inner = self.runs.parts if self.runs else {}
        return {f"create_job.{place}".rstrip("."): part for place, part in inner.items()}

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
