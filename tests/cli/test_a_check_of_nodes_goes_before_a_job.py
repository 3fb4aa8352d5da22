"""`rehearse --preflight`: what it puts before a job, and that the job waits for it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.cli.console import Progress
from amlstack.cli.main import main
from amlstack.cli.rehearsal import run
from amlstack.cli.rehearsal.outcome import JobOutcome, Outcomes
from amlstack.cli.rehearsal.request import RehearsalRequest, RehearsalSurvey, survey

if TYPE_CHECKING:
    from pathlib import Path

PIPELINE = """\
type: pipeline
jobs:
  prepare:
    {type: command, command: echo, environment: "azureml:acpt-pytorch-2.8-cuda12.6@latest", compute: azureml:cpu}
  train:
    type: command
    command: python train.py
    environment: azureml:acpt-pytorch-2.8-cuda12.6@latest
    compute: azureml:gpus
    resources: {instance_count: 3}
    distribution: {type: pytorch, process_count_per_instance: 2}
"""


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.yml").write_text(PIPELINE)
    return tmp_path / "train.yml"


@pytest.mark.parametrize(("size", "ranks"), [("Standard_ND96asr_v4", 8), ("", 2)])
def test_it_takes_the_nodes_of_the_largest_part_and_a_rank_for_each_gpu(
    size: str, ranks: int, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["rehearse", "train.yml", "--preflight", "--dry-run", "--json", "--yes", *(("--size", size) if size else ())])
    jobs = {each["name"]: each for each in json.loads(capsys.readouterr().out)["jobs"]}
    assert [*jobs] == ["train-preflight", "train"]
    (text,) = [each["text"] for each in jobs["train-preflight"]["aspects"] if each["about"] == "size"][:1]
    assert text.startswith(f"3 × {ranks}")


@pytest.mark.parametrize(
    ("end", "started"), [("Completed", ["train-preflight", "train"]), ("Failed", ["train-preflight"])]
)
def test_a_job_starts_only_after_a_good_check(
    file: Path, monkeypatch: pytest.MonkeyPatch, end: str, started: list[str]
) -> None:
    seen = []

    def rehearsed(known: RehearsalSurvey, index: int, outcome: JobOutcome, *_: Any) -> None:
        seen.append(known.name_of(known.plans[index]))
        outcome.status = end

    monkeypatch.setattr(run, "_rehearse", rehearsed)
    outcomes = Outcomes()
    endpoint: Any = SimpleNamespace()
    run._in_order(survey(RehearsalRequest(file, preflight=True)), outcomes, endpoint, Progress())
    assert seen == started
    assert [each.name for each in outcomes.jobs] == ["train-preflight", "train"]
    assert ("comes after `train-preflight`" in outcomes.jobs[1].error) == (end == "Failed")
