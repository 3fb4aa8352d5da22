"""Schedules: written whole and in place, kept to their stack, paused by people, disabled before they go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pulumi.runtime.proto import provider_pb2

from amlstack.rpc import UNKNOWN, decode, encode
from tests.support.provider.fake_workspace import WORKSPACE
from tests.support.provider.provider_wire import Refused

if TYPE_CHECKING:
    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Log, Wire

ID = f"{WORKSPACE}/schedules/nightly"
TRIGGER = {"triggerType": "Cron", "expression": "0 2 * * *", "startTime": "2026-07-01 00:00:00", "timeZone": "UTC"}
JOB = {
    "jobType": "Pipeline",
    "jobs": {"train": {"type": "command", "componentId": f"{WORKSPACE}/components/a/versions/1"}},
}
OTHER = "urn:pulumi:prod::train::amlstack:schedules:Schedule::nightly"


def inputs(name: str = "nightly", **properties: Any) -> dict[str, Any]:
    body = {"trigger": TRIGGER, "action": {"actionType": "CreateJob", "jobDefinition": JOB}, **properties}
    return {"workspace": WORKSPACE, "name": name, "body": {"properties": body}}


def test_the_body_goes_as_it_is_with_the_owners_mark(wire: Wire, arm: FakeArm) -> None:
    one = wire.schedule()
    assert one.preview(inputs())["scheduleId"] == ID
    assert arm.count("PUT", "/schedules/") == 0
    assert one.up(inputs(properties={"team": "vision"})) == "create"
    assert one.id == ID
    sent = arm.last("PUT", "/schedules/").body
    marks = {"team": "vision", "amlstack.owner": "train/dev"}
    assert sent == {"properties": {**inputs()["body"]["properties"], "properties": marks}}
    assert (one.outputs["owner"], one.outputs["enabled"]) == ("train/dev", True)
    assert one.up(inputs(properties={"team": "vision"})) == "same"
    assert arm.count("PUT", "/schedules/") == 1


@pytest.mark.parametrize(
    "edit",
    [
        {"trigger": {**TRIGGER, "expression": "0 3 * * *"}},
        {"action": {"actionType": "CreateJob", "jobDefinition": {**JOB, "experimentName": "e"}}},
        {"tags": {"a": "b"}},
        {"isEnabled": False},
    ],
    ids=["trigger", "job", "tags", "enabled"],
)
def test_an_edit_is_written_in_place(edit: dict[str, Any], wire: Wire, arm: FakeArm) -> None:
    one = wire.schedule()
    one.up(inputs())
    (path,) = edit
    diff = one.diff(one.check(inputs(**edit)))
    assert not diff.replaces
    assert all(each.startswith(f"body.properties.{path}") for each in diff.detailedDiff)
    assert one.up(inputs(**edit)) == "update"
    assert arm.last("PUT", "/schedules/").body["properties"][path] == edit[path]
    assert one.outputs["enabled"] is edit.get("isEnabled", True)
    assert one.up(inputs(**edit)) == "same"


def test_another_name_is_another_schedule_and_the_two_never_start_the_same_job_twice(wire: Wire, arm: FakeArm) -> None:
    one = wire.schedule()
    one.up(inputs())
    assert one.up(inputs("hourly")) == "replace"
    assert list(arm.schedules) == [f"{WORKSPACE}/schedules/hourly"]
    done = [(each.method, each.path.rsplit("/", 1)[-1]) for each in arm.asked if each.method != "GET"]
    assert done == [("PUT", "nightly"), ("PUT", "nightly"), ("DELETE", "nightly"), ("PUT", "hourly")]


def test_it_is_disabled_before_it_is_deleted(wire: Wire, arm: FakeArm) -> None:
    one = wire.schedule()
    one.up(inputs())
    one.remove()
    assert arm.last("PUT", "/schedules/").body["properties"]["isEnabled"] is False
    assert arm.schedules == {}
    assert arm.count("DELETE", "/jobs/") == 0


def test_one_that_is_gone_or_disabled_is_deleted_without_more_ado(wire: Wire, arm: FakeArm) -> None:
    one, other = wire.schedule(), wire.schedule("other")
    one.up(inputs())
    other.up(inputs("other", isEnabled=False))
    arm.schedules.pop(ID)
    puts = arm.count("PUT", "/schedules/")
    one.remove()
    other.remove()
    assert (arm.schedules, arm.count("PUT", "/schedules/")) == ({}, puts)


def test_a_workspace_that_is_gone_takes_its_schedules_along(wire: Wire, arm: FakeArm) -> None:
    one = wire.schedule()
    one.up(inputs())
    arm.workspaces.clear()
    with pytest.raises(Refused, match="no workspace"):
        one.refresh()
    one.remove()


def test_another_stacks_schedule_is_refused_by_name_at_preview_already(wire: Wire, arm: FakeArm) -> None:
    wire.schedule(urn=OTHER).up(inputs())
    mine = wire.schedule()
    for act in (mine.preview, mine.up):
        with pytest.raises(Refused, match="schedule nightly belongs to train/prod, not to train/dev"):
            act(inputs())
    assert arm.schedules[ID]["properties"] == {"amlstack.owner": "train/prod"}


def test_one_that_somebody_made_by_hand_is_refused_until_it_is_imported(wire: Wire, arm: FakeArm) -> None:
    arm.schedules[ID] = {**inputs()["body"]["properties"], "isEnabled": True, "provisioningState": "Succeeded"}
    with pytest.raises(Refused, match=r"exists that was not made here.*pulumi import"):
        wire.schedule().up(inputs())
    one = wire.schedule()
    one.id = ID
    answer = wire.call("Read", provider_pb2.ReadRequest(id=ID, urn=one.urn))
    one.inputs, one.outputs = decode(answer.inputs), decode(answer.properties)
    assert one.inputs == {**inputs(), "body": {"properties": {**inputs()["body"]["properties"], "isEnabled": True}}}
    assert one.up(one.inputs) == "same"
    # A declaration that says nothing of it, and empty values, mean what is there: an import changes nothing.
    assert one.up(inputs()) == "same"
    assert "properties" not in arm.schedules[ID]
    edited = inputs()
    edited["body"]["properties"]["displayName"] = "Every night"
    assert one.up(edited) == "update"
    assert arm.schedules[ID]["properties"] == {"amlstack.owner": "train/dev"}


def test_a_wrong_id_is_refused_with_the_form_of_ids(wire: Wire) -> None:
    with pytest.raises(Refused, match="nightly is no id of a schedule, which look like"):
        wire.call("Read", provider_pb2.ReadRequest(id="nightly", urn=wire.schedule().urn))


def test_what_a_killed_deployment_left_behind_is_taken_up(wire: Wire, arm: FakeArm, log: Log) -> None:
    wire.schedule().up(inputs())
    wire.restart()
    again = wire.schedule()
    assert again.up(inputs()) == "create"
    assert again.outputs["owner"] == "train/dev"
    assert any("made before and not recorded here" in messages for messages in log.messages("info"))


def test_a_vanished_schedule_is_made_anew_after_a_word_about_its_first_job(wire: Wire, arm: FakeArm, log: Log) -> None:
    one = wire.schedule()
    one.up(inputs())
    arm.schedules.pop(ID)
    one.refresh()
    assert one.id == ""
    assert any("starts its first job at once" in messages for messages in log.messages("warning"))
    assert one.up(inputs()) == "create"
    assert ID in arm.schedules


def test_one_that_vanished_unseen_is_made_anew_by_the_next_edit(wire: Wire, arm: FakeArm) -> None:
    one = wire.schedule()
    one.up(inputs())
    arm.schedules.pop(ID)
    assert one.up(inputs(tags={"a": "b"})) == "update"
    assert arm.schedules[ID]["tags"] == {"a": "b"}


def test_what_was_changed_outside_is_seen_by_a_refresh_and_written_back(wire: Wire, arm: FakeArm, log: Log) -> None:
    one = wire.schedule()
    one.up(inputs(tags={"a": "b"}))
    one.refresh()
    assert one.outputs["drifted"] == []  # the service's own way of writing a time is no edit
    arm.schedules[ID]["trigger"]["expression"] = "* * * * *"
    arm.schedules[ID]["tags"]["mine"] = "too"  # what others add is theirs
    for _ in range(2):
        one.refresh()
        assert one.outputs["drifted"] == ["body.properties.trigger.expression"]
    assert any(
        "nightly was changed outside: body.properties.trigger.expression" in messages
        for messages in log.messages("warning")
    )
    assert one.up(inputs(tags={"a": "b"})) == "update"
    assert arm.schedules[ID]["trigger"]["expression"] == "0 2 * * *"
    one.refresh()
    assert one.up(inputs(tags={"a": "b"})) == "same"


def test_one_that_a_person_paused_stays_paused_whatever_is_edited(wire: Wire, arm: FakeArm, log: Log) -> None:
    one = wire.schedule()
    one.up(inputs())
    arm.schedules[ID]["isEnabled"] = False
    assert one.up(inputs(tags={"a": "b"})) == "update"
    assert (arm.schedules[ID]["isEnabled"], arm.schedules[ID]["tags"]) == (False, {"a": "b"})
    assert one.outputs["enabled"] is False
    one.refresh()
    assert one.up(inputs(tags={"a": "b"})) == "same"
    assert any("nightly is disabled in the workspace and stays so" in messages for messages in log.messages("info"))
    assert one.up(inputs(tags={"a": "b"}, isEnabled=True)) == "update"
    assert (arm.schedules[ID]["isEnabled"], one.outputs["enabled"]) == (True, True)


def test_a_schedule_that_says_it_is_enabled_is_resumed_by_the_next_up_after_a_refresh(wire: Wire, arm: FakeArm) -> None:
    one = wire.schedule()
    one.up(inputs(isEnabled=True))
    arm.schedules[ID]["isEnabled"] = False
    one.refresh()
    assert one.outputs["drifted"] == ["body.properties.isEnabled"]
    assert one.up(inputs(isEnabled=True)) == "update"
    assert arm.schedules[ID]["isEnabled"] is True


def test_one_that_its_own_stack_disabled_is_enabled_when_it_no_longer_says_so(wire: Wire, arm: FakeArm) -> None:
    one = wire.schedule()
    one.up(inputs(isEnabled=False))
    assert one.outputs["enabled"] is False
    one.up(inputs())
    assert (arm.schedules[ID]["isEnabled"], one.outputs["enabled"]) == (True, True)


def test_one_that_another_stack_took_over_is_neither_edited_nor_deleted(wire: Wire, arm: FakeArm, log: Log) -> None:
    one = wire.schedule()
    one.up(inputs())
    arm.schedules[ID]["properties"] = {"amlstack.owner": "train/prod"}
    one.refresh()
    assert any("belongs to train/prod by now" in messages for messages in log.messages("warning"))
    with pytest.raises(Refused, match="belongs to train/prod"):
        one.up(inputs(tags={"a": "b"}))
    one.remove()
    assert ID in arm.schedules


def test_two_resources_cannot_stand_for_one_schedule(wire: Wire) -> None:
    wire.schedule().up(inputs())
    other = wire.schedule("other")
    with pytest.raises(Refused, match="other and nightly declare the same schedule nightly"):
        other.up(inputs(), same_deployment=True)


def test_a_forced_replacement_keeps_the_schedule_that_both_stand_for(wire: Wire, arm: FakeArm) -> None:
    old, new = wire.schedule(), wire.schedule()
    old.up(inputs())
    wire.configure()
    new.up(inputs(), same_deployment=True)
    wire.call("Delete", provider_pb2.DeleteRequest(id=old.id, urn=old.urn, properties=encode(old.outputs)))
    assert arm.schedules[ID]["isEnabled"] is True


def test_what_is_unknown_at_preview_is_planned(wire: Wire, arm: FakeArm) -> None:
    one = wire.schedule()
    unknown = inputs(action={"actionType": "CreateJob", "jobDefinition": {**JOB, "sourceJobId": UNKNOWN}})
    foretold = one.preview(unknown)
    assert foretold["scheduleId"] == ID
    assert one.preview({**inputs(), "body": UNKNOWN})["enabled"] is True
    assert "scheduleId" not in one.preview({**inputs(), "name": UNKNOWN})
    one.up(inputs())
    diff = one.diff(one.check(unknown))
    assert list(diff.detailedDiff) == ["body.properties.action.jobDefinition.sourceJobId"]
    assert list(one.diff(one.check({**inputs(), "body": UNKNOWN})).detailedDiff) == ["body"]


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"body": 'body must be an ARM schedule body, {"properties": {…}}'}),
        (
            {"properties": {"displayName": "x"}},
            {
                "body.properties.trigger": "a schedule has a trigger",
                "body.properties.action": "a schedule has an action",
            },
        ),
    ],
)
def test_a_body_that_is_no_schedule_is_refused(body: Any, fields: dict[str, str], wire: Wire) -> None:
    assert wire.schedule().failures({**inputs(), "body": body}) == fields


def test_a_refusal_of_the_service_is_shown_in_its_own_words(wire: Wire, arm: FakeArm) -> None:
    arm.fail("PUT", "/schedules/", 400, message="The cron expression is invalid.")
    with pytest.raises(Refused, match=r"schedule nightly was not accepted: .*The cron expression is invalid"):
        wire.schedule().up(inputs())


def test_no_value_of_a_schedule_is_kept_twice_in_the_state(wire: Wire) -> None:
    one = wire.schedule()
    one.up(inputs())
    assert "0 2 * * *" not in str(one.outputs["settled"])
