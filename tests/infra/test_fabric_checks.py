"""``fabric_check``: which clusters are checked, what waits for it, when it is another run, and what it costs."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from amlstack.base.findings import errors
from amlstack.catalog import sizes
from amlstack.catalog.prices import Price
from infra.declaration import declare
from infra.settings import read_file
from jobs.planning.plans import Target
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.base.findings import Finding
    from infra.declaration import Declaration
    from infra.runs import Run

GPUS: dict[str, Any] = {
    "name": "gpus", "size": "Standard_ND96asr_v4", "nodes": {"max": 4}, "fabric_check": True,
}  # fmt: skip
OTHER: dict[str, Any] = {"name": "other", "size": "Standard_HB120rs_v3", "nodes": {"max": 2}, "fabric_check": True}
JOB = "name: {name}\ncommand: echo {words}\nenvironment: azureml:acpt-pytorch-2.8-cuda12.6@latest\ncompute: {compute}\n"
SCHEDULE = "name: nightly\ntrigger: {type: recurrence, frequency: day, interval: 1}\ncreate_job: ./steps.yml\n"
STEPS = "type: pipeline\njobs:\n  one:\n    command: echo\n    environment: azureml:e:1\n    compute: gpus\n"


def judged(folder: Path, *clusters: dict[str, Any], jobs: list[Any], **files: str) -> Declaration:
    for name, text in files.items():
        (folder / f"{name}.yml").write_text(text)
    config = {"location": "westeurope", "workspace": "aml-team", "clusters": list(clusters), "jobs": jobs}
    stack = folder / "Pulumi.team.yaml"
    stack.write_text(yaml.safe_dump({"config": {f"amlstack:{key}": value for key, value in config.items()}}))
    return declare(read_file(stack), on=date(2026, 7, 1), root=folder)


def train(compute: str = "gpus", words: str = "") -> str:
    return JOB.format(name="train", words=words, compute=compute)


def check_of(declaration: Declaration) -> Run:
    (run,) = (run for run in declaration.runs if run.name.startswith("fabric-check-"))
    return run


def about(declaration: Declaration) -> list[Finding]:
    return [finding for finding in declaration.findings if finding.where.endswith("fabric_check")]


def test_the_jobs_of_a_cluster_come_after_its_check_and_others_do_not(tmp_path: Path) -> None:
    declaration = judged(
        tmp_path, GPUS, OTHER, jobs=["train.yml", "steps.yml", "nightly.yml", "alone.yml"],
        train=train(), steps=STEPS, nightly=SCHEDULE, alone="name: alone\ncommand: echo\nenvironment: azureml:e:1\n",
    )  # fmt: skip
    gated = ("fabric-check-gpus",)
    after = {run.name: run.after for run in declaration.runs}
    assert after == {"train": gated, "steps": gated, "nightly": gated, "alone": (), "fabric-check-gpus": ()}


def test_a_check_takes_all_nodes_with_a_rank_for_each_gpu(tmp_path: Path) -> None:
    declaration = judged(tmp_path, GPUS, jobs=["train.yml"], train=train())
    check = check_of(declaration)
    assert (check.plan.nodes, check.plan.world_size, check.declared.wait) == (4, 32, "completed")
    assert "python -m amlnode preflight && python -m amlnode bandwidth" in check.plan.enriched.command
    assert "AMLSTACK_PLAN" in check.plan.enriched.environment_variables
    (finding,) = about(declaration)
    assert (finding.code, finding.level, finding.file, finding.line) == ("fabric-check", "info", "Pulumi.team.yaml", 3)
    assert "4 nodes of Standard_ND96asr_v4" in finding.seen
    assert "it costs 141.43 USD per hour" in finding.seen  # 4 nodes at the list's price of westeurope


def test_a_check_on_a_size_without_a_price_says_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = sizes.get("Standard_ND96asr_v4")
    assert known is not None
    unpriced = replace(known, prices=())
    monkeypatch.setattr(Target, "facts", property(lambda _: unpriced))
    (finding,) = about(judged(tmp_path, GPUS, jobs=["train.yml"], train=train()))
    assert "the catalogue has no price" in finding.seen


def test_a_check_says_what_it_costs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = sizes.get("Standard_ND96asr_v4")
    assert known is not None
    priced = replace(known, prices=(Price(10.0, "westeurope", date(2026, 7, 1), "a price list"),))
    monkeypatch.setattr(Target, "facts", property(lambda _: priced))
    (finding,) = about(judged(tmp_path, GPUS, jobs=["train.yml"], train=train()))
    assert "it costs 40.00 USD per hour, at most 20.00 USD in 0.5 h" in finding.seen


def test_no_nodes_start_for_a_cluster_without_work(tmp_path: Path) -> None:
    for jobs in ([], ["nightly.yml"]):
        declaration = judged(tmp_path, GPUS, jobs=jobs, nightly=SCHEDULE, steps=STEPS)
        assert not [run for run in declaration.runs if not run.is_schedule]


def test_a_job_elsewhere_can_come_after_a_check(tmp_path: Path) -> None:
    entry = {"file": "train.yml", "after": "fabric-check-other"}
    declaration = judged(tmp_path, {**GPUS, "fabric_check": False}, OTHER, jobs=[entry], train=train())
    assert {run.name: run.after for run in declaration.runs} == {
        "train": ("fabric-check-other",),
        "fabric-check-other": (),
    }


def identity(run: Run) -> tuple[Any, ...]:
    return run.plan.declaration, run.own.hash, run.declared.rerun


@for_each(
    "changes",
    [
        {"nodes": {"max": 4, "min": 1, "idle": "PT1H"}},
        {"tags": {"team": "vision"}},
        {"description": "shared"},
        {"location": "westeurope"},
        {"fabric_check": {"nodes": 4}},
    ],
)
def test_a_check_is_not_repeated_when_the_cluster_stays_the_same(tmp_path: Path, changes: dict[str, Any]) -> None:
    before = judged(tmp_path, GPUS, jobs=["train.yml"], train=train())
    after = judged(tmp_path, {**GPUS, **changes}, jobs=["train.yml"], train=train(words="edited"))
    assert errors(after.findings) == ()
    assert identity(check_of(before)) == identity(check_of(after))


@for_each(
    "changes",
    [
        {"size": "Standard_ND96amsr_A100_v4"},
        {"priority": "low_priority"},
        {"location": "northeurope"},
        {"node_public_ip": False},
        {"nodes": {"max": 8}},
        {"fabric_check": {"rerun": "again"}},
        {"fabric_check": {"nodes": 2}},
        {"fabric_check": {"expect": 150}},
    ],
)
def test_a_check_is_repeated_when_the_cluster_or_the_check_is_another(tmp_path: Path, changes: dict[str, Any]) -> None:
    before = judged(tmp_path, GPUS, jobs=["train.yml"], train=train())
    after = judged(tmp_path, {**GPUS, **changes}, jobs=["train.yml"], train=train())
    assert identity(check_of(before)) != identity(check_of(after))


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        ({"fabric_check": {"nodes": 5}}, "takes 5 nodes, and the cluster has 4"),
        ({"nodes": {"max": 0}}, "never has a node"),
        ({"name": "train"}, ""),
    ],
)
def test_a_check_that_cannot_be_is_found_at_its_line(tmp_path: Path, cluster: dict[str, Any], words: str) -> None:
    taken = JOB.format(name="fabric-check-train", words="", compute="train")
    declaration = judged(tmp_path, {**GPUS, **cluster}, jobs=["train.yml"], train=taken if not words else train())
    (finding,) = [one for one in about(declaration) if one.level == "error"]
    assert finding.file == "Pulumi.team.yaml"
    assert finding.line is not None
    assert words in finding.seen


def test_an_unknown_key_of_a_check_is_named(tmp_path: Path) -> None:
    wrong = {**GPUS, "fabric_check": {"node": 2}}
    (finding,) = errors(judged(tmp_path, wrong, jobs=["train.yml"], train=train()).findings)
    assert finding.code == "setting-unknown"
    assert "Did you mean `nodes`" in finding.remedy
