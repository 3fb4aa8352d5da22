"""The JSON Schema of schedules, from the tables by which they are read."""

from __future__ import annotations

from jobs.azureml.read import schedule
from jobs.azureml.schema_parts import Schema, any_case, chosen, closed, of_type, ref
from jobs.azureml.schema_pipeline import pipeline_keys
from jobs.azureml.schema_readers import keys
from jobs.model.schedule import Cron, Pattern, Recurrence, Schedule

_TIME: Schema = {
    "type": "string",
    "pattern": r"^\d{4}-?\S{2,}[T ]?\d",
    "minLength": len("2026-01-01") + 1,
    "examples": ["2026-01-01T08:00:00"],
}
IS_ONE: Schema = {"not": {"required": ["type"]}, "anyOf": [{"required": ["create_job"]}, {"required": ["trigger"]}]}
"""The condition that a file is a schedule."""


def definitions() -> Schema:
    """The definitions of schedules, by name."""
    return {
        "schedule": closed(schedule_keys(), "A pipeline, started again and again.", required=_WANTED),
        "cron": closed(cron_keys(), "At the times of a cron expression.", required=("type", "expression")),
        "recurrence": closed(
            recurrence_keys(),
            "Every so many minutes, hours, days, weeks or months.",
            required=("type", "frequency", "interval"),
        ),
        "recurrence_pattern": closed(
            keys(schedule.PATTERN, Pattern), "When on such a day.", required=("hours", "minutes")
        ),
        "create_job": create_job(),
    }


_WANTED = ("name", "trigger", "create_job")


def schedule_keys() -> Schema:
    """Key to schema of a schedule."""
    trigger = chosen((of_type("cron"), ref("cron")), otherwise=ref("recurrence"))
    own = {"trigger": {"type": "object", "description": "When it starts.", **trigger}, "create_job": ref("create_job")}
    return keys(schedule.KEYS, Schedule, own=own, ignored=schedule.READ_ONLY)


def cron_keys() -> Schema:
    """Key to schema of a cron trigger."""
    return keys(schedule.CRON, Cron, own={**_times(), "type": any_case(("cron",))})


def recurrence_keys() -> Schema:
    """Key to schema of a recurrence."""
    own = {**_times(), "type": any_case(("recurrence",)), "schedule": ref("recurrence_pattern")}
    return keys(schedule.RECURRENCE, Recurrence, own=own)


def create_job() -> Schema:
    """What a schedule starts: a file, a job that ran before, or one of both with changes to it."""
    job: Schema = {"type": "string", "minLength": 1, "not": {"pattern": "^file:"}}
    changes = {key: each for key, each in pipeline_keys().items() if key not in ("jobs", "component")}
    changed = closed(
        {"job": {"description": "The job's file, or `azureml:NAME` of one that ran before.", **job}, **changes},
        required=("job",),
    )
    before: Schema = {"properties": {"job": {"pattern": "^azureml:"}}}
    return {
        "description": "The file of a pipeline, or `azureml:NAME` of one that ran before, perhaps with changes.",
        "anyOf": [job, {**changed, "if": before, "then": {"required": ["type"]}}],
    }


def _times() -> Schema:
    return dict.fromkeys(("start_time", "end_time"), _TIME)
