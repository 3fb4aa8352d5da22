"""One stack of several jobs from its first `up` to its end, with everything real: what each edit does, and does not."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from amlstack import run_identity
from amlstack.provider.stacks.foreign import VARIABLE
from infra.declaration import declare
from infra.settings import read_file
from tests.support.harness import ANALYZER
from tests.support.running import left_of_jobs
from tests.support.stack.small_jobs import FOREVER, StackLife, cluster, job, run_of, runs, settings, store_of

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.sandbox.store.store import JobRow
    from tests.support.engine_result import Result
    from tests.support.harness import Stack
    from tests.support.stack.small_jobs import Own

pytestmark = [pytest.mark.engine, pytest.mark.timeout(3600)]

DERIVES = """\
from jobs import Job, PerProcess

job = Job(
    name="edited",
    command="python -c 'print({number})'",
    environment="small",
    compute="busy",
    nodes=2,
    launcher=PerProcess(processes_per_node=1),
)
"""
UPGRADED = """\

from amlstack.catalog import fabric

known = fabric.settings

def one_more(*args, **kwargs):
    found = known(*args, **kwargs)
    return (*found, found[0]._replace(name="NCCL_OF_THE_NEXT_RELEASE", value="1")) if found else ()

fabric.settings = one_more

from infra.program import main

main()
"""
LARGER = "Standard_ND96isr_H100_v5"


@dataclass
class Story(StackLife):
    """With the runs that the sandbox knew after each step."""

    known: dict[str, dict[str, JobRow]] = field(default_factory=dict)
    clusters: dict[str, Any] = field(default_factory=dict)
    history: dict[str, list[tuple[str, float]]] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    network: dict[str, Any] = field(default_factory=dict)

    def tell(self, step: str, result: Result) -> Result:
        self.results[step] = result
        self.known[step] = runs(self.home)
        return result


@pytest.fixture(scope="module")
def story(own: Own, tmp_path_factory: pytest.TempPathFactory) -> Story:
    return story_of(own.stack, tmp_path_factory.mktemp("jobs"), own.home)


def story_of(stack: Stack, folder: Path, home: Path) -> Story:
    story = Story(home)
    edited = folder / "edited.py"
    edited.write_text(DERIVES.format(number=1))
    files = {
        "edited": {"file": str(edited), "wait": "completed"},
        "vanishing": {"file": str(job(folder, "vanishing", "python -c 'print(1)'")), "wait": "completed"},
        "removed": {"file": str(job(folder, "removed", FOREVER)), "wait": "started", "on_edit": "cancel"},
        "refused": {"file": str(job(folder, "refused", FOREVER)), "wait": "started"},
        "ended": {"file": str(job(folder, "ended", FOREVER)), "wait": "started", "on_edit": "cancel"},
    }
    for key, value in settings("ws-over-time").items():
        stack.set(key, value, path=False)
    stack.set("amlstack:jobs", list(files.values()))
    story.tell("first", stack.up(policy_packs=[ANALYZER]).ok())
    story.network = {name: one["outputs"] for name, one in stack.resources().items() if ":network:" in one["type"]}

    program = stack.folder / "infra"
    program.unlink()
    program.mkdir()
    (program / "__main__.py").write_text(UPGRADED)
    story.tell("derived", stack.up().ok())

    job(folder, "refused", f"true; {FOREVER}")
    story.tell("edit of a running job", stack.up(preview=True).failed())
    job(folder, "refused", FOREVER)

    with store_of(home) as store:
        assert store.jobs.delete(run_of(home, "vanishing").id)
    story.tell("refresh", stack.refresh().ok())

    edited.write_text(DERIVES.format(number=2))
    job(folder, "ended", f"true; {FOREVER}")
    del files["removed"]
    stack.set("amlstack:jobs", list(files.values()))
    stack.set("amlstack:clusters[0].nodes.max", 9).set("amlstack:clusters[1].size", LARGER)
    story.tell("edits", stack.up(policy_packs=[ANALYZER], preview=True).ok())
    story.outputs = stack.outputs()
    story.clusters = {name: cluster(home, name) for name in ("busy", "spare")}

    files["foreign"] = {"file": str(job(folder, "foreign", FOREVER)), "wait": "started"}
    stack.set("amlstack:jobs", list(files.values()))
    plant(stack, "foreign", home)
    story.tell("foreign", stack.up().failed())

    stack.env[VARIABLE] = "jobs/*"  # the planted run is somebody else's, and its record goes with the workspace
    story.tell("destroyed", stack.destroy().ok())
    return story


def plant(stack: Stack, name: str, home: Path) -> None:
    """A run of the id that the stack's job will have, made by somebody else."""
    (run,) = (run for run in declare(read_file(stack.settings), on=date(2026, 1, 1)).runs if run.name == name)
    key = run_identity.job_id(name, run.plan.declaration, "", "", f"{stack.project}/{stack.name}")
    marks = {run_identity.OWNER: "speech/prod", run_identity.IDENTITY: "0" * 64}
    with store_of(home) as store:
        workspace = store.jobs.list()[0].workspace
        properties = {"jobType": "Command", "command": "true", "environmentId": "e", "properties": marks}
        added = store.jobs.add(workspace, key, {"properties": properties})
        assert store.jobs.move(added.id, "Canceled")


def statuses(story: Story, step: str) -> dict[str, str]:
    return {key.rpartition("-")[0]: row.status for key, row in story.known[step].items()}


def test_every_job_runs_once_under_the_policy_pack(story: Story) -> None:
    assert statuses(story, "first") == {
        "edited": "Completed",
        "vanishing": "Completed",
        "removed": "Running",
        "refused": "Running",
        "ended": "Running",
    }
    assert len(story.known["first"]) == 5
    assert [each for each in story.results["first"].violations if each.level == "mandatory"] == []
    packs = [
        event.get("policyPacks") or event.get("PolicyPacks") for event in story.results["first"].bodies("summaryEvent")
    ]
    assert [name.split("|")[0] for name in packs[-1]] == ["amlstack"]


def test_a_new_workspace_has_a_managed_network(story: Story) -> None:
    assert story.network["isolation"]["mode"] == "AllowInternetOutbound"
    assert story.network["network"]["status"] == "Active"


def test_a_change_of_derived_values_runs_nothing_and_is_shown(story: Story) -> None:
    assert story.results["derived"].op("edited", "jobs:Job") == "same"
    assert story.results["derived"].changes == {}
    assert story.known["derived"] == story.known["first"]
    assert "what is derived changed" in story.printed("derived")
    assert "NCCL_OF_THE_NEXT_RELEASE" in story.printed("derived")


def test_an_edited_job_is_a_new_run_and_the_old_record_stays(story: Story) -> None:
    assert story.results["edits"].op("edited", "jobs:Job") == "replace"
    (before,) = (row for key, row in story.known["first"].items() if key.startswith("edited-"))
    old, new = (row for key, row in story.known["edits"].items() if key.startswith("edited-"))
    assert old == before
    assert new.status == "Completed"
    assert new.properties["environmentVariables"]["NCCL_OF_THE_NEXT_RELEASE"] == "1"
    assert story.outputs["jobs"]["edited"]["jobId"] == new.arm_id


def test_a_vanished_record_is_not_run_again_by_refresh_and_up(story: Story) -> None:
    assert "is gone from the workspace" in story.printed("refresh")
    assert story.results["edits"].op("vanishing", "jobs:Job") == "same"
    assert "set `rerun` to another word" in story.printed("edits")
    assert not any(key.startswith("vanishing-") for key in story.known["edits"])


def test_an_edit_of_a_running_job_is_refused_at_preview(story: Story) -> None:
    refused = story.results["edit of a running job"]
    assert "is Running and its declaration changed (declaration.command)" in "\n".join(refused.errors)
    assert "on_edit: cancel" in "\n".join(refused.errors)
    assert [event for event in refused.events if "preludeEvent" in event][1:] == []  # no update after the preview
    assert story.known["edit of a running job"] == story.known["first"]


def test_with_on_edit_cancel_the_old_run_ends_before_the_new_one_is_made(story: Story) -> None:
    assert story.results["edits"].op("ended", "jobs:Job") == "replace"
    old, new = (row for key, row in story.known["edits"].items() if key.startswith("ended-"))
    assert (old.status, new.status) == ("Canceled", "Running")
    assert old.ended is not None
    assert old.ended <= new.created
    with store_of(story.home) as store:
        passed = [step.state for step in store.history.of("job", old.id)]
    assert passed[-2:] == ["CancelRequested", "Canceled"]


def test_a_running_job_removed_from_the_stack_is_cancelled_and_its_record_stays(story: Story) -> None:
    assert story.results["edits"].op("removed", "jobs:Job") == "delete"
    assert "is Running and is ended (on_edit: cancel): job removed is no longer declared" in story.printed("edits")
    assert statuses(story, "first")["removed"] == "Running"
    assert statuses(story, "edits")["removed"] == "Canceled"


def test_a_scale_is_updated_in_place_and_a_size_replaces_the_cluster_delete_first(story: Story) -> None:
    edits = story.results["edits"]
    assert edits.op("busy", "Compute") == "update"
    assert story.clusters["busy"]["scaleSettings"]["maxNodeCount"] == 9
    assert edits.op("spare", "Compute") == "replace"
    assert story.clusters["spare"]["vmSize"] == LARGER
    steps = [step.op for step in edits.done if step.name == "spare" and step.type.endswith("Compute")]
    assert steps.index("delete-replaced") < steps.index("create-replacement")
    # Neither touched a run.
    assert edits.op("refused", "jobs:Job") == "same"
    assert statuses(story, "edits")["refused"] == "Running"


def test_a_run_of_another_stack_is_refused_by_name(story: Story) -> None:
    assert "belongs to speech/prod, not to amlstack/test" in "\n".join(story.results["foreign"].errors)
    (planted,) = (row for key, row in story.known["foreign"].items() if key.startswith("foreign-"))
    assert planted.status == "Canceled"


def test_the_end_of_the_stack_ends_what_still_runs(story: Story) -> None:
    active = [key for key, row in story.known["foreign"].items() if row.active]
    assert sorted(key.rpartition("-")[0] for key in active) == ["ended", "refused"]
    assert story.results["destroyed"].op("refused", "jobs:Job") == "delete"
    with store_of(story.home) as store:
        for key in active:
            assert [step.state for step in store.history.of("job", key)][-2:] == ["CancelRequested", "Canceled"]
    assert left_of_jobs(story.home) == ()
