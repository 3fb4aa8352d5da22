"""``amlstack check`` and ``amlstack show`` of schedules: when they start, what they start, what one start may cost."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from amlstack.catalog import sizes
from amlstack.catalog.prices import Price
from amlstack.cli.main import main
from amlstack.cli.stack import runs

if TYPE_CHECKING:
    from pathlib import Path

PIPELINE = """\
type: pipeline
jobs:
  train:
    command: python train.py
    environment: azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/7
    compute: azureml:big
    distribution: {type: pytorch, process_count_per_instance: 8}
    resources: {instance_count: 2, shm_size: 900g}
    limits: {timeout: 7200}
"""
YAML = """\
name: nightly
trigger: {type: recurrence, frequency: day, interval: 2, schedule: {hours: [4, 16], minutes: 30}}
create_job: ./pipeline.yml
"""
PYTHON = """\
from jobs import Cron, Job, Pipeline, Schedule, TorchRun
train = Job(command="train.py", environment="acpt-pytorch-2.8-cuda12.6", compute="big", nodes=2, launcher=TorchRun())
job = Schedule(
    name="nightly",
    trigger=Cron(expression="0 2 * * *", start_time="2026-07-01T00:00:00", time_zone="W. Europe Standard Time"),
    create_job=Pipeline(jobs={"train": train}),
)
"""
STACK = """\
config:
  amlstack:workspace: aml-prod
  amlstack:location: westeurope
  amlstack:clusters: [{name: big, size: Standard_ND96isr_H100_v5, nodes: {max: 2}, node_public_ip: false}]
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AMLSTACK_TODAY", "2026-01-01")
    for name, text in {"nightly.yml": YAML, "pipeline.yml": PIPELINE, "nightly.py": PYTHON}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "Pulumi.prod.yaml").write_text(STACK)
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main([*words, "--stack", "prod"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "starts"),
    [
        ("nightly.yml", "every 2 days, at 4:30 and 16:30, UTC"),
        ("nightly.py", "cron `0 2 * * *`, W. Europe Standard Time, from 2026-07-01T00:00:00"),
    ],
)
def test_the_plan_says_when_it_starts_and_what(file: str, starts: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = printed(capsys, "show", file)
    assert f"starts    {starts}" in shown
    assert "nightly: jobs.train" in shown
    assert "2 nodes x 8 per node = 16 ranks" in shown


def test_one_start_is_priced(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    known = sizes.get("Standard_ND96isr_H100_v5")
    assert known is not None
    priced = replace(known, prices=(Price(100.0, "westeurope", date(2026, 1, 1), "a list"),))
    monkeypatch.setattr(sizes, "get", lambda _: priced)
    assert "nightly: jobs.train costs 200.00 USD per hour, at most 400.00 USD in 2 h" in printed(
        capsys, "check", "nightly.yml"
    )


def test_a_trigger_without_a_start_gives_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert "schedule-starts-at-once" in printed(capsys, "check", "nightly.yml")
    assert "schedule-starts-at-once" not in printed(capsys, "check", "nightly.py")


@pytest.mark.parametrize("file", ["nightly.yml", "nightly.py"])
def test_the_components_of_what_it_starts_are_shown(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    (result,) = json.loads(printed(capsys, "show", file, "--as", "components"))
    assert list(result) == ["train"]


def test_what_it_starts_is_written_as_the_file_that_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    schedule, started = yaml.safe_load_all(printed(capsys, "show", "nightly.py", "--as", "yaml"))
    assert schedule["create_job"] == "./job.yml"
    assert "torchrun" in started["jobs"]["train"]["command"]
    (only,) = list(yaml.safe_load_all(printed(capsys, "show", "nightly.yml", "--as", "yaml")))
    assert only["create_job"] == "./pipeline.yml"


def test_the_body_holds_what_it_starts(capsys: pytest.CaptureFixture[str]) -> None:
    body: dict[str, Any] = json.loads(printed(capsys, "show", "nightly.yml", "--as", "arm"))
    definition = body["properties"]["action"]["jobDefinition"]
    assert definition["jobs"]["train"]["resources"] == {"instance_count": 2, "shm_size": "900g"}


@pytest.mark.parametrize(("enabled", "more"), [(True, ""), (False, " (disabled)")])
def test_the_summary_of_an_up_names_the_schedules(enabled: bool, more: str) -> None:
    part = {"nodes": 2, "processesPerNode": 8, "worldSize": 16}
    schedule = {"starts": "every day, UTC", "enabled": enabled, "parts": {"jobs.train": part}}
    outputs: dict[str, Any] = {"workspace": {"name": "w", "resource_group": "g"}, "clusters": {}, "jobs": {}}
    rows = list(runs.summary_rows({**outputs, "schedules": {"nightly": schedule}}, {}, again="make up"))
    assert ("schedule", f"nightly: every day, UTC{more}") in rows
    assert ("", "train: 2 nodes × 8 processes per node = world size 16") in rows
