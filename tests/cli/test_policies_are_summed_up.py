"""The lines of `amlstack up` on the policies' verdicts, and its summary."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Any

from rich.console import Console

from amlstack.base import paths
from amlstack.cli.stack import runs
from amlstack.cli.stack.explain import verdicts
from amlstack.engine import Outcome
from amlstack.sandbox.store.store import job_folder

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

OUTPUTS: dict[str, Any] = {"workspace": {"name": "w", "resource_group": "g"}, "clusters": {}, "jobs": {}}


def policy(name: str, level: str, resource: str) -> dict[str, Any]:
    urn = f"urn:pulumi:sandbox::amlstack::azure-native:machinelearningservices:Compute::{resource}"
    violation = {
        "policyName": name,
        "enforcementLevel": level,
        "resourceUrn": urn,
        "message": f"{name} is a rule.\nDo this.",
    }
    return {"policyEvent": violation}


def outcome(*events: dict[str, Any]) -> Outcome:
    made = Outcome()
    for event in events:
        made.take(event)
    return made


def test_preview_and_update_say_the_same_and_it_is_counted_once() -> None:
    refused = policy("sriov-fabric", "mandatory", "a100")
    made = outcome({"preludeEvent": {}}, refused, {"preludeEvent": {}}, refused)
    assert len(made.refusals) == 1
    assert list(verdicts(made)) == ["pack: 1 violation in 0 resources"]


def test_advice_is_no_violation_and_comes_once_for_all_its_resources() -> None:
    made = outcome({"preludeEvent": {}}, *(policy("idle-time", "advisory", name) for name in ("a100", "h100", "a100")))
    assert made.refusals == []
    assert list(verdicts(made)) == [
        "pack: no violation in 0 resources",
        "advice: idle-time (a100, h100): Do this.",
    ]
    assert len(list(verdicts(made, known={"idle-time"}))) == 1


def test_the_summary_breaks_no_word_that_is_there_to_be_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path / "a-home-with-a-name-that-is-longer-than-the-line"))
    job = {"jobId": "/w/jobs/train-1", "status": "Completed", "nodes": 2, "processesPerNode": 2, "worldSize": 4}
    console = Console(width=50, record=True, file=StringIO(), force_terminal=True)
    runs.show_summary(console, {**OUTPUTS, "jobs": {"train": job}}, {}, again="make up")
    printed = console.export_text()
    assert f"logs       {job_folder(paths.home(), 'train-1') / 'user_logs'}\n" in printed
    assert max(map(len, (line for line in printed.splitlines() if not line.startswith("logs")))) <= 50


def test_a_row_of_the_summary_is_one_line_in_a_file() -> None:
    written = StringIO()
    edit = "a-folder-with-a-name-that-is-long-enough/to-fill-a-line.py"
    runs.show_summary(Console(width=50, file=written), OUTPUTS, {}, again="make up", edit=edit)
    then = [line for line in written.getvalue().splitlines() if line.startswith("next")]
    assert then == [f"next       edit {edit} and `make up` again: an edited job is a new run"]


def test_a_stack_of_many_jobs_and_clusters_is_summed_up_in_few_lines() -> None:
    job = {"status": "Completed", "nodes": 2, "processesPerNode": 2, "worldSize": 4}
    jobs = {f"train-{number}": {**job, "jobId": f"/w/jobs/train-{number}-1"} for number in range(60)}
    records = {name: {"status": "Failed" if number < 7 else "Completed"} for number, name in enumerate(jobs)}
    clusters = {f"c{number}": {"size": "Standard_ND96asr_v4", "min": 0, "max": 2} for number in range(30)}

    found = list(
        runs.summary_rows({**OUTPUTS, "jobs": jobs, "clusters": clusters}, records, again="make up", edit="a.py")
    )

    assert len(found) < 30
    assert ("jobs", "60: 53 Completed, 7 Failed") in found
    assert [text for name, text in found if name == "job"] == [
        f"train-{number}: Failed; 2 nodes × 2 processes per node = world size 4" for number in range(5)
    ]
    assert ("", "2 more did not complete: .venv/bin/amlstack status") in found
    (many,) = [text for name, text in found if name == "clusters"]
    assert many.startswith("30 of Standard_ND96asr_v4")
    assert many.endswith("0–60 nodes together")
    (then,) = [text for name, text in found if name == "next"]
    assert then.startswith(".venv/bin/amlstack diagnose train-0-1 names the first cause")
