"""Blobs: rows for names and properties, one file each for the bytes."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.store.database import Database, reading
from amlstack.sandbox.store.folders import private

if TYPE_CHECKING:
    import sqlite3


FOLDER = "hdi_isfolder"
"""The metadata by which the blob service shows a directory of a file system (Data Lake Storage Gen2)."""
_BLOBS = "SELECT blobs.*, extra FROM blobs LEFT JOIN blob_extras USING (account, container, name)"


@dataclass(frozen=True, slots=True)
class Blob:
    """One block blob.

    Attributes:
        account, container, name: Its place; the name holds slashes.
        path: The file with its bytes; never changed once written.
        size: Bytes.
        md5: Base64 of its MD5, when the client sent one.
        type: Content type.
        metadata: Lower-cased names.
        etag: New with every change.
        changed, created: Seconds since the epoch; a blob that is replaced keeps when it was first made.
        extra: What few blobs have: ``headers`` (by name), ``tags``, ``tier``, ``blocks`` (id and size of each),
            ``appended`` (so many blocks, of an append blob),
            ``copy`` (headers of one that is a copy), ``lease``.
    """

    account: str
    container: str
    name: str
    path: Path
    size: int
    md5: str | None
    type: str
    metadata: dict[str, str]
    etag: str
    changed: float
    created: float
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> bool:
        """It stands for a directory of a file system and holds nothing."""
        return self.metadata.get(FOLDER) == "true"


@dataclass(frozen=True, slots=True)
class Container:
    """A container that was made: its place, an etag, and when, in seconds since the epoch."""

    account: str
    name: str
    etag: str
    changed: float


class BlobTable:
    """The tables of blobs and containers, and the files under ``<home>/sandbox/blobs``."""

    def __init__(self, database: Database, root: Path) -> None:
        self._db = database
        self.root = root

    def fresh(self) -> Path:
        """A new file name for incoming bytes; becomes a blob by `put`, else is left for `reset` to remove."""
        private(self.root)
        return self.root / uuid.uuid4().hex

    def get(self, account: str, container: str, name: str) -> Blob | None:
        """The blob of this name."""
        row = self._db.one(f"{_BLOBS} WHERE account = ? AND container = ? AND name = ?", account, container, name)
        return self._row(row) if row else None

    def under(self, account: str, container: str, prefix: str = "") -> tuple[Blob, ...]:
        """The blobs whose names begin with a prefix, by name."""
        rows = self._db.all(
            f"{_BLOBS} WHERE account = ? AND container = ? AND substr(name, 1, ?) = ? ORDER BY name",
            *(account, container, len(prefix), prefix),
        )
        return tuple(map(self._row, rows))

    def listed(
        self, account: str, container: str, prefix: str = "", after: str = "", *, begin: str = ""
    ) -> Iterator[Blob]:
        """The blobs whose names begin with a prefix and come after a name or at ``begin``, one by one, by name."""
        while rows := self._db.all(
            f"{_BLOBS} WHERE account = ? AND container = ? AND substr(name, 1, ?) = ? AND name > ? AND name >= ? "
            "ORDER BY name LIMIT 1000",
            *(account, container, len(prefix), prefix, after, begin),
        ):
            yield from map(self._row, rows)
            after = rows[-1]["name"]

    def container(self, account: str, name: str) -> Container | None:
        """The container that was made under this name; one may also exist because it holds something."""
        row = self._db.one("SELECT * FROM containers WHERE account = ? AND name = ?", account, name)
        return Container(**dict(row)) if row else None

    def make_container(self, account: str, name: str, *, anew: bool = False) -> Container:
        """Makes a container; one that is there stays, or has changed where it is made ``anew``."""
        made = Container(account, name, _etag(), time.time())
        if anew:
            self._db.execute("DELETE FROM containers WHERE account = ? AND name = ?", account, name)
        self._db.execute("INSERT OR IGNORE INTO containers VALUES (?, ?, ?, ?)", account, name, made.etag, made.changed)
        return made

    def containers(self, account: str) -> tuple[Container, ...]:
        """The containers of an account that were made or hold something, by name."""
        made = {
            row["name"]: Container(**dict(row))
            for row in self._db.all("SELECT * FROM containers WHERE account = ?", account)
        }
        filled = self._db.all(
            "SELECT container, max(changed) AS changed FROM blobs WHERE account = ? GROUP BY container", account
        )
        for row in filled:
            made.setdefault(row["container"], Container(account, row["container"], "0", row["changed"]))
        return tuple(made[name] for name in sorted(made))

    def drop_container(self, account: str, name: str) -> None:
        """Removes a container with everything in it."""
        with self._db.transaction():
            for blob in self.under(account, name):
                self.delete(blob)
            self._db.execute("DELETE FROM containers WHERE account = ? AND name = ?", account, name)
            self.set_extra(account, name, "", {})

    def extra_of(self, account: str, container: str, name: str = "") -> dict[str, Any]:
        """The extras that few blobs have (see `Blob`), or a container without a name: ``metadata``, ``gone``."""
        row = self._db.one(
            "SELECT extra FROM blob_extras WHERE account = ? AND container = ? AND name = ?", account, container, name
        )
        with reading(self._db.path):
            return dict(json.loads(row["extra"])) if row else {}

    def set_extra(self, account: str, container: str, name: str, extra: dict[str, Any]) -> None:
        """Puts it in the place of what there was; empty for nothing."""
        place = account, container, name
        if extra:
            self._db.execute("INSERT OR REPLACE INTO blob_extras VALUES (?, ?, ?, ?)", *place, json.dumps(extra))
        else:
            self._db.execute("DELETE FROM blob_extras WHERE account = ? AND container = ? AND name = ?", *place)

    def put(
        self,
        account: str,
        container: str,
        name: str,
        file: Path,
        *,
        md5: str | None = None,
        type: str = "application/octet-stream",  # noqa: A002 - the wire's word
        metadata: dict[str, str] | None = None,
        extra: dict[str, Any] | None = None,
    ) -> Blob:
        """Makes or replaces a blob from a file of `fresh`, which from now on is the blob's own and never written to."""
        file.chmod(0o444)
        with self._db.transaction():
            before, now = self.get(account, container, name), time.time()
            self._db.execute(
                "INSERT OR REPLACE INTO blobs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                *(account, container, name, file.name, file.stat().st_size, md5, type),
                *(json.dumps(metadata or {}), _etag(), now, before.created if before else now),
            )
            if before is not None or extra:
                self.set_extra(account, container, name, extra or {})
        if before is not None:
            before.path.unlink(missing_ok=True)
        found = self.get(account, container, name)
        if found is None:
            raise KeyError(name)
        return found

    def set_metadata(self, blob: Blob, metadata: dict[str, str]) -> None:
        """Replaces a blob's metadata."""
        self._db.execute(
            "UPDATE blobs SET metadata = ?, etag = ?, changed = ? WHERE account = ? AND container = ? AND name = ?",
            *(json.dumps(metadata), _etag(), time.time(), blob.account, blob.container, blob.name),
        )

    def retype(self, blob: Blob, kind: str, md5: str | None) -> Blob:
        """Gives a blob another content type and another MD5 or none; the blob as it is then."""
        self._db.execute(
            "UPDATE blobs SET type = ?, md5 = ?, etag = ?, changed = ? "
            "WHERE account = ? AND container = ? AND name = ?",
            *(kind, md5, _etag(), time.time(), blob.account, blob.container, blob.name),
        )
        return self.get(blob.account, blob.container, blob.name) or blob

    def delete(self, blob: Blob) -> None:
        """Removes a blob and its bytes."""
        self._db.execute(
            "DELETE FROM blobs WHERE account = ? AND container = ? AND name = ?",
            *(blob.account, blob.container, blob.name),
        )
        self.set_extra(blob.account, blob.container, blob.name, {})
        blob.path.unlink(missing_ok=True)

    def drop_account(self, account: str) -> None:
        """Removes everything in one storage account."""
        for row in self._db.all(f"{_BLOBS} WHERE account = ?", account):
            self.delete(self._row(row))
        self._db.execute("DELETE FROM containers WHERE account = ?", account)
        self._db.execute("DELETE FROM blob_extras WHERE account = ?", account)

    def sweep(self) -> int:
        """Removes files that no blob owns (uploads that a crash cut off); how many. Only while nothing is uploaded."""
        owned = {row["file"] for row in self._db.all("SELECT file FROM blobs")}
        files = [path for path in self.root.glob("*") if path.is_file() and path.name not in owned]
        for path in files:
            path.unlink()
        return len(files)

    def _row(self, row: sqlite3.Row) -> Blob:
        values = dict(row)
        values["path"] = self.root / values.pop("file")
        with reading(self._db.path):
            values["metadata"] = json.loads(values["metadata"])
            values["extra"] = json.loads(values["extra"] or "{}")
        return Blob(**values)


def _etag() -> str:
    """A new etag in the service's form: ``0x8D`` and twelve or so digits in capitals."""
    return f"0x8D{uuid.uuid4().hex[:11].upper()}"
