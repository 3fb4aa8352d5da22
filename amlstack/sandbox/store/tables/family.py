"""Children of jobs: the steps of a pipeline, the trials of a sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amlstack.sandbox.store.database import Database


class FamilyTable:
    """The family table; jobs are named by their table keys.

    A child's place is what tells it from its siblings: a step's name, a trial's number.
    """

    def __init__(self, database: Database) -> None:
        self._db = database

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

    def forget(self, job: str) -> None:
        """Removes a job from its family."""
        self._db.execute("DELETE FROM family WHERE job = ?", job)
