"""Metrics that jobs logged, one row for each value."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amlstack.sandbox.store.database import Database


@dataclass(frozen=True, slots=True)
class Logged:
    """One value: the metric's name, the value (NaN where there is none), its step, seconds since the epoch."""

    name: str
    value: float
    step: int
    at: float


class MetricTable:
    """The metrics table; jobs are named by their table keys."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def log(self, job: str, name: str, value: float, step: int = 0, at: float | None = None) -> None:
        """Appends one value."""
        self._db.execute(
            "INSERT INTO metrics (job, name, value, step, at) VALUES (?, ?, ?, ?, ?)",
            *(job, name, None if math.isnan(value) else value, step, time.time() if at is None else at),
        )

    def of(self, job: str, name: str | None = None) -> tuple[Logged, ...]:
        """What a job logged, of one metric or of all, in order."""
        if name is None:
            rows = self._db.all("SELECT * FROM metrics WHERE job = ? ORDER BY seq", job)
        else:
            rows = self._db.all("SELECT * FROM metrics WHERE job = ? AND name = ? ORDER BY seq", job, name)
        return tuple(Logged(row["name"], _value(row["value"]), row["step"], row["at"]) for row in rows)

    def values(self, job: str, name: str) -> tuple[float, ...]:
        """The values of one metric that are numbers, in order."""
        return tuple(logged.value for logged in self.of(job, name) if not math.isnan(logged.value))

    def forget(self, job: str) -> None:
        """Removes what a job logged."""
        self._db.execute("DELETE FROM metrics WHERE job = ?", job)


def _value(stored: float | None) -> float:
    return math.nan if stored is None else stored
