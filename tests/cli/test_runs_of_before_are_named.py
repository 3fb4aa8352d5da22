"""Runs that had ended before `up` began are named with their end; their logs are not printed as if they ran now."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.cli.console import Progress
from amlstack.cli.stack import runs
from amlstack.cli.stack_files import State
from amlstack.sandbox.protocol.times import iso

if TYPE_CHECKING:
    from pathlib import Path

WORKSPACE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
NOW = time.time()


class Arm:
    """Answers for runs by their names: STATUS-SECONDS, where the seconds are those since the end."""

    def __init__(self, _: str) -> None: ...

    def get(self, job_id: str, **__: object) -> Any:
        status, _, _ = job_id.rsplit("/", 1)[-1].partition("-")
        if status == "Gone":
            return SimpleNamespace(status=404)
        return SimpleNamespace(status=200, body={"properties": {"status": status}})


class History:
    """Tells when those runs ended."""

    def __init__(self, _: Arm) -> None:
        self.plane = self

    def details(self, _: str, name: str) -> dict[str, str]:
        return {"endTimeUtc": iso(NOW - float(name.partition("-")[2]))}


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The lines printed: ``done``, ``fail`` or ``note``, and the text."""
    found: list[tuple[str, str]] = []
    for kind in ("done", "fail", "note"):
        monkeypatch.setattr(Progress, kind, lambda _, text, kind=kind: found.append((kind, text)))
    monkeypatch.setattr("amlstack.cli.sandbox_arm.connect", Arm)
    monkeypatch.setattr(runs, "Runs", History)
    monkeypatch.setattr(runs, "with_reason", lambda _, __, record: record)
    monkeypatch.setattr(runs, "_follow", lambda *_: {"status": "Completed", "followed": True})
    return found


def followed(names: list[str], home: Path) -> dict[str, Any]:
    endpoint: Any = SimpleNamespace(url="https://127.0.0.1:1", environ=dict, home=home)
    outputs = {"jobs": {name: {"jobId": f"{WORKSPACE}/jobs/{name}"} for name in names}}
    return dict(runs.followed(Progress(), outputs, endpoint, since=NOW - 60, state=State()))


def test_only_a_run_that_did_not_end_before_is_followed(tmp_path: Path, lines: list[tuple[str, str]]) -> None:
    records = followed(["Running-0", "Completed-10", "Completed-100"], tmp_path)

    assert [name for name, record in records.items() if record.get("followed")] == ["Running-0", "Completed-10"]
    assert lines == [("done", "job Completed-100 has run before: Completed")]


@pytest.mark.parametrize("status", ["Canceled", "Failed"])
def test_a_run_that_did_not_complete_is_no_success_and_the_way_to_another_is_named(
    status: str, tmp_path: Path, lines: list[tuple[str, str]]
) -> None:
    followed([f"{status}-100"], tmp_path)

    word = "it is not run again by itself: set `rerun` to another word"
    assert lines == [("fail", f"job {status}-100 has run before: {status}; {word}")]


def test_many_completed_runs_share_a_line(tmp_path: Path, lines: list[tuple[str, str]]) -> None:
    followed([f"Completed-{100 + number}" for number in range(60)], tmp_path)

    assert lines == [("done", "60 jobs have run before: Completed")]
