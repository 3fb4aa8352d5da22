"""A parent and its children as they stand in the store, and what a parent may do to them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amlstack.sandbox.store.jobs import write_report
from amlstack.sandbox.store.store import JobError, JobRow, Store, job_folder

LOG = "runner.log"
"""The file of the parent's folder that holds each decision about its children, one per line."""

FOLDERS = "children"
"""In the parent's folder: a link to each child's, by its place."""

PARENTS = frozenset({"Sweep", "Pipeline"})
"""The types of jobs that have children."""


@dataclass(slots=True)
class Parent:
    """One parent at a moment.

    Attributes:
        store: The sandbox's tables.
        job: The parent's row.
        children: Its children's rows by place, in the order in which they were made.
        moved: Something was changed: others, the children above all, have to be looked at again.
    """

    store: Store
    job: JobRow
    children: dict[str, JobRow]
    moved: bool = False

    @property
    def active(self) -> dict[str, JobRow]:
        """The children that have not ended."""
        return {place: row for place, row in self.children.items() if row.active}

    def make(self, place: str, name: str, properties: Mapping[str, Any]) -> None:
        """Makes a child; from now on it is a job like any other."""
        with self.store.transaction():
            row = self.store.jobs.add(self.job.workspace, name, {"properties": dict(properties)})
            self.store.family.add(row.id, self.job.id, place)
            if (scale := self.store.scales.of(self.job.id)) is not None:
                self.store.scales.put(row.id, scale)
            if (site := self.store.sites.of(self.job.id)) is not None:
                self.store.sites.put(row.id, site)
            self.store.jobs.move(self.job.id, "Running", expect=("NotStarted", "Preparing"))
        folder, link = job_folder(self.store.home, row.id), self.folder / FOLDERS / place
        for made in (folder, link.parent):
            made.mkdir(parents=True, exist_ok=True)
        if not link.is_symlink():
            link.symlink_to(folder)
        self.children[place] = row
        self.moved = True

    def cancel(self, place: str) -> None:
        """Asks for a child's end, once."""
        row = self.children[place]
        if row.active and not row.cancel_requested and self.store.jobs.request_cancel(row.id):
            self.moved = True

    def give_up(self, status: str, error: JobError | None = None) -> None:
        """Ends the parent where all children have ended; asks for the end of those that have not."""
        for place in self.active:
            self.cancel(place)
        if not self.active:
            self.end(status, error)

    def end(self, status: str, error: JobError | None = None) -> None:
        """Ends the parent, with a report beside its children's folders."""
        if not self.store.jobs.move(self.job.id, status, error=error):
            return
        self.moved = True
        self.folder.mkdir(parents=True, exist_ok=True)
        children = [
            {
                "place": place,
                "job": child.name,
                "key": child.id,
                "status": child.status,
                "error": None if child.error is None else child.error.message,
            }
            for place, child in self.children.items()
        ]
        write_report(self.folder, self.store.jobs[self.job.id], children=children)

    def label(self, **properties: str) -> None:
        """Writes into the record's ``properties``, where the service keeps what it finds out."""
        with self.store.transaction():
            row = self.store.jobs[self.job.id]
            before = row.properties.get("properties") or {}
            if any(before.get(name) != value for name, value in properties.items()):
                body = {**row.body, "properties": {**row.properties, "properties": {**before, **properties}}}
                self.store.jobs.set_body(row.id, body)

    def note(self, line: str) -> None:
        """One line of the parent's log."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / LOG).open("a") as log:
            log.write(f"{time.strftime('%H:%M:%S')} {line}\n")

    @property
    def folder(self) -> Path:
        """The parent's folder."""
        return job_folder(self.store.home, self.job.id)
