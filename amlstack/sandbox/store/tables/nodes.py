"""The nodes of the clusters: those that exist now. A cluster scaled to zero has no rows."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from amlstack.sandbox.store.database import Database
    from amlstack.sandbox.store.tables.history import HistoryTable

State = Literal["provisioning", "idle", "busy"]


@dataclass(frozen=True, slots=True)
class NodeRow:
    """One node: number from 0 within its cluster (lower-cased ARM id of the compute), and the job it is held by."""

    cluster: str
    number: int
    state: State
    job: str | None
    since: float


class NodeTable:
    """The nodes table; clusters are named by their ARM id in any letter case."""

    def __init__(self, database: Database, history: HistoryTable) -> None:
        self._db = database
        self._history = history

    def of(self, cluster: str) -> tuple[NodeRow, ...]:
        """The nodes of one cluster, by number."""
        return tuple(
            NodeRow(**dict(row))
            for row in self._db.all("SELECT * FROM nodes WHERE cluster = ? ORDER BY number", cluster.lower())
        )

    def all(self) -> tuple[NodeRow, ...]:
        """All nodes of all clusters."""
        return tuple(NodeRow(**dict(row)) for row in self._db.all("SELECT * FROM nodes ORDER BY cluster, number"))

    def held_by(self, job: str) -> tuple[NodeRow, ...]:
        """The nodes that a job (table key) holds, by number."""
        return tuple(
            NodeRow(**dict(row)) for row in self._db.all("SELECT * FROM nodes WHERE job = ? ORDER BY number", job)
        )

    def put(self, cluster: str, number: int, state: State, job: str | None = None) -> None:
        """Makes a node or takes it to a state; ``since`` moves only when something changed."""
        key = cluster.lower()
        with self._db.transaction():
            row = self._db.one("SELECT state, job FROM nodes WHERE cluster = ? AND number = ?", key, number)
            if row is not None and (row["state"], row["job"]) == (state, job):
                return
            self._db.execute(
                "INSERT INTO nodes (cluster, number, state, job, since) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (cluster, number) DO UPDATE SET state = excluded.state, job = excluded.job, "
                "since = excluded.since",
                *(key, number, state, job, time.time()),
            )
            self._history.add("node", f"{key}#{number}", state, job or "")

    def release(self, job: str) -> int:
        """Makes a job's nodes idle again; how many there were. May be repeated."""
        with self._db.transaction():
            held = self.held_by(job)
            for node in held:
                self.put(node.cluster, node.number, "idle")
            return len(held)

    def drop(self, cluster: str, number: int | None = None) -> int:
        """Removes one node, or all of a cluster; how many there were."""
        key = cluster.lower()
        with self._db.transaction():
            gone = [node for node in self.of(key) if number is None or node.number == number]
            for node in gone:
                self._db.execute("DELETE FROM nodes WHERE cluster = ? AND number = ?", key, node.number)
                self._history.add("node", f"{key}#{node.number}", "gone")
            return len(gone)
