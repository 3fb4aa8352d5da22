"""Good sweep, pipeline, component and schedule files, damaged: never a traceback, every error with its place."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jobs
from tests.support import yaml_files
from tests.support.examples import examples
from tests.support.jobs import mutations, other_step_cases, pipeline_cases

if TYPE_CHECKING:
    from pathlib import Path

EVERY = int(os.environ.get("AMLSTACK_MUTATIONS", "13"))
"""Every how manyth mutation is tried; 1 tries them all."""
SWEEP = """\
type: sweep
trial:
  command: train ${{search_space.lr}} ${{inputs.data}}
  environment: azureml:env:1
  distribution: {type: mpi, process_count_per_instance: 2}
  resources: {instance_count: 2}
inputs: {data: {type: uri_folder, path: azureml:x:1}}
search_space:
  lr: {type: uniform, min_value: 0.1, max_value: 1}
  size: {type: choice, values: [1, 2]}
objective: {goal: minimize, primary_metric: loss}
limits: {max_total_trials: 4, timeout: 900}
sampling_algorithm: {type: random, seed: 1}
early_termination: {type: bandit, slack_factor: 0.1, evaluation_interval: 2}
compute: azureml:gpu
"""
PIPELINE = """\
type: pipeline
settings: {default_compute: azureml:gpu, continue_on_step_failure: false}
inputs: {data: {type: uri_file, path: azureml:x:1}, rate: 0.1}
outputs: {model: {type: uri_folder}}
jobs:
  prepare:
    command: prep ${{inputs.data}} ${{outputs.out}}
    environment: azureml:env:1
    code: src
    inputs: {data: "${{parent.inputs.data}}"}
    outputs: {out: }
  train:
    type: command
    component: ./sub/component.yml
    inputs: {data: "${{parent.jobs.prepare.outputs.out}}", lr: "${{parent.inputs.rate}}"}
    outputs: {model: "${{parent.outputs.model}}"}
    distribution: {type: pytorch, process_count_per_instance: 2}
    resources: {instance_count: 2}
  score:
    type: parallel
    component: ./sub/parallel.yml
    inputs: {images: "${{parent.inputs.data}}"}
    retry_settings: {max_retries: 2}
  inner: {type: pipeline, component: ./sub/inner.yml, inputs: {data: "${{parent.inputs.data}}"}}
"""
SCHEDULE = """\
name: nightly
trigger: {type: recurrence, frequency: day, interval: 1, schedule: {hours: [4], minutes: [0], week_days: [monday]}}
create_job: {type: pipeline, job: ./whole.yml, settings: {default_compute: azureml:gpu}, inputs: {rate: 0.2}}
"""
FILES = {
    "sweep": SWEEP,
    "pipeline": PIPELINE,
    "component": pipeline_cases.COMPONENT.replace("./code", "./sub/code"),
    "schedule": SCHEDULE,
}
INNER = {"component": pipeline_cases.COMPONENT, "parallel": other_step_cases.PARALLEL, "inner": other_step_cases.INNER}
"""Files that `PIPELINE` names, damaged in their turn."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    pipeline_cases.folder(tmp_path)
    other_step_cases.folder(tmp_path)
    (tmp_path / "whole.yml").write_text(PIPELINE)
    return tmp_path / "job.yml"


def judged(place: Path) -> list[Any]:
    """The faults of a file, the plan's findings among them; a body is rendered where there is none."""
    loaded = jobs.load(place)
    plans = [jobs.resolve(each, lambda _: (jobs.Target(), ()), source=loaded.source) for each in loaded.jobs]
    found = [*loaded.findings, *(finding for plan in plans for finding in plan.findings)]
    wrong = [finding for finding in found if finding.level == "error"]
    if plans and not wrong:
        refs = {
            name.removeprefix("jobs."): jobs.Refs(environment="inline")
            for name, part in plans[0].parts.items()
            if not isinstance(part.job.environment, str)
        }
        assert jobs.render(plans[0].enriched, steps=refs).body["properties"]
    return wrong


def placed(wrong: list[Any]) -> bool:
    return all(finding.file and finding.seen and (finding.rule or " must " in finding.seen) for finding in wrong)


@pytest.mark.parametrize("kind", FILES)
def test_the_files_are_good_before_they_are_damaged(kind: str, place: Path) -> None:
    place.write_text(FILES[kind])
    assert judged(place) == []


@pytest.mark.parametrize("family", [mutations.of_data, mutations.of_lines, mutations.of_bytes])
@pytest.mark.parametrize("kind", FILES)
def test_a_damaged_file_is_read_or_gives_a_finding_at_its_place(kind: str, family: Any, place: Path) -> None:
    refused = 0
    for each in itertools.islice(family(FILES[kind]), 0, None, EVERY):
        place.write_bytes(each.content)
        wrong = judged(place)
        refused += bool(wrong)
        assert placed(wrong), f"{each.name}: {wrong}"
    assert refused or family is mutations.of_bytes


@pytest.mark.parametrize("name", INNER)
def test_a_damaged_file_that_a_pipeline_names_gives_a_finding_at_its_place(name: str, place: Path) -> None:
    place.write_text(PIPELINE)
    inner = place.parent / "sub" / f"{name}.yml"
    refused = 0
    for each in itertools.islice(mutations.of_data(INNER[name]), 0, None, EVERY):
        inner.write_bytes(each.content)
        wrong = judged(place)
        refused += bool(wrong)
        assert placed(wrong), f"{each.name}: {wrong}"
    assert refused


UNKNOWN = {
    "sweep": [("objective:", "objectiv:"), ("seed: 1", "sed: 1"), ("primary_metric", "primary_metrics")],
    "pipeline": [("settings:", "setings:"), ("    code: src", "    cod: src")],
    "schedule": [("trigger:", "triger:"), ("frequency:", "frequencies:"), ("hours:", "hour:")],
}


@pytest.mark.parametrize(
    ("kind", "old", "new"), [(kind, *each) for kind, all_ in UNKNOWN.items() for each in all_ if each[0] in FILES[kind]]
)
def test_one_misspelt_key_is_one_finding_with_line_and_column(kind: str, old: str, new: str, place: Path) -> None:
    text = FILES[kind].replace(old, new, 1)
    place.write_text(text)
    (finding,) = judged(place)
    line = next(number for number, each in enumerate(text.split("\n"), 1) if new.strip() in each)
    assert (finding.line, finding.column is not None) == (line, True)
    assert "Did you mean" in finding.remedy


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4), st.dates()),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    max_leaves=4,
)


@settings(max_examples=examples(0.6), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kind=st.sampled_from(sorted(FILES)), more=st.data())
def test_any_value_at_any_place_is_read_or_gives_a_finding(kind: str, more: Any, place: Path) -> None:
    data = yaml_files.load(FILES[kind])
    path = more.draw(st.sampled_from(sorted(mutations.paths(data), key=str)))
    place.write_bytes(mutations.replaced(data, path, more.draw(values)))
    assert placed(judged(place))
