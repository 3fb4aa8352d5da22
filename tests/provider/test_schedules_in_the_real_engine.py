"""Schedules of a program of one's own under the real engine, against the fake ARM."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.provider.fake_workspace import WORKSPACE

if TYPE_CHECKING:
    from tests.support.harness import Stack
    from tests.support.provider.fake_arm import FakeArm
    from tests.support.running import MakeStack

pytestmark = pytest.mark.engine

PROGRAM = """\
import pulumi
from amlstack.resources import JobResource, ScheduleResource

config = pulumi.Config()
workspace = config.require("workspace")
ran = JobResource(
    "ran",
    workspace=workspace,
    name="ran",
    declaration={},
    body={"properties": {"jobType": "Command", "command": "true", "environmentId": "e"}},
)
properties = {
    "displayName": ran.status.apply(lambda status: f"after {status}"),
    "tags": {"cost_center": "7"},
    "trigger": {"triggerType": "Cron", "expression": "0 2 * * *", "timeZone": "UTC"},
    "action": {"actionType": "CreateJob", "jobDefinition": {"jobType": "Pipeline", "sourceJobId": ran.job_id}},
}
if config.get("enabled"):
    properties["isEnabled"] = config.get_bool("enabled")
timer = ScheduleResource(
    "timer",
    workspace=workspace,
    name=config.get("name") or "nightly",
    body={"properties": properties},
    opts=pulumi.ResourceOptions(protect=config.get_bool("protect"), import_=config.get("import")),
)
pulumi.export("timer", {"id": timer.schedule_id, "enabled": timer.enabled, "owner": timer.owner})
"""
NIGHTLY = f"{WORKSPACE}/schedules/nightly"


@pytest.fixture
def timer(stack: MakeStack, arm: FakeArm) -> Stack:
    return stack(PROGRAM, env=arm.environ()).set("workspace", WORKSPACE)


def test_one_is_planned_healed_after_a_kill_replaced_by_hand_and_renamed(timer: Stack, arm: FakeArm) -> None:
    planned = timer.preview().ok()
    assert planned.op("timer") == "create"
    (step,) = (step for step in planned.done if step.name == "timer")
    assert step.new["outputs"]["scheduleId"] == NIGHTLY

    # Killed right after it was accepted. What its body takes of other resources came before it.
    arm.hold = "/schedules/"
    running = timer.start_up()
    assert arm.held.wait(300)
    running.kill()
    arm.release.set()
    assert timer.resources("Schedule") == {}
    (ran,) = arm.jobs
    sent = arm.schedules[NIGHTLY]
    assert sent["displayName"] == "after Queued"
    assert sent["action"]["jobDefinition"]["sourceJobId"].lower() == ran
    assert sent["tags"] == {"cost_center": "7"}, "names in a body are the person's"
    written = [asked.path.lower() for asked in arm.asked if asked.method == "PUT"]
    assert written == [ran, NIGHTLY.lower()]
    up = timer.unlock().up().ok()
    assert "made before and not recorded here" in "\n".join(one.message for one in up.diagnostics)
    assert timer.outputs()["timer"] == {"id": NIGHTLY, "enabled": True, "owner": "scenario/test"}

    urn = timer.resources("Schedule")["timer"]["urn"]
    assert timer.up("--replace", urn).ok().op("timer") == "replace"
    assert arm.schedules[NIGHTLY]["isEnabled"] is True
    assert timer.preview().ok().changes == {}

    renamed = timer.set("name", "hourly").up().ok()
    ops = [step.op for step in renamed.planned if step.name == "timer"]
    assert ops.index("delete-replaced") < ops.index("create-replacement"), "the old one goes first"
    assert list(arm.schedules) == [f"{WORKSPACE}/schedules/hourly"]


def test_a_protected_one_survives_a_destroy_and_one_that_was_made_by_hand_is_imported(
    timer: Stack, arm: FakeArm
) -> None:
    timer.set("protect", "true").up().ok()
    timer.destroy().failed()
    assert arm.schedules[NIGHTLY]["isEnabled"] is True

    urn = timer.resources("Schedule")["timer"]["urn"]
    timer.pulumi("state", "delete", urn, "--force", "--yes").ok()
    arm.schedules[NIGHTLY]["properties"] = {}
    assert "exists that was not made here" in "\n".join(timer.up().failed().errors)
    timer.set("enabled", "true").set("import", NIGHTLY).up().ok()
    assert timer.outputs()["timer"] == {"id": NIGHTLY, "enabled": True, "owner": ""}
    timer.set("import", None).set("enabled", "false").set("protect", "false").up().ok()
    assert timer.outputs()["timer"] == {"id": NIGHTLY, "enabled": False, "owner": "scenario/test"}
    assert arm.schedules[NIGHTLY]["isEnabled"] is False

    timer.destroy().ok()
    assert arm.schedules == {}
