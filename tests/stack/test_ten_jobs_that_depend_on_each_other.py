"""Ten jobs with ``after``, from the first preview on, with everything real; one of them fails on the way.

One more is submitted by `amlstack submit --stack`, before the stack declares it: it is one run, of one id.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cli.verbs import Verbs
from tests.support.stack.small_jobs import StackLife, job, runs, settings

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.sandbox.store.store import JobRow
    from tests.support.cli.verbs import Ran
    from tests.support.engine_result import Result
    from tests.support.stack.small_jobs import Own

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1800)]

AFTER = {
    "prepare": [],
    "tokens": ["prepare"],
    "train-a": ["tokens"],
    "train-b": ["tokens", "prepare"],
    "eval-a": ["train-a"],
    "eval-b": ["train-b.yml"],
    "best": ["eval-a", "eval-b"],
    "export": ["best"],
    "report": ["best", "tokens"],
    "alone": [],
}
"""Declared in another order than they run in."""
LISTED = ("report", "export", "best", "eval-b", "eval-a", "train-b", "train-a", "tokens", "prepare", "alone")
FAILS = "exit 3"
WORKS = "true"


def declared(folder: Path, name: str) -> dict[str, Any]:
    after = [str(folder / each) if each.endswith(".yml") else each for each in AFTER[name]]
    last = not any(name in others for others in AFTER.values())
    wait = {"wait": "completed"} if last else {}
    return {"file": str(folder / f"{name}.yml"), **({"after": after} if after else {}), **wait}


@dataclass
class Life(StackLife):
    """With the runs that the sandbox knew after each step, and what `amlstack submit` said of each job."""

    known: dict[str, dict[str, JobRow]] = field(default_factory=dict)
    submitted: dict[str, Ran] = field(default_factory=dict)


@pytest.fixture(scope="module")
def story(own: Own, tmp_path_factory: pytest.TempPathFactory) -> Life:
    """Each step of the stack's life, and the runs that the sandbox knew after it."""
    folder = tmp_path_factory.mktemp("jobs")
    stack, life = own.stack, Life(own.home)
    for name in LISTED:
        job(folder, name, FAILS if name == "train-b" else WORKS)
    for key, value in settings("ws-ten").items():
        stack.set(key, value)
    stack.set("amlstack:jobs", [declared(folder, name) for name in LISTED])

    def step(name: str, result: Result) -> None:
        life.results[name] = result
        life.known[name] = runs(own.home)

    step("preview", stack.preview().ok())
    running = stack.start_up()
    running.wait_until_starts("tokens")  # which is registered once `prepare` has completed
    step("killed", running.kill())
    stack.unlock()
    step("failure", stack.up().failed())
    step("too early", stack.up("--target", "**::eval-b").failed())
    job(folder, "train-b", WORKS)
    step("mended", stack.up().ok())
    step("unchanged", stack.up("--refresh").ok())
    job(folder, "eval-b", "echo edited")
    step("targeted", stack.up("--target", "**::eval-b").ok())

    submit = Verbs(stack.folder, stack.env)
    (folder / "src").mkdir()
    (folder / "src" / "train.py").write_text("print('trained')\n")
    more = {"code": "src", "inputs": {"rate": 0.5, "steps": 3}, "tags": {"team": "a"}}
    submitted = job(folder, "submitted", "python train.py ${{inputs.rate}}", **more)
    for name, file in (("first", submitted), ("again", submitted), ("of the stack", folder / "alone.yml")):
        life.submitted[name] = submit("submit", str(file), "--stack", stack.name, "--yes").ok()
    job(folder, "train-a", "echo edited")
    stack.set("amlstack:jobs", [*(declared(folder, name) for name in LISTED), str(submitted)])
    step("edit", stack.up().ok())
    return life


def names(story: Life, step: str) -> list[str]:
    """Names of the jobs that had run by then, in order of their submission."""
    return [row.name.rpartition("-")[0] for row in story.known[step].values()]


def test_the_preview_shows_what_waits_for_what(story: Life) -> None:
    printed = story.printed("preview")
    for words in (
        "submitted only once `tokens` has completed (`after`)",
        "submitted only once `eval-a`, `eval-b` have completed (`after`)",
    ):
        assert words in printed
    assert names(story, "preview") == []


def test_nothing_behind_a_failure_is_submitted_and_the_error_names_both(story: Life) -> None:
    ran = set(names(story, "failure"))
    assert ran >= {"prepare", "tokens", "train-b"}
    assert not ran & {"eval-b", "best", "export", "report"}
    assert story.results["failure"].code
    (error,) = [one for one in story.results["failure"].errors if "ended Failed" in one]
    assert "run train-b-" in error
    assert "what comes after it (`eval-b`) is submitted only once it has completed" in error
    assert "set `rerun` of `train-b`" in error


def test_an_up_after_a_kill_goes_on_and_doubles_nothing(story: Life) -> None:
    ran = names(story, "failure")
    assert "prepare" in names(story, "killed")
    assert "train-b" not in names(story, "killed")
    assert len(ran) == len(set(ran))


def test_a_mended_job_lets_the_rest_through_in_order(story: Life) -> None:
    ran = names(story, "mended")
    assert sorted(ran) == sorted([*AFTER, "train-b"])
    rows = {row.name.rpartition("-")[0]: row for row in story.known["mended"].values()}
    for name, after in AFTER.items():
        for earlier in after:
            ended = rows[earlier.removesuffix(".yml")].ended
            assert ended is not None
            assert ended <= rows[name].created, f"{name} came before the end of {earlier}"
    assert {row.status for row in rows.values()} == {"Completed"}


def test_an_unchanged_stack_and_a_refresh_submit_nothing(story: Life) -> None:
    assert story.results["unchanged"].changes == {}
    assert names(story, "unchanged") == names(story, "mended")


def test_a_target_whose_earlier_job_has_not_completed_is_not_submitted(story: Life) -> None:
    """The engine leaves the earlier job out, so that its gate alone would let the later one through."""
    assert names(story, "too early") == names(story, "failure")
    (error,) = [one for one in story.results["too early"].errors if "eval-b" in one and "train-b-" in one]
    assert "Failed" in error


def test_a_target_whose_earlier_jobs_have_completed_is_submitted_alone(story: Life) -> None:
    assert sorted(names(story, "targeted")) == sorted([*names(story, "mended"), "eval-b"])


def test_an_edit_of_an_earlier_job_runs_that_one_alone(story: Life) -> None:
    assert story.results["edit"].op("train-a", "jobs:Job") == "replace"
    assert {story.results["edit"].op(name, "jobs:Job") for name in AFTER if name != "train-a"} == {"same"}
    assert sorted(names(story, "edit")) == sorted([*names(story, "targeted"), "submitted", "train-a"])


def test_a_submitted_run_is_adopted_by_the_next_up(story: Life) -> None:
    (run,) = (row.name for row in story.known["edit"].values() if row.name.startswith("submitted-"))
    assert f"adopted run {run}" in story.printed("edit")
    assert f"{run} is there already" in story.submitted["again"].out


def test_what_the_stack_has_run_is_not_submitted_again(story: Life) -> None:
    (run,) = (row.name for row in story.known["targeted"].values() if row.name.startswith("alone-"))
    assert f"{run} is there already" in story.submitted["of the stack"].out
