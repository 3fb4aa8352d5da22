"""Job records: what was asked, where a job stands, which process runs it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack.base.files import write_whole
from amlstack.sandbox.store.database import reading
from amlstack.sandbox.store.tables import StoreTable

if TYPE_CHECKING:
    import sqlite3


TERMINAL = frozenset({"Completed", "Failed", "Canceled"})
"""Statuses that never change again."""
STATUSES = TERMINAL | {
    *("NotStarted", "Starting", "Provisioning", "Preparing", "Queued", "Running", "Finalizing"),
    *("CancelRequested", "NotResponding", "Paused", "Unknown"),
}


@dataclass(frozen=True, slots=True)
class JobError:
    """The reason why a job failed, as the service says it: a code such as ``UserError`` and one message."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Exit:
    """The end of one process of a job; ``code`` is negative for a signal, None when it never started."""

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
    """The part of an active job that the scheduler looks at; the body, which is most of a row, is left unread.

    Attributes:
        id: Key of the jobs table.
        status: One of `STATUSES` but `TERMINAL`.
        type: ``jobType`` of the body.
        cluster: The lower-cased ARM id of the compute that it asked for; None for a serverless job.
        placed: It was given nodes.
        cancel_requested, runner_pid, runner_started: As in `JobRow`.
        site: Profile of Slurm that its nodes come from; None for this machine.
    """

    id: str
    status: str
    type: str
    cluster: str | None
    placed: bool
    cancel_requested: bool
    runner_pid: int | None
    runner_started: int | None
    site: str | None = None


@dataclass(frozen=True, slots=True)
class ListedJob:
    """The part of a job that a list is narrowed by; the body, which is most of a row, is read for the jobs of one page.

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


def listed_job(row: sqlite3.Row) -> ListedJob:
    """The part of a job by which a list chooses."""
    kind, archived, tags, properties = json.loads(row["labels"])
    return ListedJob(row["id"], str(kind), bool(archived), tags or {}, properties or {})


class JobTable(StoreTable):
    """The jobs table. Every change of status is also written to the history, in the same transaction."""

    def add(self, workspace: str, name: str, body: dict[str, Any]) -> JobRow:
        """Records a new job as ``NotStarted``; names are unique in a workspace (sqlite3.IntegrityError)."""
        with self._db.transaction():
            taken = self._db.one("SELECT 1 FROM jobs WHERE id = ?", name)
            key = f"{name}@{hashlib.sha256(workspace.lower().encode()).hexdigest()[:8]}" if taken else name
            self._db.execute(
                "INSERT INTO jobs (id, workspace, name, body, status, created) VALUES (?, ?, ?, ?, 'NotStarted', ?)",
                *(key, workspace, name, json.dumps(body), time.time()),
            )
            self.record("job", key, "NotStarted")
            return self[key]

    def __getitem__(self, key: str) -> JobRow:
        """The job with this table key; KeyError when there is none."""
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def get(self, key: str) -> JobRow | None:
        """The job with this table key."""
        row = self._db.one("SELECT * FROM jobs WHERE id = ?", key)
        return job_row(row, self._db.path) if row else None

    def find(self, workspace: str, name: str) -> JobRow | None:
        """The job of this name in this workspace (ARM ids in any letter case, job names exactly)."""
        row = self._db.one("SELECT * FROM jobs WHERE name = ? AND lower(workspace) = ?", name, workspace.lower())
        return job_row(row, self._db.path) if row else None

    def look(self, key: str) -> ActiveJob | None:
        """The part of one job that the scheduler looks at, also of one that has ended."""
        row = self._db.one(_LOOK, key)
        return ActiveJob(**dict(row)) if row else None

    def list(self, workspace: str | None = None, *, active: bool | None = None) -> tuple[JobRow, ...]:
        """Jobs in order of creation; of one workspace, or only those that are (not) active."""
        marks = ", ".join("?" * len(TERMINAL))
        rules = {None: "", True: f"WHERE status NOT IN ({marks})", False: f"WHERE status IN ({marks})"}
        values = () if active is None else tuple(sorted(TERMINAL))
        rows = self._db.all(f"SELECT * FROM jobs {rules[active]} ORDER BY created, id", *values)  # noqa: S608 - our words
        return tuple(
            job_row(row, self._db.path)
            for row in rows
            if workspace is None or row["workspace"].lower() == workspace.lower()
        )

    def listed(self, workspace: str, behind: str = "") -> Iterator[ListedJob]:
        """The jobs of a workspace (its ARM id in any letter case) in order of creation, read as far as is asked for.

        Args:
            workspace: ARM id of the workspace.
            behind: Table key of a job that is there: only those that come after it.
        """
        while True:
            rows = self._db.all(_LISTED, workspace.lower(), behind, behind, _CHUNK)
            yield from map(listed_job, rows)
            if len(rows) < _CHUNK:
                return
            behind = rows[-1]["id"]

    def active(self, *, queued: bool = True) -> tuple[ActiveJob, ...]:
        """The jobs that have not ended, in order of creation.

        Args:
            queued: Also those that only wait in the queue: ``Queued``, without nodes, a runner or a wish to end.
        """
        rows = self._db.all(_ACTIVE.format("" if queued else _NOT_WAITING), *sorted(STATUSES - TERMINAL))
        return tuple(ActiveJob(**dict(row)) for row in rows)

    def move(
        self,
        key: str,
        status: str,
        *,
        detail: str = "",
        error: JobError | None = None,
        exits: Iterable[Exit] | None = None,
        expect: Iterable[str] | None = None,
    ) -> bool:
        """Takes a job to a status; stamps ``started`` at the first Running and ``ended`` at a terminal one.

        Args:
            key: Table key.
            status: One of `STATUSES`.
            detail: A few words for the history.
            error: Recorded with a failure.
            exits: How the processes ended, recorded with the end.
            expect: Move only from one of these.

        Returns:
            Whether it moved: a job that ended, was deleted, or is not in ``expect`` stays as it is. While
            CancelRequested only an end moves it.
        """
        if status not in STATUSES:
            raise ValueError(f"{status} is no status of a job")
        with self._db.transaction():
            row = self._db.one("SELECT status FROM jobs WHERE id = ?", key)
            before = None if row is None else str(row["status"])
            if before is None or before in TERMINAL or (expect is not None and before not in set(expect)):
                return False
            if before == "CancelRequested" and status not in TERMINAL:
                return False
            now = time.time()
            self._db.execute(
                "UPDATE jobs SET status = ?, started = coalesce(started, ?), ended = ?, error = coalesce(?, error), "
                "exits = coalesce(?, exits) WHERE id = ?",
                status,
                now if status == "Running" else None,
                now if status in TERMINAL else None,
                None if error is None else json.dumps({"code": error.code, "message": error.message}),
                None if exits is None else json.dumps([[e.node, e.rank, e.code, e.log] for e in exits]),
                key,
            )
            if status != before:
                self.record("job", key, status, detail)
            return True

    def request_cancel(self, key: str) -> bool:
        """Asks for the end of an active job (status ``CancelRequested``); False when it has ended already.

        Who runs it (the runner, or the scheduler when there is no runner yet) takes it to ``Canceled``.
        """
        with self._db.transaction():
            moved = self.move(key, "CancelRequested")
            if moved:
                self._db.execute("UPDATE jobs SET cancel_requested = 1 WHERE id = ?", key)
            return moved

    def set_runner(self, key: str, pid: int | None, started: int | None) -> None:
        """Records the runner process (pid and start time in ticks), or that there is none."""
        self._db.execute("UPDATE jobs SET runner_pid = ?, runner_started = ? WHERE id = ?", pid, started, key)

    def set_nodes(self, key: str, nodes: Iterable[int]) -> None:
        """Records the nodes that a job was given, in rank order; see also `Nodes.assign`."""
        self._db.execute("UPDATE jobs SET nodes = ? WHERE id = ?", json.dumps(list(nodes)), key)

    def set_body(self, key: str, body: dict[str, Any]) -> None:
        """Replaces the body (metadata edits: tags, description, display name, archived)."""
        self._db.execute("UPDATE jobs SET body = ? WHERE id = ?", json.dumps(body), key)

    def delete(self, key: str) -> bool:
        """Removes the record with its place in a family, its scale and its metrics; its history stays."""
        with self._db.transaction():
            for table in ("family", "scales", "sites", "metrics"):
                self._db.execute(f"DELETE FROM {table} WHERE job = ?", key)  # noqa: S608 - our words
            return self._db.execute("DELETE FROM jobs WHERE id = ?", key) > 0


_ACTIVE_COLUMNS = """
SELECT id, status, json_extract(body, '$.properties.jobType') AS type,
  nullif(lower(json_extract(body, '$.properties.computeId')), '') AS cluster, nodes <> '[]' AS placed,
  cancel_requested, runner_pid, runner_started, (SELECT profile FROM sites WHERE sites.job = jobs.id) AS site
FROM jobs"""
_LOOK = f"{_ACTIVE_COLUMNS} WHERE id = ?"
_ACTIVE = f"""{_ACTIVE_COLUMNS} WHERE status IN ({", ".join("?" * len(STATUSES - TERMINAL))}) {{}} ORDER BY created, id
"""
_NOT_WAITING = "AND NOT (status = 'Queued' AND nodes = '[]' AND runner_pid IS NULL AND NOT cancel_requested)"
_CHUNK = 256
_LISTED = """
SELECT jobs.id, json_extract(body, '$.properties.jobType', '$.properties.isArchived', '$.properties.tags',
  '$.properties.properties') AS labels
FROM (
  SELECT id FROM jobs
  WHERE lower(workspace) = ? AND (? = '' OR (created, id) > (SELECT created, id FROM jobs WHERE id = ?))
  ORDER BY created, id LIMIT ?
) AS some JOIN jobs ON jobs.id = some.id ORDER BY jobs.created, jobs.id
"""


def write_report(place: Path, job: JobRow, **rest: Any) -> None:
    """Writes the report of a job that has ended whole or not at all.

    Args:
        place: The job's folder.
        job: Its row after the end.
        rest: Further entries.
    """
    report = {
        "job": job.name,
        "workspace": job.workspace,
        "status": job.status,
        "error": None if job.error is None else {"code": job.error.code, "message": job.error.message},
        "created": job.created,
        "started": job.started,
        "ended": job.ended,
        **rest,
    }
    write_whole(place / "report.json", json.dumps(report, indent=1) + "\n")
