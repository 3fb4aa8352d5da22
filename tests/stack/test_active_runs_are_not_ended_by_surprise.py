"""An update that would end an active run is refused with the run's name, or announced, with and without a preview."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.provider.stacks.foreign import VARIABLE
from amlstack.sandbox.protocol.entra import SUBSCRIPTION
from tests.support.stack.small_jobs import FOREVER, SIZE, StackLife, job, runs, settings, store_of, urn_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from amlstack.sandbox.store.store import JobRow
    from tests.support.engine_result import Result
    from tests.support.harness import Stack
    from tests.support.stack.small_jobs import Own

# The first one waits for the whole story.
pytestmark = [pytest.mark.engine, pytest.mark.timeout(3600)]

LARGER = "Standard_ND96isr_H100_v5"
CLUSTERS = ("busy", "spare", "third")
FOREIGN = "stforeigndata"
JOBS = {"refusing": ("busy", "refuse"), "keeping": ("spare", "keep"), "ending": ("third", "cancel")}


@dataclass
class Story(StackLife):
    """With what the service had after each step: the ids of all resources, and the statuses of the runs by job."""

    there: dict[str, set[str]] = field(default_factory=dict)
    known: dict[str, dict[str, str]] = field(default_factory=dict)
    runs: dict[str, list[JobRow]] = field(default_factory=dict)

    def tell(self, step: str, result: Result) -> Result:
        self.results[step] = result
        self.runs[step] = list(runs(self.home).values())
        self.known[step] = {row.name.rpartition("-")[0]: row.status for row in self.runs[step]}
        with store_of(self.home) as store:
            self.there[step] = {row.id.lower() for row in store.resources.all()}
        return result


@dataclass
class Declared:
    """The stack's settings, with one change at a time."""

    stack: Stack
    folder: Path

    def as_first(self) -> None:
        for key, value in settings("ws-guarded").items():
            self.stack.set(key, value, path=False)
        # In a managed network a cluster could not move to another region at all.
        self.stack.set("amlstack:workspace", {"name": "ws-guarded", "network": {"isolation": "off"}})
        self.clusters(*CLUSTERS)
        self.jobs(**JOBS)

    def clusters(self, *names: str, **sizes: str) -> None:
        every = [{"name": name, "size": sizes.get(name, SIZE), "nodes": {"max": 2}} for name in names]
        self.stack.set("amlstack:clusters", every)

    def edited(self, **changes: object) -> None:
        """The cluster `busy` with other settings."""
        every = [{"name": name, "size": SIZE, "nodes": {"max": 2}} for name in CLUSTERS]
        self.stack.set("amlstack:clusters", [{**every[0], **changes}, *every[1:]])

    def jobs(self, rerun: str = "", **wanted: tuple[str, str]) -> None:
        files: list[dict[str, Any]] = []
        for name, (cluster, on_edit) in wanted.items():
            path = job(self.folder, name, FOREVER, compute=f"azureml:{cluster}")
            again = {"rerun": rerun} if rerun and name == "ending" else {}
            files.append({"file": str(path), "wait": "started", "on_edit": on_edit, **again})
        self.stack.set("amlstack:jobs", files)


def without(*names: str) -> dict[str, tuple[str, str]]:
    return {name: spec for name, spec in JOBS.items() if name not in names}


Change = tuple["Callable[[Declared], object]", "Callable[[Stack], Result]", *tuple[str, ...]]


def removed_cluster(declared: Declared) -> None:
    declared.clusters("busy", "third", "fourth")
    declared.jobs(**{**JOBS, "keeping": ("fourth", "keep")})


REFUSED: dict[str, Change] = {
    "a cluster's region and identity, previewed": (
        lambda one: one.edited(location="northeurope", identity="system"),
        lambda stack: stack.preview(),
        "run refusing-{id} is Running, and its cluster busy would be replaced",
    ),
    "a size": (
        lambda one: one.clusters(*CLUSTERS, busy=LARGER),
        lambda stack: stack.up(),
        "run refusing-{id} is Running, and its cluster busy would be replaced",
    ),
    "a size without the guard": (
        lambda one: one.clusters(*CLUSTERS, busy=LARGER),
        lambda stack: stack.up("--exclude", urn_of(stack, ":Guard", "runs")),
        "run refusing-{id} is Running, and its cluster busy would be replaced",
    ),
    "a size of one target": (
        lambda one: one.clusters(*CLUSTERS, spare=LARGER),
        lambda stack: stack.up("--target", urn_of(stack, ":Compute", "spare")),
        "run keeping-{id} is Running, and its cluster spare would be replaced. `on_edit: keep` cannot hold there",
    ),
    "a group by command": (
        Declared.as_first,
        lambda stack: stack.up("--replace", urn_of(stack, ":ResourceGroup", "group")),
        "run refusing-{id} is Running, and its workspace, or what that stands on, would be replaced",
    ),
    "an identity that clusters share, by command": (
        Declared.as_first,
        lambda stack: stack.up("--replace", urn_of(stack, ":UserAssignedIdentity", "identity")),
        "run refusing-{id} is Running, and the identity or the network that it reaches its data by would be replaced",
    ),
    "a region": (
        lambda one: one.stack.set("amlstack:location", "northeurope"),
        lambda stack: stack.up(),
        # The engine comes to the storage account or to the clusters' identity first.
        "run refusing-{id} is Running, and ",
    ),
    "a renamed cluster": (
        removed_cluster,
        lambda stack: stack.preview(),
        "run keeping-{id} is Running, and its cluster spare would be removed. `on_edit: keep` cannot hold there",
    ),
    "a removed job": (
        lambda one: one.jobs(**without("refusing")),
        lambda stack: stack.up(),
        "run refusing-{id} is Running, and job refusing is no longer declared",
    ),
    "a removed job as a target": (
        lambda one: one.jobs(**without("refusing")),
        lambda stack: stack.up(
            "--target", urn_of(stack, "jobs:Job", "refusing"), "--target", urn_of(stack, ":Keeper", "keeper")
        ),
        "run refusing-{id} is Running, and job refusing is no longer declared",
    ),
    "removed jobs without the guard": (
        lambda one: one.jobs(**without("refusing", "keeping")),
        # Both are refused, each by its own resource: without the flag the engine stops at the first.
        lambda stack: stack.up("--exclude", urn_of(stack, ":Guard", "runs"), "--continue-on-error"),
        "run refusing-{id} is Running, and job refusing is no longer declared",
        "run keeping-{id} is Running and goes on (on_edit: keep), though job keeping is no longer declared, and which",
    ),
    "a target destroyed": (
        Declared.as_first,
        lambda stack: stack.destroy("--target", urn_of(stack, ":Compute", "busy"), "--target-dependents"),
        "run refusing-{id} is Running, and its cluster busy would be replaced",
    ),
}


@pytest.fixture(scope="module")
def story(own: Own, tmp_path_factory: pytest.TempPathFactory) -> Story:
    return story_of(own.stack, tmp_path_factory.mktemp("jobs"), own.home)


def story_of(stack: Stack, folder: Path, home: Path) -> Story:
    story, declared = Story(home), Declared(stack, folder)
    declared.as_first()
    story.tell("first", stack.up().ok())
    declared.jobs(**without("refusing"))
    story.tell("a removed job as the one target", stack.up("--target", urn_of(stack, "jobs:Job", "refusing")).ok())
    for name, (change, command, *_) in REFUSED.items():
        declared.as_first()
        change(declared)
        story.tell(name, command(stack).failed())

    declared.as_first()
    declared.clusters(*CLUSTERS, third=LARGER)
    declared.jobs(rerun="on the larger one", **without("keeping"))
    story.tell("accepted", stack.up().ok())
    (group_name,) = (one["outputs"]["name"] for one in stack.resources(":ResourceGroup").values())
    stack.set("amlstack:resource_group", {"existing": group_name}, path=False)
    story.tell("an own group said to exist", stack.preview().failed())
    stack.set("amlstack:resource_group", group_name, path=False)
    group = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group_name}"
    with store_of(home) as store:
        kind = "Microsoft.Storage/storageAccounts"
        store.resources.put(f"{group}/providers/{kind}/{FOREIGN}", kind, group, {"location": "westeurope"})
    story.tell("a group with something of others destroyed", stack.destroy().failed())
    stack.env[VARIABLE] = f"storageAccounts/{FOREIGN}"
    story.tell("destroyed", stack.destroy().ok())
    return story


@pytest.mark.parametrize("step", REFUSED)
def test_what_would_end_an_active_run_is_refused_with_its_name_and_nothing_is_lost(story: Story, step: str) -> None:
    for words in REFUSED[step][2:]:
        job_name = words.split("-{id}")[0].removeprefix("run ")
        (run,) = (row.name for row in story.runs[step] if row.name.rpartition("-")[0] == job_name)
        assert words.format(id=run.rpartition("-")[2]) in "\n".join(story.results[step].errors)
    assert story.known[step] == dict.fromkeys(JOBS, "Running")
    assert story.there["first"] <= story.there[step]


def test_a_plain_destroy_that_fails_has_deleted_and_ended_nothing(story: Story) -> None:
    step = "a group with something of others destroyed"
    words = f"what this stack does not own: storageAccounts/{FOREIGN}. Nothing was deleted"
    assert words in " ".join("\n".join(story.results[step].errors).split())
    assert story.results[step].changes == {}
    assert story.there["accepted"] <= story.there[step]
    assert story.known[step] == story.known["accepted"]
    assert "Running" in story.known[step].values()


def test_a_removed_job_stays_where_the_keeper_that_depends_on_it_is_no_target(story: Story) -> None:
    step = "a removed job as the one target"
    assert story.results[step].changes == {}
    assert story.known[step] == story.known["first"]


def test_a_group_that_the_stack_has_made_is_not_given_away_around_its_workspace(story: Story) -> None:
    errors = story.results["an own group said to exist"].errors
    assert "A group that a stack has made remains its own" in "\n".join(errors)


def test_what_was_named_goes_with_the_stack(story: Story) -> None:
    assert story.there["destroyed"] == set()
    assert story.known["destroyed"] == {}


def test_what_was_refused_has_left_nothing_to_change(story: Story) -> None:
    changed = {urn.rpartition("::")[2]: set(ops) for urn, ops in story.results["accepted"].ops.items()}
    assert {name for name, ops in changed.items() if ops != {"same"}} == {"third", "ending", "keeping", "runs"}


def test_on_edit_cancel_ends_the_run_of_a_replaced_cluster_and_says_so(story: Story) -> None:
    assert "is Running and is ended first (on_edit: cancel): its cluster third would be replaced" in story.printed(
        "accepted"
    )
    assert story.results["accepted"].op("third", "Compute") == "replace"
    assert [row.status for row in story.runs["accepted"] if row.name.startswith("ending-")] == ["Canceled", "Running"]


def test_on_edit_keep_lets_the_run_of_a_removed_job_go_on_until_the_stack_ends(story: Story) -> None:
    assert "is Running and goes on (on_edit: keep), though job keeping is no longer declared" in story.printed(
        "accepted"
    )
    assert story.known["accepted"]["keeping"] == "Running"
    assert story.known["accepted"]["refusing"] == "Running"
    assert "is Running and is ended: its stack is destroyed" in story.printed("destroyed")
    assert "Running" not in story.known["destroyed"].values()
