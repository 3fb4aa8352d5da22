"""The sandbox's memory: tables of one SQLite file under ``<home>/sandbox/state.db``, blobs as files beside it.

The server, its scheduler, every runner process and ``amlstack sandbox status`` open the same file; each call is one
transaction, `Store.transaction` joins several. Nothing is cached, so nobody sees stale rows.

Who writes what: the server makes and edits resources and jobs, asks for cancels and takes metrics; the scheduler owns
nodes and the statuses up to the start of a runner, and sweeps and pipelines with the making of their children; the
runner owns the statuses from ``Preparing`` to the end, and the exits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.sandbox.store.database import Database
from amlstack.sandbox.store.places import folder, job_folder
from amlstack.sandbox.store.tables.blobs import Blob, Blobs, Container
from amlstack.sandbox.store.tables.family import Family
from amlstack.sandbox.store.tables.history import History, Transition
from amlstack.sandbox.store.tables.jobs import STATUSES, TERMINAL, Exit, JobError, JobRow, Jobs
from amlstack.sandbox.store.tables.metrics import Metrics
from amlstack.sandbox.store.tables.nodes import Node, Nodes
from amlstack.sandbox.store.tables.operations import Operations
from amlstack.sandbox.store.tables.resources import Resource, Resources

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

__all__ = [
    "STATUSES",
    "TERMINAL",
    "Blob",
    "Container",
    "Exit",
    "JobError",
    "JobRow",
    "Node",
    "Resource",
    "Store",
    "Transition",
    "cluster_of",
    "folder",
    "job_folder",
]

COMPUTE = "Microsoft.MachineLearningServices/workspaces/computes"
"""The type of a cluster's resource row."""


class Store:
    """All tables of one sandbox.

    Args:
        home: `amlstack.base.paths.home`, or a test's own folder.

    Attributes:
        jobs: Job records; see `Jobs`.
        family: Which job is a child of which; see `Family`.
        metrics: What jobs logged; see `Metrics`.
        nodes: Nodes of the clusters; see `Nodes`.
        resources: ARM resources, the clusters among them; see `Resources`.
        blobs: Blobs and their files; see `Blobs`, and `amlstack.sandbox.code.unpack` for registered code.
        operations: Provisioning and deletions under way; see `Operations`.
        history: Transitions with their times; see `History`.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.database = Database(folder(home) / "state.db")
        self.history = History(self.database)
        self.jobs = Jobs(self.database, self.history)
        self.family = Family(self.database)
        self.metrics = Metrics(self.database)
        self.nodes = Nodes(self.database, self.history)
        self.blobs = Blobs(self.database, folder(home) / "blobs")
        self.operations = Operations(self.database)
        self.resources = Resources(self.database, self.history)

    def transaction(self) -> AbstractContextManager[None]:
        """Joins several calls into one transaction, across processes too."""
        return self.database.transaction()

    def clusters(self) -> tuple[Resource, ...]:
        """The compute resources; scale settings under ``body["properties"]["properties"]["scaleSettings"]``."""
        return self.resources.of_type(COMPUTE)

    def close(self) -> None:
        """Closes this process's connection."""
        self.database.close()


def cluster_of(job: JobRow) -> str | None:
    """The lower-cased ARM id of the compute that a job asked for; None for a serverless job."""
    compute = job.properties.get("computeId")
    return str(compute).lower() if compute else None
