"""The sandbox's memory: tables of one SQLite file under ``<home>/sandbox/state.db``, blobs as files beside it.

The server, its scheduler, every runner process and ``amlstack sandbox status`` open the same file; each call is one
transaction, `Store.transaction` joins several. Nothing is cached, so rows are never stale.

Who writes what: the server makes and edits resources and jobs, asks for cancels and takes metrics; the scheduler owns
nodes and the statuses up to the start of a runner, and sweeps and pipelines with the making of their children; the
runner owns the statuses from ``Preparing`` to the end, and the exits.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.store.blobs import BlobTable
from amlstack.sandbox.store.database import Database, reading
from amlstack.sandbox.store.folders import folder, job_folder
from amlstack.sandbox.store.jobs import TERMINAL, Exit, JobError, JobRow, JobTable
from amlstack.sandbox.store.tables import (
    FamilyTable,
    HistoryTable,
    MetricTable,
    NodeTable,
    OperationTable,
    ResourceRow,
    ResourceTable,
    ScaledCluster,
    ScaleTable,
)

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

__all__ = [
    "TERMINAL",
    "Exit",
    "JobError",
    "JobRow",
    "ResourceRow",
    "Store",
    "cluster_of",
    "folder",
    "job_folder",
]

COMPUTE = "Microsoft.MachineLearningServices/workspaces/computes"
"""The type of a cluster's resource row."""

HELD = "jobs-held"
"""The key in the table of settings that is there while jobs are held in the queue."""

QUOTA = "quota"
"""The key in the table of settings that holds what was set of the quota of regions, as JSON."""


UNREGISTERED = "unregistered"
"""The key in the table of settings that holds the resource providers which are not registered, as JSON."""


class Store:
    """All tables of one sandbox.

    Args:
        home: `amlstack.base.paths.home`, or a test's own folder.

    Attributes:
        jobs: Job records; see `JobTable`.
        family: Which job is a child of which; see `FamilyTable`.
        scales: Jobs that are rehearsed smaller than they declare; see `ScaleTable`.
        metrics: What jobs logged; see `MetricTable`.
        nodes: Nodes of the clusters; see `NodeTable`.
        resources: ARM resources, the clusters among them; see `ResourceTable`.
        blobs: BlobTable and their files; see `BlobTable`.
        operations: Provisioning and deletions under way; see `OperationTable`.
        history: Transitions with their times; see `HistoryTable`.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.database = Database(folder(home) / "state.db")
        self.history = HistoryTable(self.database)
        self.jobs = JobTable(self.database)
        self.family = FamilyTable(self.database)
        self.scales = ScaleTable(self.database)
        self.metrics = MetricTable(self.database)
        self.nodes = NodeTable(self.database)
        self.blobs = BlobTable(self.database, folder(home) / "blobs")
        self.operations = OperationTable(self.database)
        self.resources = ResourceTable(self.database)

    def transaction(self) -> AbstractContextManager[None]:
        """Joins several calls into one transaction, across processes too."""
        return self.database.transaction()

    def children(self, job: str) -> dict[str, JobRow]:
        """The children of a job (its table key) by place, in the order in which they were made."""
        rows = {place: self.jobs.get(key) for place, key in self.family.children(job).items()}
        return {place: row for place, row in rows.items() if row is not None}

    def clusters(self) -> tuple[ResourceRow, ...]:
        """The compute resources; scale settings under ``body["properties"]["properties"]["scaleSettings"]``."""
        return self.resources.of_type(COMPUTE)

    def scaled_clusters(self) -> tuple[ScaledCluster, ...]:
        """The part of all clusters that scaling looks at, many times a second; their bodies are left unread."""
        return self.resources.scaled(COMPUTE)

    def holds_jobs(self) -> bool:
        """True where jobs stay queued until somebody lets them start."""
        return self.database.one("SELECT 1 FROM meta WHERE key = ?", HELD) is not None

    def hold_jobs(self, *, hold: bool) -> None:
        """Keeps jobs that have not started queued from now on, or lets them start."""
        if hold:
            self.database.execute("INSERT OR IGNORE INTO meta VALUES (?, ?)", HELD, "yes")
        else:
            self.database.execute("DELETE FROM meta WHERE key = ?", HELD)

    def quota(self) -> dict[str, Any]:
        """The settings of the quota of regions, as ``amlstack.sandbox.kinds.machine_learning.capacity`` reads it."""
        return dict(self._setting(QUOTA) or {})

    def set_quota(self, quota: dict[str, Any]) -> None:
        """Puts other settings in the place of these."""
        self._set(QUOTA, quota)

    def unregistered(self) -> frozenset[str]:
        """The resource providers that are not registered: ``subscription/namespace``, in small letters."""
        return frozenset(self._setting(UNREGISTERED) or ())

    def register(self, provider: str, *, registered: bool) -> None:
        """Notes whether a resource provider, ``subscription/namespace``, is registered."""
        kept = self.unregistered() - {provider} if registered else self.unregistered() | {provider}
        self._set(UNREGISTERED, sorted(kept))

    def _setting(self, key: str) -> Any:
        row = self.database.one("SELECT value FROM meta WHERE key = ?", key)
        with reading(self.database.path):
            return None if row is None else json.loads(row["value"])

    def _set(self, key: str, value: Any) -> None:
        self.database.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", key, json.dumps(value))

    def close(self) -> None:
        """Closes this process's connection."""
        self.database.close()


def cluster_of(job: JobRow) -> str | None:
    """The lower-cased ARM id of the compute that a job asked for; None for a serverless job."""
    compute = job.properties.get("computeId")
    return str(compute).lower() if compute else None
