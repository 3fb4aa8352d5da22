"""A sweep or pipeline written as a file is read back as what it was: the same body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

import jobs
from jobs.azureml.write import file_of
from tests.support import yaml_files
from tests.support.jobs import other_step_cases, pipeline_cases, sweep_cases
from tests.support.jobs.written_files import body, specs

if TYPE_CHECKING:
    from pathlib import Path


def enriched(path: Path) -> Any:
    loaded = jobs.load(path)
    (declared,) = loaded.jobs
    return jobs.resolve(declared, lambda _: (jobs.Target(), ()), source=loaded.source).enriched


@pytest.mark.parametrize("case", sweep_cases.ACCEPTED)
def test_a_sweep_survives_the_round_trip(case: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first.yml", tmp_path / "second.yml"
    result = {**sweep_cases.BASE, **(yaml_files.load(sweep_cases.ACCEPTED[case]) or {})}
    first.write_text(yaml.safe_dump(result))
    before = enriched(first)
    second.write_text(yaml.safe_dump(file_of(before)))
    assert body(enriched(second)) == body(before)


PIPELINES = {**pipeline_cases.ACCEPTED, **other_step_cases.ACCEPTED}


@pytest.mark.parametrize("case", PIPELINES)
def test_a_pipeline_survives_the_round_trip(case: str, tmp_path: Path) -> None:
    pipeline_cases.folder(tmp_path)
    other_step_cases.folder(tmp_path)
    first, second = tmp_path / "first.yml", tmp_path / "second.yml"
    first.write_text(f"type: pipeline\n{PIPELINES[case]}")
    before = enriched(first)
    second.write_text(yaml.safe_dump(file_of(before), sort_keys=False))
    after = enriched(second)
    assert body(after) == body(before)
    assert specs(after) == specs(before)
