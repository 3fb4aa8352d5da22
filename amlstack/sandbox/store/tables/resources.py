"""ARM resources as documents: one row each, keyed by the lower-cased id (ARM ids ignore letter case)."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.store.database import reading

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from amlstack.sandbox.store.database import Database
    from amlstack.sandbox.store.tables.history import HistoryTable


@dataclass(frozen=True, slots=True)
class ResourceRow:
    """One resource.

    Attributes:
        key: The id, lower-cased.
        id: The id in the letters of its first PUT.
        parent: Key of the resource above: the workspace of a compute, the resource group of a workspace.
        type: ``Microsoft.X/kind/sub``.
        name: The last name of the id.
        body: What was PUT, with what the service adds on creation; not the envelope (id, name, type).
        state: ``Creating``, ``Updating``, ``Deleting``, ``Succeeded`` or ``Failed``.
        etag: New with every change.
        created, changed: Seconds since the epoch.
    """

    key: str
    id: str
    parent: str
    type: str
    name: str
    body: dict[str, Any]
    state: str
    etag: str
    created: float
    changed: float


@dataclass(frozen=True, slots=True)
class ScaledCluster:
    """A compute: its key, its provisioning state, and ``scaleSettings`` of its body."""

    key: str
    state: str
    settings: dict[str, Any]


class ResourceTable:
    """The resources table; ids are taken in any letter case."""

    def __init__(self, database: Database, history: HistoryTable) -> None:
        self._db = database
        self._history = history

    def get(self, resource_id: str) -> ResourceRow | None:
        """The resource of this id."""
        row = self._db.one("SELECT * FROM resources WHERE key = ?", resource_id.lower())
        return _row(row, self._db.path) if row else None

    def has(self, resource_id: str) -> bool:
        """Whether there is a resource of this id."""
        return self._db.one("SELECT 1 FROM resources WHERE key = ?", resource_id.lower()) is not None

    def scaled(self, kind: str) -> tuple[ScaledCluster, ...]:
        """The computes of a type, by time of creation."""
        rows = self._db.all(_SCALED, kind.lower())
        return tuple(ScaledCluster(row["key"], row["state"], json.loads(row["settings"] or "{}")) for row in rows)

    def put(
        self, resource_id: str, kind: str, parent: str, body: dict[str, Any], state: str = "Succeeded"
    ) -> ResourceRow:
        """Makes or replaces a resource; letters and time of creation stay those of the first PUT."""
        now = time.time()
        key = resource_id.lower()
        with self._db.transaction():
            before = self.get(key)
            self._db.execute(
                "INSERT INTO resources VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET "
                "body = excluded.body, state = excluded.state, etag = excluded.etag, changed = excluded.changed",
                *(
                    key,
                    resource_id,
                    parent.lower(),
                    kind,
                    resource_id.rsplit("/", 1)[-1],
                    json.dumps(body),
                    state,
                ),
                *(uuid.uuid4().hex, now, now),
            )
            if before is None or before.state != state:
                self._history.add("resource", key, state)
            found = self.get(key)
            if found is None:  # pragma: no cover - just written
                raise KeyError(key)
            return found

    def set_state(self, resource_id: str, state: str) -> bool:
        """Takes a resource to a provisioning state; whether it changed."""
        key = resource_id.lower()
        with self._db.transaction():
            moved = self._db.execute("UPDATE resources SET state = ? WHERE key = ? AND state <> ?", state, key, state)
            if moved:
                self._history.add("resource", key, state)
            return moved > 0

    def under(self, parent: str, kind: str | None = None) -> tuple[ResourceRow, ...]:
        """The direct children of a resource, by time of creation; of one type."""
        rows = self._db.all("SELECT * FROM resources WHERE parent = ? ORDER BY created, key", parent.lower())
        return tuple(row for row in self._rows(rows) if kind is None or row.type.lower() == kind.lower())

    def below(self, resource_id: str) -> tuple[ResourceRow, ...]:
        """Everything below a resource at any depth, deepest first."""
        prefix = resource_id.lower() + "/"
        rows = self._db.all("SELECT * FROM resources WHERE substr(key, 1, ?) = ?", len(prefix), prefix)
        return tuple(sorted(self._rows(rows), key=lambda row: -row.key.count("/")))

    def of_type(self, kind: str) -> tuple[ResourceRow, ...]:
        """All resources of one type, e.g. ``Microsoft.MachineLearningServices/workspaces/computes``."""
        rows = self._db.all("SELECT * FROM resources WHERE lower(type) = ? ORDER BY created, key", kind.lower())
        return tuple(self._rows(rows))

    def all(self) -> tuple[ResourceRow, ...]:
        """All resources, by time of creation."""
        return tuple(self._rows(self._db.all("SELECT * FROM resources ORDER BY created, key")))

    def delete(self, resource_id: str) -> bool:
        """Removes one row; whether it was there."""
        key = resource_id.lower()
        with self._db.transaction():
            gone = self._db.execute("DELETE FROM resources WHERE key = ?", key) > 0
            if gone:
                self._history.add("resource", key, "Deleted")
            return gone

    def _rows(self, rows: Iterable[sqlite3.Row]) -> Iterator[ResourceRow]:
        return (_row(row, self._db.path) for row in rows)


_SCALED = """
SELECT key, state, json_extract(body, '$.properties.properties.scaleSettings') AS settings
FROM resources WHERE lower(type) = ? ORDER BY created, key
"""


def _row(row: sqlite3.Row, database: Path) -> ResourceRow:
    values = dict(row)
    with reading(database):
        values["body"] = json.loads(values["body"])
    return ResourceRow(**values)
