"""While the engine waits for a run (`wait: completed`), its state is printed once and its rank's lines as they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.cli.console import Progress
from amlstack.cli.stack import runs
from amlstack.cli.stack.runs import WaitedRuns, summary_rows
from amlstack.sandbox.store.folders import job_folder
from amlstack.sandbox.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

RUN = "train-1234567890"


def status(text: str) -> dict[str, Any]:
    return {"diagnosticEvent": {"message": text, "severity": "info", "ephemeral": True, "urn": ""}}


def log(home: Path, text: str) -> None:
    path = job_folder(home, RUN) / "user_logs" / "std_log_process_00.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(text)


def test_a_wait_is_one_line_for_each_state_with_the_lines_of_rank_0_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    store = Store(tmp_path)
    store.jobs.add("/w", RUN, {"properties": {"jobType": "Command", "distribution": {"distributionType": "PyTorch"}}})
    store.close()
    progress = Progress()
    waited = WaitedRuns(progress, tmp_path)
    take = waited.before(progress.follow("updating"))

    take(status(f"{RUN} is Queued; waiting until it has completed (0s)"))
    take(status(f"{RUN} is Running; waiting until it has completed (1s)"))
    log(tmp_path, "epoch 1 loss 2.5\n")
    take(status(f"{RUN} is Running; waiting until it has completed (3s)"))
    log(tmp_path, "epoch 2 loss 0.5\n")
    take({"resOutputsEvent": {}})

    lines = [line.split("s ", 1)[1].strip() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        f"· job {RUN} is Queued; waiting until it has completed",
        f"· job {RUN} is Running; waiting until it has completed",
        "[node 0] epoch 1 loss 2.5",
        "[node 0] epoch 2 loss 0.5",
    ]
    assert waited.shown == {RUN}


def summed(home: Path, monkeypatch: pytest.MonkeyPatch, state: str) -> dict[str, str]:
    monkeypatch.setenv("AMLSTACK_HOME", str(home))
    job = {"jobId": f"/w/jobs/{RUN}", "status": state, "nodes": 1, "processesPerNode": 1, "worldSize": 1}
    outputs = {"workspace": {"name": "w", "resource_group": "g"}, "clusters": {}, "jobs": {"train": job}}
    return dict(summary_rows(outputs, {"train": {"status": state}}, again="make up", edit="train.py"))


def test_a_loss_that_is_only_printed_is_summed_up_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log(tmp_path, "step 1 loss 2.5\nstep 2 loss 1.5\nstep 3 loss 0.5\n")
    assert summed(tmp_path, monkeypatch, "Completed")["loss"].startswith("2.5000 → 0.5000 over the steps")


def test_without_a_loss_there_is_no_line_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log(tmp_path, "hello\n")
    assert "loss" not in summed(tmp_path, monkeypatch, "Completed")


def test_after_a_failed_run_the_next_step_is_to_look_for_its_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert f"amlstack diagnose {RUN}" in summed(tmp_path, monkeypatch, "Failed")["next"]
    assert summed(tmp_path, monkeypatch, "Completed")["next"].startswith("edit train.py")
    assert {runs.GONE, "Completed"} == runs.GOOD
