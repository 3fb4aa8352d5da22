"""The store: statuses that end are final, several processes see one truth."""

# ruff: noqa: E501 - one line per row of a table reads best

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from amlstack.sandbox import processes
from amlstack.sandbox.protocol.addresses import parse
from amlstack.sandbox.server import daemon
from amlstack.sandbox.store.database import StateError
from amlstack.sandbox.store.store import Exit, JobError, Store
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path


def test_a_job_walks_through_its_statuses_and_keeps_their_times(store: Store) -> None:
    store.jobs.add("/W", "one", {"properties": {}})
    for status in ("Queued", "Preparing", "Running", "Finalizing"):
        assert store.jobs.move("one", status)
    store.jobs.move("one", "Failed", error=JobError("UserError", "rank 3"), exits=[Exit(1, 3, 1, "log")])

    row = store.jobs["one"]
    states = [step.state for step in store.history.of("job", "one")]
    assert states == ["NotStarted", "Queued", "Preparing", "Running", "Finalizing", "Failed"]
    assert (row.error, row.exits) == (JobError("UserError", "rank 3"), (Exit(1, 3, 1, "log"),))
    assert row.started is not None
    assert row.ended is not None
    assert row.created <= row.started <= row.ended


def test_an_end_is_final_and_a_cancel_only_ends(store: Store) -> None:
    store.jobs.add("/W", "one", {})

    assert store.jobs.request_cancel("one")
    assert not store.jobs.move("one", "Running")
    assert store.jobs.move("one", "Canceled")
    assert not store.jobs.move("one", "Completed")
    assert not store.jobs.request_cancel("one")
    assert store.jobs["one"].status == "Canceled"


def test_a_move_may_expect_where_it_starts(store: Store) -> None:
    store.jobs.add("/W", "one", {})

    assert not store.jobs.move("one", "Running", expect=["Preparing"])
    assert store.jobs.move("one", "Queued", expect=["NotStarted"])
    with pytest.raises(ValueError, match="Runing is no status"):
        store.jobs.move("one", "Runing")


def test_jobs_that_only_wait_are_left_out_where_nothing_starts(store: Store) -> None:
    for name in ("new", "waits", "is_cancelled", "has_nodes", "has_a_runner", "runs", "ended"):
        store.jobs.add("/w", name, {"properties": {"jobType": "Command"}})
        if name != "new":
            store.jobs.move(name, {"runs": "Running", "ended": "Completed"}.get(name, "Queued"))
    store.jobs.request_cancel("is_cancelled")
    store.jobs.set_nodes("has_nodes", [0])
    store.jobs.set_runner("has_a_runner", 1, 1)
    assert [job.id for job in store.jobs.active(queued=False)] == [
        *("new", "is_cancelled", "has_nodes", "has_a_runner", "runs"),
    ]
    assert "waits" in [job.id for job in store.jobs.active()]


def test_jobs_of_one_name_in_two_workspaces_have_keys_of_their_own(store: Store) -> None:
    first, second = store.jobs.add("/W", "one", {}), store.jobs.add("/V", "one", {})

    assert first.id == "one"
    assert second.id.startswith("one@")
    found = store.jobs.find("/v", "one")
    assert found is not None
    assert found.id == second.id


def test_a_transaction_happens_whole_or_not_at_all(store: Store) -> None:
    store.jobs.add("/W", "one", {})

    def half() -> None:
        with store.transaction():
            store.jobs.move("one", "Queued")
            store.nodes.put("/c", 0, "busy", "one")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half()

    assert store.jobs["one"].status == "NotStarted"
    assert store.nodes.all() == ()
    assert len(store.history.of("job", "one")) == 1


def test_a_state_of_another_version_is_refused_with_its_remedy(store: Store, tmp_path: Path) -> None:
    store.database.execute("PRAGMA user_version=99")

    with pytest.raises(StateError) as error:
        Store(tmp_path)

    assert "written by another version of the sandbox (99, this is 1)" in str(error.value)
    daemon.down(tmp_path, remove=True)
    Store(tmp_path).close()


WRITER = """
import sys; from pathlib import Path; from amlstack.sandbox.store.store import Store
store = Store(Path(sys.argv[1]))
for number in range(40):
    store.nodes.put("/c", number, "busy", sys.argv[2])
"""


def test_processes_that_write_at_once_wait_for_each_other(store: Store, tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name]) for name in "ab"]

    assert [writer.wait() for writer in writers] == [0, 0]
    assert len(store.nodes.of("/C")) == 40
    assert store.nodes.release("a") + store.nodes.release("b") == 40
    assert {node.state for node in store.nodes.all()} == {"idle"}


def test_nodes_of_an_ended_job_are_idle_since_one_moment(store: Store) -> None:
    for number in range(16):
        store.nodes.put("/c", number, "busy", "job")

    assert store.nodes.release("job") == 16
    assert len({node.since for node in store.nodes.of("/c")}) == 1  # else a lower number may leave before a higher one


def test_a_process_is_named_by_its_pid_and_its_start() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    start = processes.started(child.pid)

    assert processes.alive(child.pid, start)
    assert start is not None
    assert not processes.alive(child.pid, start - 1), "the pid was given to another process"
    child.communicate(b"\n")
    assert not processes.alive(child.pid, start)


@for_each("path, kind, parent, collection", [
        ("/subscriptions/s/resourceGroups/g", "Microsoft.Resources/resourceGroups", "/subscriptions/s", False),
        ("/subscriptions/s/resourcegroups", "Microsoft.Resources/resourceGroups", "/subscriptions/s", True),
        ("/subscriptions/s/resourceGroups/g/providers/N/a/x", "N/a", "/subscriptions/s/resourceGroups/g", False),
        ("/subscriptions/s/resourceGroups/g/providers/N/a", "N/a", "/subscriptions/s/resourceGroups/g", True),
        ("/subscriptions/s/resourceGroups/g/providers/N/a/x/b/y/", "N/a/b", "/subscriptions/s/resourceGroups/g/providers/N/a/x", False),
        ("/subscriptions/s/resourceGroups/g/providers/N/a/x/b", "N/a/b", "/subscriptions/s/resourceGroups/g/providers/N/a/x", True),
])  # fmt: skip
def test_a_path_is_a_type_and_what_lies_above(path: str, kind: str, parent: str, collection: bool) -> None:
    found = parse(path)

    assert found is not None
    assert (found.type, found.parent, found.collection) == (kind, parent, collection)


@for_each(
    "path",
    ["/", "/subscriptions/s", "/subscriptions/s/resourceGroups/g/x/y", "/a//b", "/subscriptions/s/providers/N/a"],
)
def test_other_paths_are_none_of_ours(path: str) -> None:
    assert parse(path) is None
