"""Schedules of the sandbox: taken only when they could fire and their job could run; disabled before they go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from amlstack.sandbox.service import manager as service
from tests.support.sandbox.sandbox_client import cluster, job, version_of

if TYPE_CHECKING:
    from tests.support.sandbox.manager import Manager

CRON = {"triggerType": "Cron", "expression": "0 2 * * *", "timeZone": "UTC"}
WEEKLY: dict[str, Any] = {
    "triggerType": "Recurrence",
    "frequency": "week",
    "interval": 1,
    "schedule": {"hours": [4], "minutes": [0, 30], "weekDays": ["monday"]},
    "startTime": "2026-07-10 10:00:00",
}


@pytest.fixture
def gpu(manager: Manager) -> str:
    path = f"{manager.workspace}/computes/gpu"
    manager.call("PUT", path, cluster())
    return path


def body(definition: Any, trigger: Any = CRON, **more: Any) -> dict[str, Any]:
    action = {"actionType": "CreateJob", "jobDefinition": definition}
    return {"properties": {"trigger": trigger, "action": action, **more}}


def put(manager: Manager, content: Any, name: str = "nightly") -> tuple[int, Any]:
    return manager.call("PUT", f"{manager.workspace}/schedules/{name}", content)


ANSWERED = {
    **WEEKLY,
    "frequency": "Week",
    "endTime": None,
    "schedule": {**WEEKLY["schedule"], "weekDays": ["Monday"], "monthDays": None},
}
"""The same in the service's own letters."""


@pytest.mark.parametrize(("trigger", "answered"), [(CRON, CRON), (WEEKLY, ANSWERED)], ids=["cron", "recurrence"])
def test_a_schedule_is_kept_as_it_was_sent(
    trigger: dict[str, Any], answered: dict[str, Any], manager: Manager, gpu: str
) -> None:
    sent = body(job(gpu)["properties"], trigger, tags={"a": "b"})
    status, _ = put(manager, sent)
    assert status == 201
    manager.settle()
    _, kept = manager.call("GET", f"{manager.workspace}/schedules/nightly")
    properties = kept["properties"]
    definition = properties.pop("action")["jobDefinition"]
    assert properties == {
        "trigger": {"startTime": None, "endTime": None, **answered}, "isEnabled": True, "properties": {},
        "tags": {"a": "b"}, "provisioningState": "Succeeded", **dict.fromkeys(("description", "displayName")),
    }  # fmt: skip
    assert definition.items() >= {**job(gpu)["properties"], "status": "NotStarted", "componentId": None}.items()
    assert manager.store.jobs.list() == (), "no schedule is ever fired"


def test_an_edit_replaces_all_of_it(manager: Manager, gpu: str) -> None:
    put(manager, body(job(gpu)["properties"], tags={"a": "b"}))
    manager.settle()
    status, edited = put(manager, body(job(gpu)["properties"], WEEKLY, isEnabled=False))
    assert (status, edited["properties"]["trigger"], edited["properties"]["tags"]) == (201, ANSWERED, {})
    assert edited["properties"]["isEnabled"] is False


def test_an_enabled_one_cannot_be_deleted(manager: Manager, gpu: str) -> None:
    path = f"{manager.workspace}/schedules/nightly"
    put(manager, body(job(gpu)["properties"]))
    manager.settle()
    reply = service.answer(manager.context, "DELETE", path, {"api-version": version_of(path)}, None)
    assert reply.status == 202
    _, state = manager.call("GET", urlsplit(reply.headers["Azure-AsyncOperation"]).path)
    assert (state["status"], state["error"]["message"]) == ("Failed", "Cannot delete an active trigger nightly")
    assert manager.call("GET", path)[0] == 200
    put(manager, body(job(gpu)["properties"], isEnabled=False))
    assert manager.call("DELETE", path)[0] == 202
    manager.settle()
    assert manager.call("GET", path)[0] == 404
    assert manager.call("DELETE", path)[0] == 204


def test_a_workspace_takes_its_schedules_along(manager: Manager, gpu: str) -> None:
    put(manager, body(job(gpu)["properties"]))
    manager.settle()
    assert manager.call("DELETE", manager.workspace)[0] in {200, 202}
    manager.settle()
    assert not [row for row in manager.store.resources.all() if "/schedules/" in row.key]


def test_the_list_shows_the_enabled_ones_unless_asked(manager: Manager, gpu: str) -> None:
    put(manager, body(job(gpu)["properties"]), "on")
    put(manager, body(job(gpu)["properties"], isEnabled=False), "off")

    def listed(**query: str) -> list[str]:
        return [row["name"] for row in manager.call("GET", f"{manager.workspace}/schedules", **query)[1]["value"]]

    assert listed() == ["on"]
    assert listed(listViewType="DisabledOnly") == ["off"]
    assert listed(listViewType="All") == ["on", "off"]


FAULTS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"expression": "0 2 * *"}, {}, "properties.trigger.expression"),
    ({"expression": "60 2 * * *"}, {}, "properties.trigger.expression"),
    ({"expression": "0 24 * * *"}, {}, "properties.trigger.expression"),
    ({"expression": "0 2 * * MOM"}, {}, "properties.trigger.expression"),
    ({"expression": "*/0 2 * * *"}, {}, "properties.trigger.expression"),
    ({"expression": "0 9-5 * * *"}, {}, "properties.trigger.expression"),
    ({"startTime": "tomorrow"}, {}, "properties.trigger.startTime"),
    ({"startTime": "2026-07-10 10:00:00", "endTime": "2026-07-10 10:00:00"}, {}, "properties.trigger.endTime"),
    ({"expresion": "0 2 * * *"}, {}, "properties.trigger.expresion"),
    (WEEKLY | {"interval": 0}, {}, "properties.trigger.interval"),
    (WEEKLY | {"frequency": "weekly"}, {}, "properties.trigger.frequency"),
    (WEEKLY | {"schedule": {"hours": [25], "minutes": [0]}}, {}, "properties.trigger.schedule.hours[0]"),
    (WEEKLY | {"schedule": {**WEEKLY["schedule"], "weekDays": ["mon"]}}, {}, "properties.trigger.schedule.weekDays[0]"),
    ({}, {"computeId": "/nowhere"}, "properties.action.jobDefinition.computeId"),
    ({}, {"resources": {"instanceCount": 99}}, "properties.action.jobDefinition.resources.instanceCount"),
    ({}, {"comand": "python"}, "properties.action.jobDefinition.comand"),
    ({}, {"command": None}, "properties.action.jobDefinition.command"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("trigger", "definition", "target"), FAULTS, ids=[str(number) for number in range(len(FAULTS))]
)
def test_what_could_not_fire_or_run_is_refused_with_its_path(
    trigger: dict[str, Any], definition: dict[str, Any], target: str, manager: Manager, gpu: str
) -> None:
    fields = trigger if "triggerType" in trigger else {**CRON, **trigger}
    status, error = put(manager, body({**job(gpu)["properties"], **definition}, fields))
    assert (status, error.get("target")) == (400, target), error


@pytest.mark.parametrize("expression", ["*/15 * * * *", "0 8-18/2 1,15 1-6 mon-fri", "5,35 0 * * 0"])
def test_what_cron_can_say_is_taken(expression: str, manager: Manager, gpu: str) -> None:
    assert put(manager, body(job(gpu)["properties"], {**CRON, "expression": expression}))[0] == 201


def test_a_job_that_ran_before_must_be_there(manager: Manager, gpu: str) -> None:
    status, error = put(manager, body({"jobType": "Pipeline", "sourceJobId": "ran"}))
    assert (status, error["target"]) == (400, "properties.action.jobDefinition.sourceJobId")
    _, ran = manager.call("PUT", f"{manager.workspace}/jobs/ran", job(gpu))
    for source in ("ran", ran["id"]):
        assert put(manager, body({"jobType": "Pipeline", "sourceJobId": source}))[0] in {200, 201}


def test_what_is_no_schedule_of_jobs_is_not_emulated(manager: Manager, gpu: str) -> None:
    monitor = {
        "properties": {
            "trigger": CRON,
            "action": {"actionType": "InvokeBatchEndpoint", "endpointInvocationDefinition": {}},
        }
    }
    status, error = put(manager, monitor)
    assert (status, error["code"]) == (501, "SandboxNotEmulated")
