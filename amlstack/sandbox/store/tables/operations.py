"""Long-running operations: they advance by polls and ticks, never by sleeping."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import sqlite3

    from amlstack.sandbox.store.database import Database

OperationKind = Literal["create", "delete", "provision"]


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


class OperationTable:
    """The operations table."""

    def __init__(self, database: Database) -> None:
        self._db = database

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
        return _row(row) if row else None

    def running(self, resource: str | None = None) -> tuple[Operation, ...]:
        """Operations under way; of one resource."""
        rows = map(_row, self._db.all("SELECT * FROM operations WHERE status = 'InProgress' ORDER BY started"))
        return tuple(row for row in rows if resource is None or row.resource == resource.lower())

    def tick(self, operation: str) -> int:
        """One step nearer to the end; the ticks that are left."""
        with self._db.transaction():
            self._db.execute("UPDATE operations SET ticks = max(ticks - 1, 0) WHERE id = ?", operation)
            found = self.get(operation)
            return found.ticks if found else 0

    def finish(self, operation: str) -> None:
        """Marks it as ``Succeeded``."""
        self._db.execute("UPDATE operations SET status = 'Succeeded', ticks = 0 WHERE id = ?", operation)

    def fail(self, operation: str, error: str) -> None:
        """Marks it as ``Failed``, with ``CODE: message``."""
        self._db.execute("UPDATE operations SET status = 'Failed', ticks = 0, error = ? WHERE id = ?", error, operation)


def _row(row: sqlite3.Row) -> Operation:
    return Operation(**dict(row))
