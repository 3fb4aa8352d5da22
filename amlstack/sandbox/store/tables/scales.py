"""Jobs that are rehearsed smaller than they declare, each with its scale; most jobs have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.sandbox.scale import RehearsalScale

if TYPE_CHECKING:
    from amlstack.sandbox.store.database import Database


class ScaleTable:
    """The scales table; jobs are named by their table keys. A table of its own, since no body may hold a scale."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def put(self, job: str, scale: RehearsalScale) -> None:
        """Records the scale of a new job."""
        self._db.execute("INSERT OR REPLACE INTO scales (job, scale) VALUES (?, ?)", job, str(scale))

    def of(self, job: str) -> RehearsalScale | None:
        """A job's scale; None for one that is started as it declares."""
        row = self._db.one("SELECT scale FROM scales WHERE job = ?", job)
        return None if row is None else RehearsalScale.read(row["scale"])

    def forget(self, job: str) -> None:
        """Removes the scale of a job that is deleted."""
        self._db.execute("DELETE FROM scales WHERE job = ?", job)
