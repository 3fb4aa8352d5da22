"""The life of runs under the real engine, with the provider as a process of its own, against the fake ARM.

Edits, removals, vanished records, other stacks' runs and new names are parts of stories on the sandbox, in tests/stack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amlstack.run_identity import job_id
from tests.support.provider.fake_workspace import WORKSPACE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.engine_result import Result
    from tests.support.harness import Stack
    from tests.support.provider.fake_arm import FakeArm
    from tests.support.running import MakeStack

pytestmark = pytest.mark.engine


def job(**changes: Any) -> dict[str, Any]:
    properties = {
        "jobType": "Command",
        "command": "python train.py",
        "environmentId": "azureml://registries/azureml/environments/acpt/versions/1",
        "environmentVariables": {"NCCL_DEBUG": "INFO"},
        **changes.pop("properties", {}),
    }
    return {"declaration": {"lr": 0.1}, "code_hash": "0" * 64, "body": {"properties": properties}, **changes}


EDITED = {"declaration": {"lr": 0.2}}


@pytest.fixture
def jobs(stack: MakeStack, arm: FakeArm) -> Stack:
    return stack("jobs_from_settings", env=arm.environ()).set("workspace", WORKSPACE)


def run_of(name: str, inputs: dict[str, Any]) -> str:
    return job_id(name, inputs["declaration"], inputs["code_hash"], inputs.get("rerun", ""), "scenario/test")


def messages(result: Result, severity: str) -> str:
    return "\n".join(one.message for one in result.diagnostics if one.severity.startswith(severity))


def test_code_environment_and_run_are_made_once_and_kept(jobs: Stack, arm: FakeArm, tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code/train.py").write_text("print(1)\n")
    jobs.set("code", str(tmp_path / "code")).set("image", "mcr.microsoft.com/x:1").set("jobs", {"mnist": job()})
    made = jobs.up(preview=True).ok()
    assert made.changes == {"create": 4}, "the stack itself counts"
    assert arm.runs_started() == 1, "the preview started none"
    outputs = jobs.outputs()
    assert outputs["mnist"] == {"id": f"{WORKSPACE}/jobs/{run_of('mnist', job())}", "status": "Queued", "gone": False}
    assert {outputs["codeId"], outputs["environmentId"]} == set(arm.resources)
    state = str(jobs.state())
    assert "sig=" not in state
    (tmp_path / "code/train.py").write_text("print(2)\n")
    edited = jobs.up().ok()
    assert edited.op("code") == "replace"
    assert (edited.op("torch"), edited.op("mnist")) == ("same", "same")
    assert arm.runs_started() == 1
    jobs.destroy().ok()
    assert len(arm.resources) == 3, "code and environments are shared and retained"
    assert len(arm.jobs) == 1, "history is kept"


def test_ups_that_are_killed_are_healed_by_the_next_which_starts_and_ends_nothing(jobs: Stack, arm: FakeArm) -> None:
    def killed() -> None:
        arm.held.clear()
        arm.hold = "/jobs/mnist"
        running = jobs.start_up()
        assert arm.held.wait(300)
        running.kill()
        arm.release.set()
        jobs.unlock()

    # Right after the run was accepted.
    jobs.set("jobs", {"mnist": job()}).set("record", True)
    killed()
    assert jobs.resources("Job") == {}
    # No run bears an id of a stack that the state does not know: that would make it a stranger's.
    (record,) = jobs.resources("Record").values()
    assert record["outputs"]["stackId"] == arm.job(run_of("mnist", job()))["properties"]["amlstack.stack"]
    up = jobs.up().ok()
    assert f"adopted run {run_of('mnist', job())}" in messages(up, "info")
    assert arm.runs_started() == 1

    # With a run that is kept, before its old resource is gone.
    arm.set_status(run_of("mnist", job()), "Running")
    jobs.set("jobs", {"mnist": job(on_edit="keep", **EDITED)})
    arm.release.clear()
    killed()
    arm.hold = None
    assert jobs.up(preview=True).ok().op("mnist") == "replace"
    assert set(jobs.resources("Job")) == {"mnist"}
    assert arm.cancelled == []
    assert arm.runs_started() == 2
    assert jobs.outputs()["mnist"]["id"].endswith(run_of("mnist", job(**EDITED)))
    assert jobs.preview().ok().changes == {}


def test_a_copy_that_is_pending_deletion_holds_no_cluster_that_the_run_of_its_job_gives_up(
    jobs: Stack, arm: FakeArm
) -> None:
    arm.script = ("Completed",)
    jobs.set("ground", "cluster-1").set("jobs", {"mnist": job(on_edit="cancel", wait="completed")})
    jobs.up().ok()
    arm.script = ("Queued",)
    old, new = run_of("mnist", job()), run_of("mnist", job(**EDITED))
    jobs.set("jobs", {"mnist": job(on_edit="cancel", **EDITED)})
    arm.fail("GET", f"/jobs/{old}$", 403, code="AuthorizationFailed")  # first asked for when the old copy is deleted
    jobs.up().failed()
    recorded = [one for one in jobs.state()["resources"] if one["type"] == "amlstack:jobs:Job"]
    assert [(one["id"], one.get("delete", False)) for one in recorded] == [(new, False), (old, True)]
    jobs.set("ground", "cluster-2")
    up = jobs.up().ok()
    assert f"run {new} is Queued and is ended first (on_edit: cancel)" in messages(up, "info")
    assert arm.cancelled == [new]
    assert arm.runs_started() == 2


def test_an_interrupted_wait_goes_on_with_the_next_up_and_a_gate_that_fails_stops_what_depends_on_it(
    jobs: Stack, arm: FakeArm
) -> None:
    arm.script = ("Running",)
    gate = job(wait="completed")
    run = run_of("gate", gate)
    jobs.set("jobs", {"gate": gate, "training": job(after="gate")})
    running = jobs.start_up()
    running.wait_for(lambda event: "waiting until" in event.get("diagnosticEvent", {}).get("message", ""))
    running.interrupt()
    assert running.result().code != 0
    assert arm.cancelled == []

    def fails(*words: str) -> None:
        failed = jobs.up(*words).failed()
        assert f"run {run} ended Failed" in "\n".join(failed.errors) + failed.output
        assert set(jobs.resources("Job")) == {"gate"}
        assert jobs.resources("Job")["gate"]["id"] == run
        assert arm.runs_started() == 1

    arm.set_status(run, "Running", "Failed")
    fails()
    fails("--refresh")
    arm.script = ("Queued", "Preparing", "Running", "Completed")
    jobs.set("jobs", {"gate": {**gate, "rerun": "2"}, "training": job(after="gate")})
    up = jobs.up().ok()
    assert arm.runs_started() == 3
    assert jobs.outputs()["gate"]["status"] == "Completed"
    passing = [event["diagnosticEvent"] for event in up.events if "diagnosticEvent" in event]
    fields = " ".join(event["message"] for event in passing if event.get("ephemeral"))
    assert "is Preparing; waiting until it has completed" in fields
    assert "waiting until" not in " ".join(one.message for one in up.diagnostics)


def test_edits_of_an_active_run_update_its_record_adopt_it_or_are_refused_and_none_starts_another(
    jobs: Stack, arm: FakeArm
) -> None:
    code: dict[str, Any] = {"code_hash": "1" * 64, "code_files": {"train.py": "a"}}
    first = job(properties={"tags": {"team": "vision"}}, **code)
    jobs.set("jobs", {"mnist": first}).set("amlstack:clusters", [{"name": "one"}]).up().ok()
    arm.set_status(run_of("mnist", first), "Running")

    # Metadata change in place, by a PATCH of the run's history.
    described = job(properties={"tags": {"team": "speech"}, "description": "why"}, **code)
    up = jobs.set("jobs", {"mnist": described}).up().ok()
    assert up.op("mnist") == "update"
    assert set(up.steps("mnist")[0].detail) == {"body.properties.tags.team", "body.properties.description"}
    assert arm.last("PATCH", "/history/").body == {"tags": {"team": "speech"}, "description": "why"}

    # A replacement that is forced by hand adopts the run; the provider keeps no settings of the stack, which change.
    (urn,) = [one["urn"] for one in jobs.resources("Job").values()]
    up = jobs.set("amlstack:clusters", [{"name": "two"}]).up("--replace", urn).ok()
    assert set(up.changes) == {"replace"}
    assert up.op("mnist") == "replace"
    assert "adopted run" in messages(up, "info")
    (provider,) = [one for one in jobs.state()["resources"] if one["type"] == "pulumi:providers:amlstack"]
    assert "clusters" not in str(provider)

    # Other code is refused with its files, without a preview, too.
    jobs.set("jobs", {"mnist": job(code_hash="3" * 64, code_files={"train.py": "b", "data.py": "c"})})
    assert "(data.py added, train.py changed)" in "\n".join(jobs.up().failed().errors)

    jobs.set("jobs", {"mnist": job(wait="soon", on_edit="ask", **code)})
    errors = "\n".join(jobs.preview().failed().errors)
    assert "wait is 'soon'; it must be one of none, started, completed" in errors
    assert "onEdit is 'ask'; it must be one of refuse, cancel, keep" in errors
    assert arm.cancelled == []
    assert arm.runs_started() == 1


def test_an_endpoint_that_is_no_https_host_is_refused_before_anything_is_sent(jobs: Stack, arm: FakeArm) -> None:
    jobs.set("jobs", {"mnist": job()}).set("amlstack:armEndpoint", "http://127.0.0.1:1")
    assert "http://127.0.0.1:1 is no ARM endpoint" in jobs.preview().failed().output
    assert arm.asked == []
