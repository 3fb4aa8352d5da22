"""History: every transition of a job, a node or a resource, in order."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from amlstack.sandbox.store.database import Database

Kind = Literal["job", "node", "resource"]


@dataclass(frozen=True, slots=True)
class Transition:
    """One step: ``subject`` reached ``state`` at ``at`` (seconds since the epoch)."""

    kind: Kind
    subject: str
    state: str
    at: float
    detail: str


class HistoryTable:
    """Transitions with timestamps, kept after their subject is deleted."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, kind: Kind, subject: str, state: str, detail: str = "") -> None:
        """Appends one transition, stamped now. A node's subject is ``<cluster id>#<number>``."""
        self._db.execute(
            "INSERT INTO history (kind, subject, state, at, detail) VALUES (?, ?, ?, ?, ?)",
            *(kind, subject, state, time.time(), detail),
        )

    def of(self, kind: Kind, subject: str) -> tuple[Transition, ...]:
        """All transitions of one subject, oldest first."""
        rows = self._db.all("SELECT * FROM history WHERE kind = ? AND subject = ? ORDER BY seq", kind, subject)
        return tuple(Transition(row["kind"], row["subject"], row["state"], row["at"], row["detail"]) for row in rows)
