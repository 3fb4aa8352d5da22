"""The sandbox's memory: tables of one SQLite file under ``<home>/sandbox/state.db``, blobs as files beside it.

The server, its scheduler, every runner process and ``amlstack sandbox status`` open the same file; each call is one
transaction, `Store.transaction` joins several. Nothing is cached, so rows are never stale.

Who writes what: the server makes and edits resources and jobs, asks for cancels and takes metrics; the scheduler owns
nodes and the statuses up to the start of a runner, and sweeps and pipelines with the making of their children; the
runner owns the statuses from ``Preparing`` to the end, and the exits.

The inventory finds jobs by the names that people give them, and tells what is lost when a sandbox is removed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from amlstack.base import text
from amlstack.sandbox.store.blobs import BlobTable
from amlstack.sandbox.store.database import Database, StateError, reading
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
    SiteTable,
)

__all__ = ["TERMINAL", "Exit", "JobError", "JobRow", "ResourceRow", "Store", "cluster_of", "folder", "job_folder"]

SHOWN = 5
"""Names in a line, before the rest is counted."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """The data of a sandbox that people would miss.

    Attributes:
        runs: Names of the runs that have ended, those of sweeps and pipelines without their children.
        active: Names of the runs that have not.
        folders: Folders below ``mounts`` in which jobs left files (checkpoints are kept there), by account and path.
        files, size: How many files these are, and their bytes.
        unreadable: Why the records could not be read; empty when they were.
    """

    runs: tuple[str, ...] = ()
    active: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    files: int = 0
    size: int = 0
    unreadable: str = ""

    def lines(self) -> Iterator[str]:
        """A line for each kind of thing, with its number and names; none when there is nothing to miss."""
        if self.active:
            yield f"{_counted(self.active, 'run')} under way, cancelled: {listed(self.active)}"
        if self.runs:
            yield f"{_counted(self.runs, 'run')} with record, logs and outputs: {listed(self.runs)}"
        if self.files:
            number = f"{self.files:,} file{'' if self.files == 1 else 's'}"
            size = f"{self.size / 1e6:,.1f} MB"
            yield f"{number} in mounted outputs, {size} (checkpoints lie there): {listed(self.folders)}"
        if self.unreadable:
            yield f"records that this version cannot count: {self.unreadable}"


def find_holdings(home: Path) -> Holdings:
    """The holdings of the sandbox of a home; none when there is none."""
    folders, files, size = set(), 0, 0
    mounts = folder(home) / "mounts"
    for at, _, names in os.walk(mounts):
        for name in names:
            with contextlib.suppress(OSError):  # gone meanwhile
                size += (Path(at) / name).lstat().st_size
                files += 1
                folders.add(os.path.relpath(at, mounts))
    try:
        runs, active = _runs(home)
    except (StateError, sqlite3.DatabaseError) as error:
        return Holdings(folders=tuple(sorted(folders)), files=files, size=size, unreadable=str(error))
    return Holdings(runs, active, tuple(sorted(folders)), files, size)


def _runs(home: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if not (folder(home) / "state.db").is_file():
        return (), ()

    with contextlib.closing(Store(home)) as store:
        children = store.family.members()
        rows = [row for row in store.jobs.list() if row.id not in children]
    return tuple(row.id for row in rows if not row.active), tuple(row.id for row in rows if row.active)


def _counted(names: Sequence[str], noun: str) -> str:
    return f"{len(names)} {noun}{'' if len(names) == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """The last few names, which are the latest; the rest as a number."""
    more = len(names) - SHOWN
    return ", ".join(names[-SHOWN:]) + (f" and {more} more" if more > 0 else "")


_NAME: Final = "amlstack.name"
"""The property by which a run of a stack names its job (`amlstack.run_identity`)."""
_RUN: Final = re.compile(r"(?P<job>.+)-(?:[0-9a-f]{10}|[0-9a-f]{6})")
"""A run's name: its job's, and ten hex digits of its identity, or six random ones of a rehearsal."""


class UnknownJobError(Exception):
    """No job has such a name, or several have; the message names what there is."""


def find_job(store: Store, wanted: str, jobs: Iterable[JobRow], *, what: str = "") -> JobRow:
    """The one of some jobs that a person means.

    Args:
        store: The sandbox's tables.
        wanted: See `matches`.
        jobs: Those to choose from.
        what: What they are, for the message: ``running``.

    Raises:
        UnknownJobError: None of them is meant, or several may be.
    """
    jobs = tuple(jobs)
    found = matching_jobs(store, wanted, jobs)
    if len(found) == 1:
        return found[0]
    if found:
        kind = f"{what} jobs" if what else "jobs"
        names = listed([job_path(store, job) for job in found])
        raise UnknownJobError(f"{wanted!r} names {len(found)} {kind}: {names}. Name one of them.")
    known = [job_path(store, job) for job in jobs]
    begun = [name for name in known if name.startswith(wanted)]
    hint = text.hint(wanted, dict.fromkeys((*known, *map(job_of, known))))
    hint = f" A whole name is needed; so begin: {listed(begun)}.{hint}" if begun else hint
    seen = f"No job {wanted!r} runs. Running" if what == "running" else f"There is no job {wanted!r}. There are"
    raise UnknownJobError(f"{seen}: {listed(known) or 'none'}.{hint}")


def matching_jobs(store: Store, wanted: str, jobs: Iterable[JobRow]) -> tuple[JobRow, ...]:
    """Those of some jobs that may be meant: the run of that very name, else the runs of the job of that very name.

    Args:
        store: The sandbox's tables.
        wanted: The run's name or ARM id, or its job's name, as in the job's file; of a step or trial the same of its
            parent, a slash, and the step's name or the trial's number.
        jobs: Those to choose from.
    """
    known = {job_path(store, job): job for job in jobs}
    found = [job for name, job in known.items() if wanted in (name, job.name, job.id, job.arm_id)]
    stem, slash, place = wanted.partition("/")

    def is_of(name: str) -> bool:
        run, inner, below = name.partition("/")
        row = store.jobs.get(run)
        return (inner, below) == (slash, place) and stem == job_of(run, {} if row is None else row.properties)

    return tuple(found) or tuple(job for name, job in known.items() if is_of(name))


def job_of(run: str, properties: Mapping[str, Any] | None = None) -> str:
    """The name of a run's job, as in the job's file; the run's own name where it does not tell.

    Args:
        run: The run's name.
        properties: The ARM ``properties`` of its record.
    """
    marked = ((properties or {}).get("properties") or {}).get(_NAME)
    made = _RUN.fullmatch(run)
    return str(marked) if marked else run if made is None else made["job"]


def job_path(store: Store, job: JobRow) -> str:
    """``<job>``, or for a child ``<parent>/<place>``: by what a person can name it."""
    above = store.family.above(job.id)
    places = [store.family.place(key) or key for key in (job.id, *above[:-1])]
    return "/".join([above[-1], *reversed(places)]) if above else job.id


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
        sites: Jobs whose nodes come from Slurm; see `SiteTable`.
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
        self.sites = SiteTable(self.database)
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
        """The settings of the quota of regions, as ``amlstack.sandbox.kinds.machine_learning.computes`` reads it."""
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
