from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from amlstack.base import home as homes
from amlstack.cli.main import main
from amlstack.sandbox.store.store import JobError, Store, job_folder
from tests.support.report.pages import parse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ML = "Microsoft.MachineLearningServices"
WORKSPACE = f"/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/rg/providers/{ML}/workspaces/ws"
CLUSTER = f"{WORKSPACE}/computes/a100"
BODY = {
    "jobType": "Command",
    "command": "torchrun --nproc_per_node 4 train.py --data ${{inputs.data}}",
    "computeId": CLUSTER,
    "environmentId": "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/5",
    "resources": {"instanceCount": 2, "shmSize": "64g"},
    "distribution": {"distributionType": "PyTorch", "processCountPerInstance": 1},
    "limits": {"timeout": "PT1H"},
    "inputs": {"data": {"jobInputType": "literal", "value": "7"}},
    "outputs": {"model": {"jobOutputType": "uri_folder"}},
}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    homes.claim(tmp_path / "home")
    made = Store(tmp_path / "home")
    body = {"properties": {"computeType": "AmlCompute", "properties": {"vmSize": "STANDARD_ND96ASR_V4"}}}
    made.resources.put(CLUSTER, f"{ML}/workspaces/computes", WORKSPACE, body)
    yield made
    made.close()


def job(store: Store, name: str, *steps: str, log: str = "", error: str = "") -> str:
    key = store.jobs.add(WORKSPACE, name, {"properties": BODY}).id
    for step in steps:
        store.jobs.move(key, step, error=JobError("UserError", error) if step == "Failed" else None)
    if log:
        logs = job_folder(store.home, key) / "user_logs"
        logs.mkdir(parents=True)
        (logs / "std_log_process_00.txt").write_text(log)
    return key


def facts(page: str) -> dict[str, str]:
    section = next(each for each in parse(page).all("section") if each.attributes["aria-labelledby"] == "declared")
    return dict(zip([each.text for each in section.all("dt")], [each.text for each in section.all("dd")], strict=True))


def test_a_run_is_found_by_its_jobs_name(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job(store, "train-0a1b2c", "Queued", "Running", "Failed", log="ValueError: no\n", error="rank 0 of 8 failed")
    assert main(["report", "train"]) == 0
    page = (tmp_path / "home/reports" / "train-0a1b2c.html").read_text()
    assert facts(page) == {
        "job": "train-0a1b2c",
        "kind": "Command",
        "command": BODY["command"],
        "ranks": "PyTorch: 2 nodes × 4 ranks that torchrun starts = 8",
        "compute": "cluster a100",
        "size": "Standard_ND96asr_v4: 8 x A100 40 GiB, HDR InfiniBand 1600 Gb/s",
        "cost on Azure": "$54.39 per hour for 2 nodes (eastus, 2026-06-18), at most $54.39 until its time limit",
        "environment": "acpt-pytorch-2.8-cuda12.6 version 5",
        "shared memory": "64g",
        "time limit": "3600 s",
        "inputs": "data = 7",
    }
    tree = parse(page)
    assert "rank 0 of 8 failed" in tree.all("section", class_="verdict")[0].text
    phases = next(each for each in tree.all("section") if each.attributes["aria-labelledby"] == "phases")
    assert [each.text for each in phases.all("span", class_="label")] == ["NotStarted", "Queued", "Running"]
    assert "model → workspaceblobstore, azureml/train-0a1b2c/model/" in tree.text
    out = capsys.readouterr().out
    assert out.startswith("home/reports/train-0a1b2c.html: train-0a1b2c, Failed\n")
    assert "bare-exception" in out


def test_report_of_a_running_job_is_marked_so(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job(store, "train-1", "Queued", "Provisioning", "Preparing", "Running", log="step 1 loss 2\nstep 2 loss 1\n")
    assert main(["report", "train-1", "--output", "now.html"]) == 0
    assert "so far" in capsys.readouterr().out
    tree = parse((tmp_path / "now.html").read_text())
    assert "has not ended" in tree.all("header")[0].text
    assert not tree.all("section", class_="verdict")
    ranks = next(each for each in tree.all("section") if each.attributes["aria-labelledby"] == "ranks")
    assert [each.text.split(" after ")[0] for each in ranks.all("span", class_="outcome")] == ["running", "running"]
    assert len(tree.all("polyline")) == 1


def test_a_queued_job_has_a_report_too(store: Store, tmp_path: Path) -> None:
    job(store, "train-1", "Queued")
    assert main(["report", "train-1"]) == 0
    assert "no log yet" in parse((tmp_path / "home/reports" / "train-1.html").read_text()).text


def test_report_suggests_a_name_when_it_is_nearly_right(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    job(store, "train-1", "Queued")
    assert main(["report", "trian"]) == 2
    assert capsys.readouterr().err == "There is no job 'trian'. There are: train-1. Did you mean `train-1`?\n"


def test_several_runs_of_one_job_are_named_and_another_job_is_never_taken(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    job(store, "train-00000a", "Queued")
    job(store, "train-00000b", "Queued")
    job(store, "train-sweep-00000c", "Queued")
    assert main(["report", "train"]) == 2
    assert "'train' names 2 jobs: train-00000a, train-00000b. Name one of them" in capsys.readouterr().err
    assert main(["report", "train-00000b"]) == 0
    assert main(["report", "train-sw"]) == 2
    assert "A whole name is needed; so begin: train-sweep-00000c" in capsys.readouterr().err


def test_metrics_of_the_run_are_drawn_before_those_of_the_log(store: Store, tmp_path: Path) -> None:
    key = job(store, "train-1", "Queued", "Running", log="step 1 loss 9 lr 3\nstep 2 loss 9 lr 2\n")
    for step, value in enumerate((2.0, 1.0, float("nan"), 0.5)):
        store.metrics.log(key, "loss", value, step)
    assert main(["report", "train-1"]) == 0
    tree = parse((tmp_path / "home/reports" / "train-1.html").read_text())
    labels = [each.attributes["aria-label"] for each in tree.all("svg")]
    assert labels == ["loss over steps: loss: 2 → 0.5 (4 points)", "lr over steps: lr: 3 → 2 (2 points)"]
    assert "from metrics that the job logged to its run" in tree.text
    assert len(tree.all("polyline")) == 3  # a NaN interrupts the first


def test_steps_are_listed_with_their_parent_and_name_it(store: Store, tmp_path: Path) -> None:
    parent = job(store, "flow-0a1b2c", "Running")
    child = job(store, f"{parent}-prepare", "Queued", "Running", "Failed", log="KeyError: 'x'\n", error="rank 0 failed")
    store.family.add(child, parent, "prepare")
    assert main(["report", "flow"]) == 0  # the parent, although its step's name begins alike
    tree = parse((tmp_path / "home/reports" / "flow-0a1b2c.html").read_text())
    table = next(each for each in tree.all("section") if each.attributes["aria-labelledby"] == "children")
    assert [cell.text for cell in table.all("td")] == ["prepare", f"{parent}-prepare", "Failed"]
    assert main(["report", f"{parent}-prepare"]) == 0
    assert (
        facts((tmp_path / "home/reports" / f"{parent}-prepare.html").read_text())["part of"] == "prepare of flow-0a1b2c"
    )


def test_the_steps_of_a_step_are_listed_behind_it(store: Store, tmp_path: Path) -> None:
    rows = [
        store.jobs.add(WORKSPACE, name, {"properties": {"jobType": "Pipeline"}}).id
        for name in ("flow-1", "flow-1-deep")
    ]
    store.family.add(rows[1], rows[0], "deep")
    store.family.add(job(store, "flow-1-inner", "Queued"), rows[1], "inner")
    assert main(["report", "flow-1"]) == 0
    tree = parse((tmp_path / "home/reports" / "flow-1.html").read_text())
    table = next(each for each in tree.all("section") if each.attributes["aria-labelledby"] == "children")
    assert [cell.text for cell in table.all("td")][::3] == ["deep", "deep/inner"]


def test_a_folder_is_reported_without_a_sandbox(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run 7").mkdir()
    (tmp_path / "run 7" / "70_driver_log_3.txt").write_text("KeyError: 'x'\n")
    assert main(["report", "run 7"]) == 0
    assert (tmp_path / "run-7.html").is_file()
    assert not (tmp_path / "none").exists()
    (tmp_path / "empty").mkdir()
    assert main(["report", "empty"]) == 2
    assert "holds no log" in capsys.readouterr().err
    assert main(["report", "nowhere"]) == 2
    assert "no folder 'nowhere'" in capsys.readouterr().err


def test_only_reports_are_overwritten(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job(store, "train-1", "Queued")
    page = tmp_path / "home/reports/train-1.html"
    page.parent.mkdir()
    page.write_text("my notes")
    assert main(["report", "train-1"]) == 2
    assert "is no report" in capsys.readouterr().err
    assert page.read_text() == "my notes"
    assert main(["report", "train-1", "--force"]) == 0
    first = page.stat().st_ino
    assert main(["report", "train-1"]) == 0
    assert page.stat().st_ino != first  # another file took its place at once; there was never half of one
    assert [each.name for each in page.parent.iterdir() if each.suffix == ".part"] == []
    assert main(["report", "train-1", "--output", str(tmp_path)]) == 2
    assert main(["report", "train-1", "--output", "no/where.html"]) == 2
    assert "no folder no" in capsys.readouterr().err


def test_price_of_a_size_is_shown_with_its_source(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace
    from datetime import date

    from amlstack.catalog import sizes
    from amlstack.catalog.prices import Price
    from amlstack.report import jobs as of_job

    size = sizes.get("Standard_ND96asr_v4")
    assert size is not None
    priced = replace(size, prices=(Price(27.2, "westeurope", date(2026, 11, 1), "Azure's price list"),))
    monkeypatch.setattr(sizes, "get", lambda _: priced)
    facts = dict(of_job.job_report(store, store.jobs[job(store, "train-1", "Queued")], time.time()).facts)
    assert facts["cost on Azure"] == (
        "$54.40 per hour for 2 nodes (westeurope, 2026-11-01), at most $54.40 until its time limit"
    )


def test_price_is_that_of_the_cluster_s_region_and_priority(store: Store) -> None:
    from amlstack.report import jobs as of_job

    inner = {"vmSize": "Standard_ND96isr_H100_v5", "vmPriority": "LowPriority"}
    body = {"location": "westeurope", "properties": {"computeLocation": "UK South", "properties": inner}}
    store.resources.put(CLUSTER, f"{ML}/workspaces/computes", WORKSPACE, body)
    facts = dict(of_job.job_report(store, store.jobs[job(store, "train-1", "Queued")], time.time()).facts)
    assert facts["cost on Azure"].startswith("$49.16 per hour for 2 nodes (uksouth, 2026-08-14)")


def test_trials_are_shown_with_their_values_their_metric_and_which_is_best(store: Store, tmp_path: Path) -> None:
    best = {"best_child_run_id": "tune-1_1"}
    body = {"jobType": "Sweep", "objective": {"goal": "minimize", "primaryMetric": "loss"}, "properties": best}
    parent = store.jobs.add(WORKSPACE, "tune-1", {"properties": body}).id
    folder = job_folder(store.home, parent)
    folder.mkdir(parents=True)
    (folder / "runner.log").write_text("10:00:00 trial 0: lr 0.1\n10:00:01 trial 1: lr 0.2\n")
    for number, rate in enumerate((0.1, 0.2, 0.3)):
        tags = {"hyperparameters": f'{{"lr": {rate}}}'}
        name = f"tune-1_{number}"
        store.family.add(
            store.jobs.add(WORKSPACE, name, {"properties": {**BODY, "tags": tags}}).id, parent, f"{number}"
        )
    store.metrics.log("tune-1_0", "loss", 2.0, 0)
    store.metrics.log("tune-1_1", "loss", 1.5, 0)
    printed = job_folder(store.home, "tune-1_2") / "user_logs"
    printed.mkdir(parents=True)
    (printed / "std_log_process_00.txt").write_text("step 1 loss 4\nstep 2 loss 3\n")

    assert main(["report", "tune-1"]) == 0
    tree = parse((tmp_path / "home/reports" / "tune-1.html").read_text())
    table = next(each for each in tree.all("section") if each.attributes["aria-labelledby"] == "children")
    assert [cell.text for cell in table.all("th")] == ["step or trial", "job", "status", "lr", "loss"]
    cells = [cell.text for cell in table.all("td")]
    assert [cells[at : at + 5] for at in range(0, 15, 5)] == [
        ["0", "tune-1_0", "NotStarted", "0.1", "2"],
        ["1 (best)", "tune-1_1", "NotStarted", "0.2", "1.5"],
        ["2", "tune-1_2", "NotStarted", "0.3", "3 (printed, not logged)"],
    ]
    assert tree.all("svg") == []  # what the sandbox writes about trials is no curve
