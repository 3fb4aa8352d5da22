"""One stack with schedules from its first `up` to its end: what each edit does, inside the stack and outside of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.run_identity import OWNER
from tests.support.harness import ANALYZER
from tests.support.stack.small_jobs import StackLife, runs, settings, store_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.engine_result import Result
    from tests.support.harness import Stack
    from tests.support.stack.small_jobs import Own

# The first one waits for the whole story.
pytestmark = [pytest.mark.engine, pytest.mark.timeout(3600)]

KIND = "Microsoft.MachineLearningServices/workspaces/schedules"
PIPELINE = """\
type: pipeline
settings: {{default_compute: "azureml:busy"}}
jobs:
  prepare:
    command: python prepare.py --rows {rows}
    code: prepare
    environment: azureml:small
  train:
    command: python train.py
    code: train
    environment: azureml:small
    distribution: {{type: pytorch, process_count_per_instance: 8}}
    resources: {{instance_count: 2, shm_size: 80g}}
    limits: {{timeout: 3600}}
"""
SCHEDULE = """\
name: {name}
tags: {{team: vision}}
trigger: {{type: cron, expression: "{expression}", start_time: "2026-07-01T00:00:00"}}
create_job: ./pipeline.yml
"""


@dataclass
class Story(StackLife):
    """With the schedules and components that the sandbox knew after each step."""

    schedules: dict[str, dict[str, Any]] = field(default_factory=dict)
    components: dict[str, set[str]] = field(default_factory=dict)
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)

    def tell(self, step: str, result: Result, outputs: dict[str, Any] | None = None) -> None:
        self.results[step] = result
        self.outputs[step] = outputs or {}
        with store_of(self.home) as store:
            self.schedules[step] = {row.name: row.body["properties"] for row in store.resources.of_type(KIND)}
            self.components[step] = {row.name for row in store.resources.all() if "/components/" in row.key}

    def op(self, step: str, name: str = "nightly") -> str:
        return self.results[step].op(name, "schedules:Schedule")


def outside(home: Path, name: str, **changes: Any) -> None:
    """Somebody edits a schedule in the studio; without changes it is deleted there."""
    with store_of(home) as store:
        (row,) = (row for row in store.resources.of_type(KIND) if row.name == name)
        if not changes:
            store.resources.delete(row.key)
            return
        body = {"properties": {**row.body["properties"], **changes}}
        store.resources.put(row.id, row.type, row.parent, body)


@pytest.fixture(scope="module")
def story(own: Own, tmp_path_factory: pytest.TempPathFactory) -> Story:
    return story_of(own.stack, tmp_path_factory.mktemp("jobs"), own.home)


def story_of(stack: Stack, folder: Path, home: Path) -> Story:
    story = Story(home)
    file = folder / "nightly.yml"

    def write(*, name: str = "nightly", expression: str = "0 2 * * *", rows: int = 10) -> None:
        file.write_text(SCHEDULE.format(name=name, expression=expression))
        (folder / "pipeline.yml").write_text(PIPELINE.format(rows=rows))

    for name in ("prepare", "train"):
        (folder / name).mkdir()
        (folder / name / f"{name}.py").write_text(f"print('{name}')\n")
    for key, value in settings("ws-schedules").items():
        stack.set(key, value, path=False)
    stack.set("amlstack:jobs", [str(file)])
    write()
    story.tell("first", stack.up(policy_packs=[ANALYZER]).ok(), stack.outputs())
    write(expression="0 3 * * *")
    story.tell("trigger", stack.up().ok())

    outside(home, "nightly", isEnabled=False)
    write(expression="0 3 * * *", rows=20)
    (folder / "prepare" / "prepare.py").write_text("print('better')\n")
    story.tell("paused", stack.up().ok(), stack.outputs())

    outside(home, "nightly", trigger={"triggerType": "Cron", "expression": "* * * * *", "timeZone": "UTC"})
    stack.set("amlstack:jobs", [{"file": str(file), "enabled": True}])
    story.tell("resumed", stack.up("--refresh").ok(), stack.outputs())

    outside(home, "nightly")
    story.tell("anew", stack.up("--refresh").ok())

    outside(home, "nightly", properties={OWNER: "speech/prod"})
    stack.set("amlstack:jobs", [{"file": str(file), "enabled": False}])
    story.tell("taken over", stack.up().failed())
    outside(home, "nightly", properties={OWNER: "amlstack/test"})

    write(name="weekly", expression="0 3 * * *", rows=20)
    story.tell("renamed", stack.up().ok())

    other = folder / "other.yml"
    other.write_text(SCHEDULE.format(name="other", expression="0 4 * * *"))
    stack.set("amlstack:jobs", [str(file), str(other)])
    with store_of(home) as store:
        (row,) = store.resources.of_type(KIND)
        theirs = {"properties": {**row.body["properties"], "properties": {OWNER: "speech/prod"}}}
        store.resources.put(row.id.replace("weekly", "other"), row.type, row.parent, theirs)
    story.tell("foreign", stack.preview().failed())
    stack.set("amlstack:jobs", [str(file)])
    story.tell("destroyed", stack.destroy().ok())
    return story


def test_a_schedule_stands_in_the_workspace_and_nothing_runs(story: Story) -> None:
    assert story.op("first") == "create"
    schedule = story.schedules["first"]["nightly"]
    assert schedule["properties"] == {OWNER: "amlstack/test"}
    assert (schedule["isEnabled"], schedule["tags"]) == (True, {"team": "vision"})
    assert schedule["trigger"]["expression"] == "0 2 * * *"
    assert set(schedule["action"]["jobDefinition"]["jobs"]) == {"prepare", "train"}
    output = story.outputs["first"]["schedules"]["nightly"]
    assert output["scheduleId"].endswith("/workspaces/ws-schedules/schedules/nightly")
    assert output["enabled"] is True
    assert output["starts"] == "cron `0 2 * * *`, UTC, from 2026-07-01T00:00:00"
    assert output["parts"]["jobs.train"] == {
        "cluster": "busy",
        "size": "Standard_ND96asr_v4",
        "nodes": 2,
        "processesPerNode": 8,
        "worldSize": 16,
        "added": [],
    }
    assert runs(story.home) == {}


def test_the_policy_pack_judges_each_step_of_what_it_starts(story: Story) -> None:
    violations = [one for one in story.results["first"].violations if one.urn.endswith("schedules:Schedule::nightly")]
    assert {one.level for one in violations} == {"advisory"}
    # One step has a timeout and shared memory of its own, the other has neither.
    for policy in ("job-timeout", "shared-memory"):
        (one,) = (one for one in violations if one.policy == policy)
        assert "jobs.prepare" in one.message
        assert "jobs.train" not in one.message


def test_an_edited_trigger_is_an_update_and_touches_nothing_else(story: Story) -> None:
    assert story.results["trigger"].changes == {"update": 1}
    (step,) = story.results["trigger"].steps("nightly", "schedules:Schedule")
    assert (step.op, set(step.detail)) == ("update", {"body.properties.trigger.expression"})
    assert story.schedules["trigger"]["nightly"]["trigger"]["expression"] == "0 3 * * *"
    assert story.components["trigger"] == story.components["first"]


def test_an_edited_job_is_an_update_with_a_component_more(story: Story) -> None:
    assert story.op("paused") == "update"
    assert story.components["paused"] > story.components["trigger"]
    before, after = (
        story.schedules[step]["nightly"]["action"]["jobDefinition"]["jobs"] for step in ("trigger", "paused")
    )
    assert before["prepare"]["componentId"] != after["prepare"]["componentId"]
    assert before["train"] == after["train"]


def test_one_that_a_person_paused_stays_paused_when_its_code_is_edited(story: Story) -> None:
    assert story.schedules["paused"]["nightly"]["isEnabled"] is False
    assert story.outputs["paused"]["schedules"]["nightly"]["enabled"] is False
    assert "nightly is disabled in the workspace and stays so" in story.printed("paused")


def test_a_change_from_outside_is_shown_by_a_refresh_and_reverted_by_up(story: Story) -> None:
    assert "nightly was changed outside: body.properties.trigger" in story.printed("resumed")
    assert story.op("resumed") == "update"
    assert story.schedules["resumed"]["nightly"]["trigger"] == story.schedules["trigger"]["nightly"]["trigger"]
    assert story.schedules["resumed"]["nightly"]["isEnabled"] is True
    assert story.outputs["resumed"]["schedules"]["nightly"]["enabled"] is True


def test_a_vanished_schedule_is_made_anew(story: Story) -> None:
    assert story.op("anew") == "create"
    assert story.schedules["anew"] == story.schedules["resumed"]


def test_one_that_another_stack_took_over_is_left_alone(story: Story) -> None:
    assert "belongs to speech/prod, not to amlstack/test" in "\n".join(story.results["taken over"].errors)
    assert story.schedules["taken over"]["nightly"]["isEnabled"] is True


def test_another_name_is_another_schedule_and_the_old_one_goes(story: Story) -> None:
    assert (story.op("renamed", "weekly"), story.op("renamed")) == ("create", "delete")
    assert set(story.schedules["renamed"]) == {"weekly"}


def test_the_name_of_another_stacks_schedule_is_refused_at_preview(story: Story) -> None:
    assert "schedule other belongs to speech/prod, not to amlstack/test" in "\n".join(story.results["foreign"].errors)
    assert story.schedules["foreign"]["other"]["properties"] == {OWNER: "speech/prod"}


def test_the_end_of_the_stack_is_the_end_of_its_schedules(story: Story) -> None:
    assert story.op("destroyed", "weekly") == "delete"
    assert story.schedules["destroyed"] == {}
    assert runs(story.home) == {}
