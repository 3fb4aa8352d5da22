"""Schedules of a stack: judged with what they start; they are planned in test_sweeps_and_pipelines_in_a_stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import jobs
from tests.support.infra import composed_files
from tests.support.infra.composed_files import NIGHTLY, PIPELINE, WEEKLY, errors, judged, written

if TYPE_CHECKING:
    from pathlib import Path

    from infra.runs import Run

STACK = composed_files.STACK + "  amlstack:jobs: [{file: nightly.yml}, weekly.py]\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return written(tmp_path, {"Pulumi.team.yaml": STACK, "nightly.yml": NIGHTLY, "weekly.py": WEEKLY})


def timed(project: Path) -> dict[str, Run]:
    return {run.name: run for run in judged(project).runs if run.is_schedule}


def test_each_part_of_what_a_schedule_starts_has_its_code_and_its_cluster(project: Path) -> None:
    assert errors(project) == []
    schedules = timed(project)
    assert set(schedules) == {"nightly", "weekly"}
    assert set(schedules["nightly"].codes) == {"jobs.prepare", "jobs.train"}
    parts = schedules["nightly"].plan.parts
    assert {place: part.target.cluster for place, part in parts.items()} == {
        "jobs.prepare": "cpu",
        "jobs.train": "a100",
    }
    assert isinstance(parts["jobs.prepare"].enriched.environment, jobs.Environment)
    (train,) = schedules["weekly"].plan.parts.values()
    assert "torchrun --nnodes 2 --nproc_per_node 8" in train.enriched.command


@pytest.mark.parametrize(
    ("file", "old", "new", "place"),
    [
        ("pipeline.yml", "instance_count: 2", "instance_count: 3", "pipeline.yml:14:17: jobs.train.resources"),
        ("pipeline.yml", "azureml:a100", "azureml:cpu2", "pipeline.yml:12:5: jobs.train.compute"),
        ("pipeline.yml", "code: prepare", "code: prepaer", "pipeline.yml:6:5: jobs.prepare.code"),
        ("train.yml", "code: ./train", "code: ./trian", "train.yml:3:1: jobs.train.component.code"),
        ("weekly.py", "nodes=2", "nodes=3", "weekly.py:13:17: create_job.jobs.train.nodes"),
        ("weekly.py", "a100", "local", "weekly.py:12:17: create_job.jobs.train.compute"),
        ("nightly.yml", "./pipeline.yml", "./pipelnie.yml", "nightly.yml:3:1: create_job"),
    ],
)
def test_a_mistake_in_a_scheduled_job_gives_one_finding_in_its_own_file(
    file: str, old: str, new: str, place: str, project: Path
) -> None:
    path = project / file
    path.write_text(path.read_text().replace(old, new))
    (error,) = errors(project)
    assert error.startswith(place), error


def test_the_rules_judge_what_is_started(project: Path) -> None:
    (project / "pipeline.yml").write_text(PIPELINE.replace("azureml:a100", "azureml:k80"))
    (project / "Pulumi.team.yaml").write_text(
        STACK.replace("clusters:\n", "clusters:\n    - {name: k80, size: Standard_NC24r, nodes: {max: 2}}\n")
    )
    assert any("clusters[0].size" in error for error in errors(project))
    assert sum("NC24r" in error and "SR-IOV" in error for error in errors(project)) == 1


def test_the_stack_says_whether_a_schedule_is_enabled(project: Path) -> None:
    assert timed(project)["nightly"].plan.enriched.is_enabled is None
    (project / "Pulumi.team.yaml").write_text(STACK.replace("nightly.yml}", "nightly.yml, enabled: false}"))
    plan = timed(project)["nightly"].plan
    assert jobs.render(plan.enriched).body["properties"]["isEnabled"] is False


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("nightly.yml, wait: started, rerun: again", "The stack sets `rerun`, `wait` for a schedule"),
        ("pipeline.yml, enabled: true", "The stack sets `enabled` for a job"),
    ],
)
def test_an_override_gives_a_warning_when_it_means_nothing_for_the_file(
    given: str, message: str, project: Path
) -> None:
    (project / "Pulumi.team.yaml").write_text(STACK.replace("nightly.yml", given))
    found = [finding for finding in judged(project).findings if finding.code == "setting-misplaced"]
    assert [(finding.seen, finding.level.value) for finding in found] == [(message, "warning")]
    assert str(found[0]).startswith("Pulumi.team.yaml:8:")


def test_two_schedules_of_one_name_are_refused_and_a_job_may_have_that_name(project: Path) -> None:
    (project / "Pulumi.team.yaml").write_text(STACK.replace("weekly.py", "weekly.py, named.yml"))
    (project / "named.yml").write_text("name: weekly\ncommand: echo\nenvironment: azureml:mine\ncompute: azureml:cpu\n")
    assert errors(project) == []
    (project / "named.yml").write_text(NIGHTLY)
    (error,) = errors(project)
    assert "Two schedules are named `nightly`" in error
