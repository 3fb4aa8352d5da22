"""A fabric check on the sandbox, with real ranks: it fails and holds the cluster's job back, then passes, and once."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.sandbox.store.folders import job_folder
from tests.support.stack.small_jobs import StackLife, job, runs, runs_of, settings

if TYPE_CHECKING:
    from amlstack.sandbox.store.store import JobRow
    from tests.support.engine_result import Result
    from tests.support.stack.small_jobs import Own

pytestmark = [pytest.mark.engine, pytest.mark.training, pytest.mark.timeout(1800)]

CHECK = "fabric-check-busy"
SMALL = "Standard_HB120rs_v3"
"""InfiniBand and no GPU: one rank a node."""


@dataclass
class Life(StackLife):
    """With the runs that the sandbox knew after each step, and what the check that passed wrote."""

    known: dict[str, dict[str, JobRow]] = field(default_factory=dict)
    written: dict[str, Any] = field(default_factory=dict)

    def count(self, step: str, name: str) -> int:
        return sum(row.name.rpartition("-")[0] == name for row in self.known[step].values())


@pytest.fixture(scope="module")
def story(own: Own, tmp_path_factory: pytest.TempPathFactory) -> Life:
    folder, stack, life = tmp_path_factory.mktemp("jobs"), own.stack, Life(own.home)

    def step(name: str, result: Result) -> None:
        life.results[name] = result
        life.known[name] = runs(own.home)

    for key, value in settings("ws-fabric").items():
        stack.set(key, value)
    cluster = {"name": "busy", "size": SMALL, "nodes": {"max": 2}, "fabric_check": {"environment": "small"}}
    stack.set("amlstack:clusters", [cluster])
    stack.set("amlstack:jobs", [{"file": str(job(folder, "train", "true")), "wait": "completed"}])
    # Its environment has no PyTorch: no bandwidth is measured.
    step("failed", stack.up().failed())
    stack.set("amlstack:clusters[0].fabric_check", True)
    step("passed", stack.up().ok())
    outputs = job_folder(own.home, runs_of(own.home, CHECK)[-1].id) / "outputs"
    life.written = {file.stem: json.loads(file.read_text()) for file in outputs.glob("*.json")}
    job(folder, "train", "true edited")
    step("edited job", stack.up().ok())
    stack.set("amlstack:clusters[0].priority", "low_priority")
    step("another cluster", stack.preview().ok())
    return life


def test_a_check_that_fails_holds_the_jobs_back_and_names_them(story: Life) -> None:
    assert (story.count("failed", CHECK), story.count("failed", "train")) == (1, 0)
    (error,) = [one for one in story.results["failed"].errors if "ended Failed" in one]
    assert f"run {CHECK}-" in error
    assert "what comes after it (`train`) is submitted only once it has completed" in error


def test_a_check_that_passes_lets_them_through_and_says_what_it_has_not_judged(story: Life) -> None:
    assert (story.count("passed", CHECK), story.count("passed", "train")) == (2, 1)
    rows = {row.name.rpartition("-")[0]: row for row in story.known["passed"].values()}
    ended = rows[CHECK].ended
    assert ended is not None
    assert ended <= rows["train"].created
    assert story.written.keys() >= {"preflight", "bandwidth"}
    assert "infiniband" in json.dumps(story.written["preflight"])
    assert "not judged" in json.dumps(story.written).replace("_", " ")


def test_an_edited_job_runs_without_another_check(story: Life) -> None:
    assert (story.count("edited job", CHECK), story.count("edited job", "train")) == (2, 2)


def test_another_cluster_is_checked_again(story: Life) -> None:
    planned = story.results["another cluster"]
    assert planned.op("busy", "Compute") == "replace"
    assert planned.op(CHECK, "jobs:Job") == "replace"
    assert planned.op("train", "jobs:Job") == "same"
