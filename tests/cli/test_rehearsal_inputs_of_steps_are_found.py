"""Sources of the inputs of a pipeline's steps: given outputs, and steps that are pipelines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.cli.rehearsal import inputs
from tests.support.rehearsal_inputs import data, empty_folder, made, plan

if TYPE_CHECKING:
    from pathlib import Path

FETCHING = """\
type: pipeline
settings: {default_compute: azureml:a100}
jobs:
  fetch:
    command: wget https://example.org/a -O ${{outputs.data}}/a ${{inputs.list}}
    environment: azureml:e:1
    inputs: {list: {type: uri_file, path: https://example.org/list}}
    outputs: {data: {type: uri_folder}, names: {type: uri_folder}}
  train:
    command: ls ${{inputs.data}}
    environment: azureml:e:1
    inputs: {data: "${{parent.jobs.fetch.outputs.data}}"}
  test:
    command: ls ${{inputs.data}} ${{inputs.names}}
    environment: azureml:e:1
    inputs:
      data: {type: uri_folder, path: "${{parent.jobs.fetch.outputs.data}}"}
      names: "${{parent.jobs.fetch.outputs.names}}"
"""


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pipeline whose first step fetches what this machine cannot."""
    file = empty_folder(tmp_path, monkeypatch) / "pipeline.yml"
    file.write_text(FETCHING)
    return file


def test_an_output_that_is_given_is_read_in_place_and_its_step_is_not_run(pipeline: Path) -> None:
    made(pipeline.parent, "d/a", "n/a")
    found = data(pipeline, f"fetch.data={pipeline.parent}/d", f"fetch.names={pipeline.parent}/n")
    d, n = pipeline.parent / "d", pipeline.parent / "n"
    assert found.findings == ()  # nor is the list of the step that is not run looked for
    assert found.given == {"fetch"}
    assert found.by_step == {"train": {"data": d}, "test": {"data": d, "names": n}}
    assert found.lines[0] == "step fetch: not run, what other steps read of it is given"


def test_an_output_that_is_missing_beside_a_given_one_is_named(pipeline: Path) -> None:
    made(pipeline.parent, "d/a")
    (finding,) = data(pipeline, f"fetch.data={pipeline.parent}/d").findings
    assert (finding.seen, finding.remedy) == ("`fetch.names` is not given", "Give `--input fetch.names=PATH` too.")


def test_a_misspelt_output_has_a_near_miss(pipeline: Path) -> None:
    _, (finding,) = inputs.options(("fetch.name=x",), (plan(pipeline),))
    assert finding.remedy == "Did you mean `fetch.names`?"


INNER = """\
$schema: https://azuremlschemas.azureedge.net/latest/pipelineComponent.schema.json
type: pipeline
inputs:
  source: {type: uri_folder}
outputs:
  words: {type: uri_folder}
jobs:
  first:
    type: command
    command: ls ${{inputs.data}}
    environment: azureml:e:1
    inputs: {data: "${{parent.inputs.source}}"}
    outputs: {words: "${{parent.outputs.words}}"}
  second:
    type: command
    command: ls ${{inputs.words}}
    environment: azureml:e:1
    inputs: {words: "${{parent.jobs.first.outputs.words}}"}
"""
NESTED = """\
type: pipeline
settings: {default_compute: azureml:a100}
jobs:
  deep:
    type: pipeline
    component: inner.yml
    inputs: {source: {type: uri_folder, path: "azureml:cifar-10-example@latest"}}
  last:
    type: command
    command: ls ${{inputs.words}}
    environment: azureml:e:1
    inputs: {words: "${{parent.jobs.deep.outputs.words}}"}
"""


@pytest.fixture
def nested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pipeline whose first step is a pipeline."""
    folder = empty_folder(tmp_path, monkeypatch)
    (folder / "inner.yml").write_text(INNER)
    (folder / "nested.yml").write_text(NESTED)
    return folder / "nested.yml"


def test_what_a_step_that_is_a_pipeline_is_given_reaches_the_steps_in_it(nested: Path) -> None:
    made(nested.parent, "d/a")
    (missing,) = data(nested).findings
    assert "`--input deep.source=PATH`" in missing.remedy

    found = data(nested, f"deep.source={nested.parent}/d")

    assert found.findings == ()
    d = nested.parent / "d"
    assert found.by_step == {"deep": {"source": d}, "deep.jobs.first": {"data": d}}


def test_no_step_of_a_pipeline_is_looked_at_whose_output_is_given(nested: Path) -> None:
    made(nested.parent, "w/a")
    found = data(nested, f"deep.words={nested.parent}/w")

    assert found.findings == ()
    assert found.given == {"deep"}
    assert found.by_step == {"last": {"words": nested.parent / "w"}}


def test_an_output_in_a_step_that_is_a_pipeline_can_be_given(nested: Path) -> None:
    made(nested.parent, "w/a")
    found = data(nested, f"deep.jobs.first.words={nested.parent}/w", f"deep.source={nested.parent}/w")

    assert found.findings == ()
    assert found.given == {"deep.jobs.first"}
    assert found.by_step["deep.jobs.second"] == {"words": nested.parent / "w"}
