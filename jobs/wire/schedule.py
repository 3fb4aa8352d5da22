"""A schedule as the body that Azure's REST API takes: that of what it starts, and its trigger."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from jobs.model.schedule import Cron, Pattern
from jobs.wire.command import Rendered, some
from jobs.wire.references import PREFIX

if TYPE_CHECKING:
    from jobs.model.schedule import Recurrence, Schedule


def render_schedule(schedule: Schedule, started: Rendered | None) -> Rendered:
    """Render a schedule.

    Args:
        schedule: The schedule.
        started: What it starts; None for a job that ran before.
    """
    if started is None:
        ran_before = str(schedule.create_job).removeprefix(PREFIX)
        definition = {"jobType": "Pipeline", "sourceJobId": ran_before, "experimentName": "", "isArchived": False}
    else:
        source = schedule.source_job.removeprefix(PREFIX) if schedule.source_job else None
        definition = some(**started.body["properties"], sourceJobId=source)
    properties = some(
        displayName=schedule.display_name,
        description=schedule.description,
        isEnabled=schedule.is_enabled,
        tags=dict(schedule.tags),
        properties=dict(schedule.properties),
        action={"actionType": "CreateJob", "jobDefinition": definition},
        trigger=_trigger(schedule.trigger),
    )
    return Rendered({"properties": properties}, started.components if started else {})


def _trigger(trigger: Cron | Recurrence) -> dict[str, Any]:
    """A trigger as the wire has it."""
    payload: dict[str, Any] = {"timeZone": trigger.time_zone}
    for key, value in (("startTime", trigger.start_time), ("endTime", trigger.end_time)):
        if value is not None:
            payload[key] = datetime.fromisoformat(value).strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(trigger, Cron):
        return {"triggerType": "Cron", "expression": trigger.expression, **payload}
    pattern = trigger.schedule or Pattern(hours=(), minutes=())
    days = {"weekDays": pattern.week_days, "monthDays": pattern.month_days}
    return {
        "triggerType": "Recurrence",
        "frequency": trigger.frequency,
        "interval": trigger.interval,
        "schedule": {
            "hours": list(pattern.hours),
            "minutes": list(pattern.minutes),
            **{key: list(value) for key, value in days.items() if value},
        },
        **payload,
    }
