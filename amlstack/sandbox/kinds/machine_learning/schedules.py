"""Microsoft.MachineLearningServices/workspaces/schedules: kept and judged whole, and never fired."""

from __future__ import annotations

import datetime as dt
import re
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.kinds.machine_learning import jobs
from amlstack.sandbox.kinds.machine_learning.job_answers import defined
from amlstack.sandbox.protocol.addresses import ML, ArmPath
from amlstack.sandbox.protocol.kind import Body, KindContext, Reply, ResourceKind
from amlstack.sandbox.protocol.refusals import Refused, invalid, near, not_emulated

if TYPE_CHECKING:
    from amlstack.sandbox.store.store import ResourceRow
    from amlstack.sandbox.store.tables import Operation

_TRIGGER, _JOB = "properties.trigger", "properties.action.jobDefinition"
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_CRON: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, ()),
    ("day of the week", 0, 6, _DAYS),
)
"""The fields of a cron expression: name, least, most, words that stand for numbers."""
_PART = re.compile(r"(?:\*|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>\d+))?")


class ScheduleKind(ResourceKind):
    """Schedules of jobs."""

    type = f"{ML}/workspaces/schedules"

    def answer(
        self, context: KindContext, method: str, path: ArmPath, query: Mapping[str, str], body: Any
    ) -> Reply | None:
        """Nothing of its own; what is no schedule of a job is refused by name."""
        properties = body.get("properties") if method == "PUT" and isinstance(body, dict) else None
        action = properties.get("action") if isinstance(properties, dict) else None
        kind = action.get("actionType") if isinstance(action, dict) else None
        if kind in {"CreateMonitor", "ImportData", "InvokeBatchEndpoint"}:
            raise not_emulated(f"schedules of action '{kind}', only CreateJob")
        return None

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """The trigger can fire, and the job could be submitted."""
        properties = body["properties"]
        action = properties["action"]
        _check_trigger(properties["trigger"])
        _check_job(context, path, action["jobDefinition"])

    def action(self, context: KindContext, resource: ResourceRow, name: str, body: Body) -> Reply | Operation:
        """``trigger``: the job in it, once, under a name of its own; only an enabled one can be triggered."""
        if name.lower() != "trigger":
            return super().action(context, resource, name, body)
        properties = resource.body["properties"]
        if not properties["isEnabled"]:
            raise Refused(400, "UserError", f"The schedule '{resource.name}' is disabled and cannot be triggered.")
        definition = dict(properties["action"]["jobDefinition"])
        for side in ("tags", "properties"):
            definition[side] = {key: value for key, value in (definition.get(side) or {}).items() if value is not None}
        source = definition.pop("sourceJobId", None)
        if source is not None and not _defines(definition):
            first = context.store.jobs.find(resource.parent, str(source).rsplit("/", 1)[-1])
            if first is None:
                raise Refused(400, "UserError", f"The job '{source}' was not found in the workspace.")
            definition = {key: value for key, value in first.properties.items() if key != "displayName"}
        run = f"{resource.name}-{uuid.uuid4().hex[:8]}"
        context.store.jobs.add(context.store.resources[resource.parent].id, run, {"properties": definition})
        context.wake.set()
        return Reply(200, {"scheduleActionType": "CreateJob", "submissionId": run})

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The trigger and the job in it with what the service writes beside them."""
        properties = resource.body["properties"]
        action, trigger = properties["action"], {"startTime": None, "endTime": None, **properties["trigger"]}
        if trigger["triggerType"] == "Recurrence":
            pattern = trigger.get("schedule")
            trigger["schedule"] = pattern and {"weekDays": None, "monthDays": None, **pattern}
        return {"trigger": trigger, "action": {**action, "jobDefinition": defined(action["jobDefinition"])}}

    def written(self, context: KindContext, resource: ResourceRow) -> Body:
        """The properties alone."""
        return {"properties": super().render(context, resource)["properties"]}

    def render(self, context: KindContext, resource: ResourceRow) -> Body:
        """Without id and type; a pattern of no time is none, and a command job has services.

        Source: azure-sdk-assets, test_schedule, 2023-04 to 2023-10.
        """
        shown = super().render(context, resource)
        properties = shown["properties"]
        trigger, definition = properties["trigger"], properties["action"]["jobDefinition"]
        if not any((trigger.get("schedule") or {}).values()) and "schedule" in trigger:
            trigger["schedule"] = None
        if definition["jobType"] == "Command" and definition["services"] is None:
            definition["services"] = {}
        return {name: shown[name] for name in ("name", "properties", "systemData")}

    def failing_removal(self, context: KindContext, resource: ResourceRow) -> str:
        """An enabled one stays."""
        enabled = resource.body["properties"]["isEnabled"]
        return f"UserError: Cannot delete an active trigger {resource.name}" if enabled else ""

    def absent(self, path: ArmPath) -> Refused:
        """Its own words."""
        return Refused(404, "UserError", f"Resource Trigger {path.name} not found", inner=("NotFound",))

    def select(self, context: KindContext, path: ArmPath, query: Mapping[str, str]) -> tuple[ResourceRow, ...]:
        """The enabled ones, the others, or all (``listViewType``)."""
        rows = super().select(context, path, query)
        view = query.get("listViewType", "EnabledOnly")
        enabled = view != "DisabledOnly"
        return tuple(row for row in rows if view == "All" or row.body["properties"]["isEnabled"] is enabled)


def _check_trigger(trigger: Body) -> None:
    times = {name: _time(trigger.get(name), f"{_TRIGGER}.{name}") for name in ("startTime", "endTime")}
    if times["startTime"] and times["endTime"] and times["endTime"] <= times["startTime"]:
        raise invalid(f"{_TRIGGER}.endTime", "the end is not after the start.")
    if trigger["triggerType"] == "Cron":
        check_cron(trigger["expression"], f"{_TRIGGER}.expression")
        return
    if trigger["interval"] < 1:
        raise invalid(f"{_TRIGGER}.interval", f"{trigger['interval']} is not allowed; it is at least 1.")
    pattern = trigger.get("schedule") or {}
    for name, least, most in (("hours", 0, 23), ("minutes", 0, 59), ("monthDays", 1, 31)):
        for number, value in enumerate(pattern.get(name) or ()):
            if not least <= value <= most:
                where = f"{_TRIGGER}.schedule.{name}[{number}]"
                raise invalid(where, f"{value} is not allowed; it is from {least} to {most}.")


def check_cron(expression: str, where: str) -> None:
    """Refuses what is no cron expression of five fields.

    Raises:
        Refused: Naming the field.
    """
    fields = expression.split()
    if len(fields) != len(_CRON):
        names = ", ".join(name for name, *_ in _CRON)
        raise invalid(where, f"'{expression}' has {len(fields)} fields; a cron expression has five: {names}.")
    for written, (name, least, most, words) in zip(fields, _CRON, strict=True):
        for part in written.split(","):
            found = _PART.fullmatch(part)
            ends = [found[end] for end in ("first", "last") if found[end]] if found else []
            values = [words.index(end.upper()) if end.upper() in words else end for end in ends]
            numbers = [int(value) for value in values if str(value).isdecimal()]
            wrong = found is None or len(numbers) < len(ends) or found["step"] == "0"
            if wrong or any(not least <= number <= most for number in numbers) or numbers != sorted(numbers):
                raise invalid(where, f"'{part}' is no {name}, which is from {least} to {most}, or '*'.")


def _time(written: str | None, where: str) -> dt.datetime | None:
    if written is None:
        return None
    try:
        return dt.datetime.fromisoformat(written).replace(tzinfo=None)
    except ValueError:
        raise invalid(where, f"'{written}' is no time such as '2026-01-31 08:00:00'.") from None


def _check_job(context: KindContext, path: ArmPath, definition: Body) -> None:
    source = definition.get("sourceJobId")
    if source is not None:
        known = {job.name: job.arm_id for job in context.store.jobs.list(path.parent)}
        if source not in known and source.lower() not in {each.lower() for each in known.values()}:
            message = f"The job '{source}' was not found in the workspace.{near(source, known)}"
            raise Refused(400, "UserError", message, f"{_JOB}.sourceJobId")
    if source is not None and not _defines(definition):
        return
    draft: dict[str, Any] = {key: value for key, value in definition.items() if key != "sourceJobId"}
    try:
        jobs.check_references(context, path, draft)
    except Refused as refused:
        where = f"{_JOB}.{(refused.target or '').removeprefix('properties.')}".rstrip(".")
        raise Refused(refused.status, refused.code, f"{where}: {refused.message}", where) from None


def _defines(definition: Body) -> bool:
    """True where more is declared than which job it was."""
    return any(definition.get(name) for name in ("jobs", "command", "trial"))


KIND = ScheduleKind()
