"""The record of one job: what was asked, where it stands, which process runs it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.store.database import reading

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path


TERMINAL = frozenset({"Completed", "Failed", "Canceled"})
"""Statuses that never change again."""
STATUSES = TERMINAL | {
    *("NotStarted", "Starting", "Provisioning", "Preparing", "Queued", "Running", "Finalizing"),
    *("CancelRequested", "NotResponding", "Paused", "Unknown"),
}


@dataclass(frozen=True, slots=True)
class JobError:
    """Why a job failed, as the service says it: a code such as ``UserError`` and one message."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Exit:
    """How one process of a job ended; ``code`` is negative for a signal, None when it never started."""

    node: int
    rank: int
    code: int | None
    log: str = ""


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job.

    Attributes:
        id: Key of this table and name of the job's folder: the job's name, unless another workspace has the same.
        workspace: ARM id of the workspace, as the client wrote it first.
        name: The job's name in ARM.
        body: The body as it was PUT: ``{"properties": {...}}``.
        status: One of `STATUSES`.
        created, started, ended: Seconds since the epoch; started is the first ``Running``.
        nodes: Numbers of the cluster's nodes that it was given, in rank order; empty before.
        exits: How its processes ended.
        error: Why it failed.
        cancel_requested: Somebody asked for its end.
        runner_pid, runner_started: The runner process and its start time in clock ticks after boot
            (field 22 of /proc/PID/stat), which together name a process for ever.
    """

    id: str
    workspace: str
    name: str
    body: dict[str, Any]
    status: str
    created: float
    started: float | None
    ended: float | None
    nodes: tuple[int, ...]
    exits: tuple[Exit, ...]
    error: JobError | None
    cancel_requested: bool
    runner_pid: int | None
    runner_started: int | None

    @property
    def active(self) -> bool:
        """It has not reached a terminal status."""
        return self.status not in TERMINAL

    @property
    def properties(self) -> dict[str, Any]:
        """``body["properties"]``."""
        found: dict[str, Any] = self.body.get("properties", {})
        return found

    @property
    def arm_id(self) -> str:
        """``<workspace>/jobs/<name>``."""
        return f"{self.workspace}/jobs/{self.name}"


@dataclass(frozen=True, slots=True)
class ActiveJob:
    """What the scheduler looks at of a job that has not ended; the body, which is most of a row, is left unread.

    Attributes:
        id: Key of the jobs table.
        status: One of `STATUSES` but `TERMINAL`.
        type: ``jobType`` of the body.
        cluster: The lower-cased ARM id of the compute that it asked for; None for a serverless job.
        placed: It was given nodes.
        cancel_requested, runner_pid, runner_started: As in `JobRow`.
    """

    id: str
    status: str
    type: str
    cluster: str | None
    placed: bool
    cancel_requested: bool
    runner_pid: int | None
    runner_started: int | None


@dataclass(frozen=True, slots=True)
class ListedJob:
    """What a list is narrowed by; the body, which is most of a row, is read for the jobs of one page.

    Attributes:
        id: Key of the jobs table.
        type: ``jobType`` of the body.
        archived: ``isArchived`` of the body.
        tags, properties: Those of the body.
    """

    id: str
    type: str
    archived: bool
    tags: dict[str, Any]
    properties: dict[str, Any]


def job_row(row: sqlite3.Row, database: Path) -> JobRow:
    """A record as it was stored, its JSON read."""
    values = dict(row)
    with reading(database):
        values["body"] = json.loads(values["body"])
        values["nodes"] = tuple(json.loads(values["nodes"]))
        values["exits"] = tuple(Exit(*entry) for entry in json.loads(values["exits"] or "[]"))
        values["error"] = JobError(**json.loads(values["error"])) if values["error"] else None
    values["cancel_requested"] = bool(values["cancel_requested"])
    return JobRow(**values)


def active_job(row: sqlite3.Row) -> ActiveJob:
    """What the scheduler reads of a job that has not ended."""
    values = dict(row)
    compute = values["cluster"]
    return ActiveJob(**{**values, "cluster": str(compute).lower() if compute else None})


def listed_job(row: sqlite3.Row) -> ListedJob:
    """What a list of jobs chooses by."""
    kind, archived, tags, properties = json.loads(row["labels"])
    return ListedJob(row["id"], str(kind), bool(archived), tags or {}, properties or {})
