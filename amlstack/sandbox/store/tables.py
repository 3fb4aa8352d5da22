"""History: every transition of a job, a node or a resource, in order.

ARM resources as documents: one row each, keyed by the lower-cased id (ARM ids ignore letter case).

Long-running operations: they advance by polls and ticks, never by sleeping.

The nodes of the clusters: those that exist now. A cluster scaled to zero has no rows.

Children of jobs: the steps of a pipeline, the trials of a sweep.

Jobs that are rehearsed smaller than they declare, each with its scale; most jobs have none.

Metrics that jobs logged, one row for each value.
"""

from __future__ import annotations

import json
import math
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from amlstack.sandbox.scale import RehearsalScale
from amlstack.sandbox.store.database import Database, reading

if TYPE_CHECKING:
    import sqlite3


Kind = Literal["job", "node", "resource"]


@dataclass(frozen=True, slots=True)
class Transition:
    """One step: ``subject`` reached ``state`` at ``at`` (seconds since the epoch)."""

    kind: Kind
    subject: str
    state: str
    at: float
    detail: str


class StoreTable:
    """A table of the database, whose changes go into the history."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def record(self, kind: Kind, subject: str, state: str, detail: str = "") -> None:
        """Appends one transition, stamped now. A node's subject is ``<cluster id>#<number>``."""
        self._db.execute(
            "INSERT INTO history (kind, subject, state, at, detail) VALUES (?, ?, ?, ?, ?)",
            *(kind, subject, state, time.time(), detail),
        )


class HistoryTable(StoreTable):
    """Transitions with timestamps, kept after their subject is deleted."""

    def of(self, kind: Kind, subject: str) -> tuple[Transition, ...]:
        """All transitions of one subject, oldest first."""
        query = "SELECT kind, subject, state, at, detail FROM history WHERE kind = ? AND subject = ? ORDER BY seq"
        return tuple(Transition(**dict(row)) for row in self._db.all(query, kind, subject))


@dataclass(frozen=True, slots=True)
class ResourceRow:
    """One resource.

    Attributes:
        key: The id, lower-cased.
        id: The id in the letters of its first PUT.
        parent: Key of the resource above: the workspace of a compute, the resource group of a workspace.
        type: ``Microsoft.X/kind/sub``.
        name: The last name of the id.
        body: What was PUT, with what the service adds on creation; not the envelope (id, name, type).
        state: ``Creating``, ``Updating``, ``Deleting``, ``Succeeded`` or ``Failed``.
        etag: New with every change.
        created, changed: Seconds since the epoch.
    """

    key: str
    id: str
    parent: str
    type: str
    name: str
    body: dict[str, Any]
    state: str
    etag: str
    created: float
    changed: float


@dataclass(frozen=True, slots=True)
class ScaledCluster:
    """A compute: its key, its provisioning state, and ``scaleSettings`` of its body."""

    key: str
    state: str
    settings: dict[str, Any]


class ResourceTable(StoreTable):
    """The resources table; ids are taken in any letter case."""

    def __getitem__(self, resource_id: str) -> ResourceRow:
        """The resource of this id; KeyError when there is none."""
        found = self.get(resource_id)
        if found is None:
            raise KeyError(resource_id)
        return found

    def get(self, resource_id: str, kind: str | None = None) -> ResourceRow | None:
        """The resource of this id; of one type."""
        row = self._db.one("SELECT * FROM resources WHERE key = ?", resource_id.lower())
        found = _row(row, self._db.path) if row else None
        return found if found is None or kind is None or found.type.lower() == kind.lower() else None

    def has(self, resource_id: str) -> bool:
        """True where there is a resource of this id."""
        return self._db.one("SELECT 1 FROM resources WHERE key = ?", resource_id.lower()) is not None

    def scaled(self, kind: str) -> tuple[ScaledCluster, ...]:
        """The computes of a type, by time of creation."""
        rows = self._db.all(_SCALED, kind.lower())
        return tuple(ScaledCluster(row["key"], row["state"], json.loads(row["settings"] or "{}")) for row in rows)

    def put(
        self, resource_id: str, kind: str, parent: str, body: dict[str, Any], state: str = "Succeeded"
    ) -> ResourceRow:
        """Makes or replaces a resource; letters and time of creation stay those of the first PUT."""
        now = time.time()
        key = resource_id.lower()
        with self._db.transaction():
            before = self.get(key)
            self._db.execute(
                "INSERT INTO resources VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
                "body = excluded.body, state = excluded.state, etag = excluded.etag, changed = excluded.changed",
                *(key, resource_id, parent.lower(), kind, resource_id.rsplit("/", 1)[-1], json.dumps(body), state),
                *(uuid.uuid4().hex, now, now),
            )
            if before is None or before.state != state:
                self.record("resource", key, state)
            return self[key]

    def set_state(self, resource_id: str, state: str) -> bool:
        """Takes a resource to a provisioning state; whether it changed."""
        key = resource_id.lower()
        with self._db.transaction():
            moved = self._db.execute("UPDATE resources SET state = ? WHERE key = ? AND state <> ?", state, key, state)
            if moved:
                self.record("resource", key, state)
            return moved > 0

    def under(self, parent: str, kind: str | None = None) -> tuple[ResourceRow, ...]:
        """The direct children of a resource, by time of creation; of one type."""
        rows = self._db.all("SELECT * FROM resources WHERE parent = ? ORDER BY created, key", parent.lower())
        return tuple(row for row in self._rows(rows) if kind is None or row.type.lower() == kind.lower())

    def below(self, resource_id: str) -> tuple[ResourceRow, ...]:
        """Everything below a resource at any depth, deepest first."""
        prefix = resource_id.lower() + "/"
        rows = self._db.all("SELECT * FROM resources WHERE substr(key, 1, ?) = ?", len(prefix), prefix)
        return tuple(sorted(self._rows(rows), key=lambda row: -row.key.count("/")))

    def of_type(self, kind: str, name: str = "") -> tuple[ResourceRow, ...]:
        """All resources of one type, e.g. ``Microsoft.MachineLearningServices/workspaces/computes``, or of one name."""
        end = f"/{name.lower()}" if name else ""
        rows = self._db.all(
            "SELECT * FROM resources WHERE lower(type) = ? AND (? = '' OR substr(key, -length(?)) = ?) "
            "ORDER BY created, key",
            *(kind.lower(), end, end, end),
        )
        return tuple(self._rows(rows))

    def all(self) -> tuple[ResourceRow, ...]:
        """All resources, by time of creation."""
        return tuple(self._rows(self._db.all("SELECT * FROM resources ORDER BY created, key")))

    def delete(self, resource_id: str) -> bool:
        """Removes one row; whether it was there."""
        key = resource_id.lower()
        with self._db.transaction():
            gone = self._db.execute("DELETE FROM resources WHERE key = ?", key) > 0
            if gone:
                self.record("resource", key, "Deleted")
            return gone

    def _rows(self, rows: Iterable[sqlite3.Row]) -> Iterator[ResourceRow]:
        return (_row(row, self._db.path) for row in rows)


_SCALED = """
SELECT key, state, json_extract(body, '$.properties.properties.scaleSettings') AS settings
FROM resources WHERE lower(type) = ? ORDER BY created, key
"""


def _row(row: sqlite3.Row, database: Path) -> ResourceRow:
    values = dict(row)
    with reading(database):
        values["body"] = json.loads(values["body"])
    return ResourceRow(**values)


OperationKind = Literal["create", "update", "delete", "provision", "diagnose", "cancel"]


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on a resource (its key): ``InProgress`` with ticks left, then ``Succeeded`` or ``Failed``."""

    id: str
    resource: str
    kind: OperationKind
    status: str
    ticks: int
    started: float
    error: str | None


class OperationTable(StoreTable):
    """The operations table."""

    def start(self, resource: str, kind: OperationKind, ticks: int) -> Operation:
        """Begins an operation; one of the same kind that is under way already is returned instead."""
        key = resource.lower()
        with self._db.transaction():
            for running in self.running(key):
                if running.kind == kind:
                    return running
            operation = Operation(uuid.uuid4().hex, key, kind, "InProgress", ticks, time.time(), None)
            self._db.execute(
                "INSERT INTO operations VALUES (?, ?, ?, ?, ?, ?, ?)",
                *(operation.id, key, kind, operation.status, ticks, operation.started, None),
            )
            return operation

    def get(self, operation: str) -> Operation | None:
        """The operation of this id."""
        row = self._db.one("SELECT * FROM operations WHERE id = ?", operation)
        return Operation(**dict(row)) if row else None

    def running(self, resource: str | None = None) -> tuple[Operation, ...]:
        """Operations under way; of one resource."""
        which, values = ("", ()) if resource is None else (" AND resource = ?", (resource.lower(),))
        rows = self._db.all(f"SELECT * FROM operations WHERE status = 'InProgress'{which} ORDER BY started", *values)  # noqa: S608 - our words
        return tuple(Operation(**dict(row)) for row in rows)

    def tick(self, operation: str) -> int:
        """One step nearer to the end; the ticks that are left."""
        with self._db.transaction():
            self._db.execute("UPDATE operations SET ticks = max(ticks - 1, 0) WHERE id = ?", operation)
            found = self.get(operation)
            return found.ticks if found else 0

    def finish(self, operation: str) -> None:
        """Marks it as ``Succeeded``, unless it has failed."""
        sql = "UPDATE operations SET status = 'Succeeded', ticks = 0 WHERE id = ? AND status = 'InProgress'"
        self._db.execute(sql, operation)

    def fail(self, operation: str, error: str) -> None:
        """Marks it as ``Failed``, with ``CODE: message``."""
        self._db.execute("UPDATE operations SET status = 'Failed', ticks = 0, error = ? WHERE id = ?", error, operation)


State = Literal["provisioning", "idle", "busy"]


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One node: number from 0 within its cluster (lower-cased ARM id of the compute), and the job it is held by."""

    cluster: str
    number: int
    state: State
    job: str | None
    since: float


class NodeTable(StoreTable):
    """The nodes table; clusters are named by their ARM id in any letter case."""

    def of(self, cluster: str) -> tuple[NodeRow, ...]:
        """The nodes of one cluster, by number."""
        return self._nodes("WHERE cluster = ?", cluster.lower())

    def all(self) -> tuple[NodeRow, ...]:
        """All nodes of all clusters."""
        return self._nodes("")

    def held_by(self, job: str) -> tuple[NodeRow, ...]:
        """The nodes that a job (table key) holds, by number."""
        return self._nodes("WHERE job = ?", job)

    def _nodes(self, where: str, *values: str) -> tuple[NodeRow, ...]:
        rows = self._db.all(f"SELECT * FROM nodes {where} ORDER BY cluster, number", *values)  # noqa: S608 - our words
        return tuple(NodeRow(**dict(row)) for row in rows)

    def put(
        self, cluster: str, number: int, state: State, job: str | None = None, *, since: float | None = None
    ) -> None:
        """Makes a node or takes it to a state, now or since a moment; it moves only when something changed."""
        key = cluster.lower()
        with self._db.transaction():
            row = self._db.one("SELECT state, job FROM nodes WHERE cluster = ? AND number = ?", key, number)
            if row is not None and (row["state"], row["job"]) == (state, job):
                return
            self._db.execute(
                "INSERT INTO nodes (cluster, number, state, job, since) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (cluster, number) DO UPDATE SET state = excluded.state, job = excluded.job, "
                "since = excluded.since",
                *(key, number, state, job, time.time() if since is None else since),
            )
            self.record("node", f"{key}#{number}", state, job or "")

    def release(self, job: str) -> int:
        """Makes a job's nodes idle again, all since one moment; how many there were. May be repeated."""
        now = time.time()
        with self._db.transaction():
            held = self.held_by(job)
            for node in held:
                self.put(node.cluster, node.number, "idle", since=now)
            return len(held)

    def drop(self, cluster: str, number: int | None = None) -> int:
        """Removes one node, or all of a cluster; how many there were."""
        key = cluster.lower()
        with self._db.transaction():
            gone = [node for node in self.of(key) if number is None or node.number == number]
            for node in gone:
                self._db.execute("DELETE FROM nodes WHERE cluster = ? AND number = ?", key, node.number)
                self.record("node", f"{key}#{node.number}", "gone")
            return len(gone)


class FamilyTable(StoreTable):
    """The family table; jobs are named by their table keys.

    A child's place is what tells it from its siblings: a step's name, a trial's number.
    """

    def add(self, job: str, parent: str, place: str) -> None:
        """Makes a job a child; a place is taken once (sqlite3.IntegrityError)."""
        self._db.execute("INSERT INTO family (job, parent, place) VALUES (?, ?, ?)", job, parent, place)

    def children(self, parent: str) -> dict[str, str]:
        """Keys of a parent's children by place, in the order in which they were made."""
        rows = self._db.all("SELECT job, place FROM family WHERE parent = ? ORDER BY rowid", parent)
        return {row["place"]: row["job"] for row in rows}

    def above(self, job: str) -> tuple[str, ...]:
        """Keys of a job's parent, its parent's parent and so on; empty for a job without a parent."""
        found: list[str] = []
        row = self._db.one("SELECT parent FROM family WHERE job = ?", job)
        while row is not None:
            found.append(row["parent"])
            row = self._db.one("SELECT parent FROM family WHERE job = ?", row["parent"])
        return tuple(found)

    def place(self, job: str) -> str | None:
        """A child's place; None for a job that is no child."""
        row = self._db.one("SELECT place FROM family WHERE job = ?", job)
        return None if row is None else str(row["place"])

    def members(self) -> frozenset[str]:
        """Keys of all jobs that are children."""
        return frozenset(row["job"] for row in self._db.all("SELECT job FROM family"))


class ScaleTable(StoreTable):
    """The scales table; jobs are named by their table keys. A table of its own, since no body may hold a scale."""

    def put(self, job: str, scale: RehearsalScale) -> None:
        """Records the scale of a new job."""
        self._db.execute("INSERT OR REPLACE INTO scales (job, scale) VALUES (?, ?)", job, str(scale))

    def of(self, job: str) -> RehearsalScale | None:
        """A job's scale; None for one that is started as it declares."""
        row = self._db.one("SELECT scale FROM scales WHERE job = ?", job)
        return None if row is None else RehearsalScale.read(row["scale"])


class SiteTable(StoreTable):
    """The sites table: jobs whose nodes come from Slurm, each with its profile as text; no body may hold it."""

    def put(self, job: str, profile: str) -> None:
        """Records where a new job's nodes come from."""
        self._db.execute("INSERT OR REPLACE INTO sites (job, profile) VALUES (?, ?)", job, profile)

    def of(self, job: str) -> str | None:
        """A job's profile; None for one that runs on this machine."""
        row = self._db.one("SELECT profile FROM sites WHERE job = ?", job)
        return None if row is None else str(row["profile"])

    def ended(self) -> tuple[str, ...]:
        """Those of the jobs that have ended."""
        rows = self._db.all("SELECT job FROM sites JOIN jobs ON jobs.id = sites.job WHERE jobs.ended IS NOT NULL")
        return tuple(row["job"] for row in rows)

    def any(self) -> bool:
        """True where there is one."""
        return self._db.one("SELECT 1 FROM sites LIMIT 1") is not None


@dataclass(frozen=True, slots=True)
class Logged:
    """One value: the metric's name, the value (NaN where there is none), its step, seconds since the epoch."""

    name: str
    value: float
    step: int
    at: float


class MetricTable(StoreTable):
    """The metrics table; jobs are named by their table keys."""

    def log(self, job: str, name: str, value: float, step: int = 0, at: float | None = None) -> None:
        """Appends one value."""
        self._db.execute(
            "INSERT INTO metrics (job, name, value, step, at) VALUES (?, ?, ?, ?, ?)",
            *(job, name, None if math.isnan(value) else value, step, time.time() if at is None else at),
        )

    def of(self, job: str, name: str | None = None) -> tuple[Logged, ...]:
        """The values that a job logged, of one metric or of all, in order."""
        rows = self._db.all("SELECT * FROM metrics WHERE job = ? AND name = ifnull(?, name) ORDER BY seq", job, name)
        return tuple(
            Logged(row["name"], math.nan if row["value"] is None else row["value"], row["step"], row["at"])
            for row in rows
        )

    def values(self, job: str, name: str) -> tuple[float, ...]:
        """The values of one metric that are numbers, in order."""
        return tuple(logged.value for logged in self.of(job, name) if not math.isnan(logged.value))

    def forget(self, job: str) -> None:
        """Removes what a job logged."""
        self._db.execute("DELETE FROM metrics WHERE job = ?", job)
