"""An operator's loop with the real engine: `pulumi up --refresh` of a stack of runs, again and again.

It ends where a round leaves the state as it found it: every further one would begin as that one did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amlstack.run_identity import job_id
from tests.support.provider.fake_workspace import WORKSPACE

if TYPE_CHECKING:
    from tests.support.harness import Stack
    from tests.support.provider.fake_arm import FakeArm
    from tests.support.running import MakeStack

pytestmark = pytest.mark.engine

JOBS = ("finished", "failed", "running", "cancelled", "lost", "ends", "disappears")


def job(name: str) -> dict[str, Any]:
    properties = {
        "jobType": "Command",
        "command": f"python {name}.py",
        "environmentId": "azureml://registries/azureml/environments/acpt/versions/1",
    }
    return {"declaration": {"name": name}, "code_hash": "0" * 64, "body": {"properties": properties}}


def run_of(name: str) -> str:
    return job_id(name, {"name": name}, "0" * 64, "", "scenario/test")


def recorded(stack: Stack) -> dict[str, Any]:
    """The whole state, without the times at which its parts were looked at."""
    state = stack.state()
    parts = {one.pop("urn"): one for one in state.pop("resources")}
    for one in parts.values():
        one.pop("modified", None)
    del state["manifest"]
    return {**state, "resources": parts}


def gone(arm: FakeArm, name: str) -> None:
    del arm.jobs[f"{WORKSPACE}/jobs/{run_of(name)}".lower()]


@pytest.fixture
def jobs(stack: MakeStack, arm: FakeArm) -> Stack:
    made = stack("jobs_from_settings", env=arm.environ()).set("workspace", WORKSPACE)
    return made.set("jobs", {name: job(name) for name in JOBS})


def test_updates_that_refresh_start_nothing_end_nothing_and_forget_nothing(jobs: Stack, arm: FakeArm) -> None:
    jobs.up().ok()
    submitted = arm.runs_started()
    assert submitted == len(JOBS)
    for name, status in {"finished": "Completed", "failed": "Failed", "cancelled": "Canceled"}.items():
        arm.set_status(run_of(name), status)
    for name in ("running", "ends", "disappears"):
        arm.set_status(run_of(name), "Running")
    # What others do between two rounds.
    gone(arm, "lost")
    noted: list[dict[str, int]] = []
    states: list[Any] = []

    def refreshed() -> None:
        result = jobs.up("--refresh").ok()
        noted.append(result.changes)
        assert arm.runs_started() == submitted, result.output
        states.append(recorded(jobs))

    refreshed()
    arm.set_status(run_of("ends"), "Canceled")
    gone(arm, "disappears")
    refreshed()  # what others did is noted, then nothing is
    refreshed()
    assert states[-2] == states[-1]
    assert arm.cancelled == []
    # A refresh notes what became of a run; nothing is made, replaced or deleted for it.
    assert {op for changes in noted for op in changes} <= {"update", "refresh"}
    outputs = {name: each["outputs"] for name, each in jobs.resources("Job").items()}
    assert {name: (each["status"], each["gone"]) for name, each in outputs.items()} == {
        "finished": ("Completed", False),
        "failed": ("Failed", False),
        "running": ("Running", False),
        "cancelled": ("Canceled", False),
        "lost": ("Queued", True),
        "ends": ("Canceled", False),
        "disappears": ("Running", True),
    }
    assert {name: each["id"] for name, each in jobs.resources("Job").items()} == {name: run_of(name) for name in JOBS}
