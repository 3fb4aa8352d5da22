"""Schedules: read, planned with what they start, and the same body as azure-ai-ml."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import jobs
from tests.support.jobs import oracle
from tests.support.jobs.schedule_cases import ACCEPTED, EVERY

if TYPE_CHECKING:
    from pathlib import Path

PIPELINE = """\
type: pipeline
display_name: P
experiment_name: E
inputs: {a: 1, b: 2}
jobs:
  t:
    command: echo ${{inputs.a}}
    environment: azureml:e:1
    inputs: {a: "${{parent.inputs.a}}"}
    compute: azureml:gpu
    distribution: {type: mpi, process_count_per_instance: 2}
"""
REFUSED = {
    "no-trigger": "create_job: ./pipeline.yml\n",
    "no-job": EVERY,
    "no-expression": "trigger: {type: cron}\ncreate_job: ./pipeline.yml\n",
    "time-unquoted": (
        'trigger: {type: cron, expression: "* * * * *", start_time: 2022-07-10T10:00:00}\ncreate_job: ./pipeline.yml\n'
    ),
    "time-is-a-day": (
        'trigger: {type: cron, expression: "* * * * *", start_time: "2022-07-10"}\ncreate_job: ./pipeline.yml\n'
    ),
    "trigger-unknown-key": 'trigger: {type: cron, expression: "* * * * *", bogus: 1}\ncreate_job: ./pipeline.yml\n',
    "unknown-key": EVERY + "create_job: ./pipeline.yml\nbogus: 1\n",
    "file-prefix": EVERY + "create_job: file:./pipeline.yml\n",
    "file-missing": EVERY + "create_job: ./pipelnie.yml\n",
    "steps-changed": EVERY + "create_job: {job: ./pipeline.yml, jobs: {}}\n",
    "ran-before-without-type": EVERY + "create_job: {job: azureml:x, compute: azureml:gpu}\n",
}


def planned(path: Path) -> tuple[Any, list[str]]:
    loaded = jobs.load(path)
    plans = [jobs.resolve(each, lambda _: (jobs.Target(), ()), source=loaded.source) for each in loaded.jobs]
    findings = (*loaded.findings, *(finding for plan in plans for finding in plan.findings))
    return plans[0] if plans else None, [str(finding) for finding in findings if finding.level == "error"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "pipeline.yml").write_text(PIPELINE)
    (tmp_path / "job.yml").write_text("command: echo\nenvironment: azureml:e:1\n")
    return tmp_path / "schedule.yml"


@pytest.mark.parametrize("case", ACCEPTED)
def test_an_accepted_schedule_becomes_the_same_body(case: str, place: Path) -> None:
    place.write_text("name: s\n" + ACCEPTED[case])
    plan, errors = planned(place)
    assert errors == []
    body = jobs.render(plan.enriched).body
    for node in body["properties"]["action"]["jobDefinition"].get("jobs", {}).values():
        assert node.pop("componentId").startswith("azureml_anonymous:")
    assert body == oracle.schedule(place)


@pytest.mark.parametrize("case", REFUSED)
def test_a_refused_schedule_has_one_finding(case: str, place: Path) -> None:
    place.write_text("name: s\n" + REFUSED[case])
    with pytest.raises((oracle.RefusedError, TypeError)):
        oracle.schedule(place)
    _, errors = planned(place)
    assert len(errors) == 1, errors
    assert "schedule.yml:" in errors[0]


def test_what_is_started_is_judged_in_its_own_file(place: Path) -> None:
    (place.parent / "pipeline.yml").write_text(
        PIPELINE.replace("command: echo ${{inputs.a}}", "command: echo ${{inputs.b}}")
    )
    place.write_text("name: s\n" + ACCEPTED["cron"])
    _, (error,) = planned(place)
    assert error.startswith(f"{place.parent / 'pipeline.yml'}:7:5: jobs.t.command")


def test_a_command_job_in_a_schedule_gives_a_finding(place: Path) -> None:
    place.write_text("name: s\n" + EVERY + "create_job: ./job.yml\n")
    with pytest.raises(oracle.RefusedError, match="Unsupported job type"):
        oracle.schedule(place)
    plan, (error,) = planned(place)
    assert error.startswith(f"{place}:3:1: create_job: The schedule starts a command job.")
    assert [finding.code for finding in plan.findings if finding.where == "create_job"] == ["schedule-kind"]
