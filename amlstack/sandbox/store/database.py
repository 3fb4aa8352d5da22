"""One SQLite file that the server, the scheduler, every runner and ``status`` open together."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

from amlstack.sandbox.store.folders import private

VERSION = 1
"""To be raised with every change of the schema that an older state does not survive."""

SCHEMA: Final = Path(__file__).with_name("schema.sql")

BACKUP: Final = ".bak"
"""Suffix of the copy beside the file, made at the last start of the server at which all of it could be read."""

_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_DAMAGED_WORDS: Final = ("Could not decode to UTF-8", "unsupported file format")
"""Of errors that have no code, or one that says nothing: a text of the file is none, or its header is wrong."""
_DISK: Final = {
    sqlite3.SQLITE_FULL: "the disk is full. Free some room, then run this again",
    sqlite3.SQLITE_IOERR: "the disk cannot be read or written. Free some room or mend it, then run this again",
    sqlite3.SQLITE_READONLY: "it cannot be written. Set AMLSTACK_HOME to a folder that you can write",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened or made. Set AMLSTACK_HOME to a folder that you can write",
}


class StateError(Exception):
    """The state file cannot be read by this version, or not at all; the message says what to do."""


def refuse(path: Path, error: sqlite3.Error | UnicodeDecodeError) -> NoReturn:
    """Says what is wrong with a file of tables where that is known.

    Raises:
        StateError: The file is damaged, or the disk does not take it.
        sqlite3.Error: The error itself, where it is another.
    """
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code in _DISK:
        raise StateError(f"{path}, the tables of the sandbox: {_DISK[code]}.") from error
    # The words of a text that is none are whatever stands in the file.
    seen = "text that is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error).partition(" with text ")[0]
    if code not in _DAMAGED and not isinstance(error, UnicodeDecodeError) and not seen.startswith(_DAMAGED_WORDS):
        raise error
    raise StateError(damaged(path, seen)) from error


def damaged(path: Path, seen: str) -> str:
    """That a file of tables is damaged, and the two ways out."""
    copy = Path(f"{path}{BACKUP}")
    kept = ""
    with contextlib.suppress(OSError):
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(copy.stat().st_mtime))
        back = f"rm -f {path}-wal {path}-shm && cp {copy} {path}"
        kept = f" Or go on from the good copy of {day}: `amlstack sandbox down`, then `{back}`."
    return (
        f"{path}, the tables of the sandbox, is damaged ({seen}). `amlstack sandbox reset` removes it and starts from "
        f"nothing, `amlstack down` removes the stack with it.{kept}"
    )


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Takes a stored value apart that may not be what was stored, as after a flipped byte.

    Raises:
        StateError: It is not.
    """
    try:
        yield
    except (ValueError, TypeError, RecursionError) as error:
        raise StateError(damaged(path, "a record is not what was stored")) from error


class Database:
    """A connection with transactions; safe to share between the threads of one process.

    Args:
        path: The SQLite file; made with its schema when it does not exist.

    Raises:
        StateError: It was written by another version, is damaged, or the disk does not take it.
    """

    def __init__(self, path: Path) -> None:
        private(path.parent)
        self.path = path
        self._lock = threading.RLock()
        self._depth = 0
        try:
            self._open()
        except sqlite3.Error as error:
            with contextlib.suppress(AttributeError):  # it was not even opened
                self._connection.close()
            refuse(path, error)

    def _open(self) -> None:
        path = self.path
        # Autocommit mode: transactions are begun by hand, so that none is open between two calls.
        self._connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        self._connection.row_factory = sqlite3.Row
        path.chmod(0o600)  # a job's body may hold what its author thought private
        with self._lock:
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            (found,) = self._connection.execute("PRAGMA user_version").fetchone()
            if found not in {0, VERSION}:
                self._connection.close()
                message = f"{path} was written by another version of the sandbox ({found}, this is {VERSION}). "
                raise StateError(message + "Run `amlstack sandbox reset` to start from nothing.")
            self._connection.executescript(SCHEMA.read_text("utf-8") + f"PRAGMA user_version={VERSION};")

    def check(self) -> None:
        """Reads all of the file, and keeps a copy of a good one: what a later damage leaves to go on from.

        Raises:
            StateError: It is damaged. The copy of before stays.
        """
        with self._lock:
            try:
                found = [str(row[0]) for row in self._connection.execute("PRAGMA quick_check(1)")]
            except sqlite3.Error as error:
                refuse(self.path, error)
            if found != ["ok"]:
                raise StateError(damaged(self.path, " ".join(" ".join(found).split())))
            fresh = Path(f"{self.path}{BACKUP}.new")
            # Without a copy the sandbox works as well: a disk may have no room for a second one.
            with contextlib.suppress(sqlite3.Error, OSError):
                fresh.unlink(missing_ok=True)
                with contextlib.closing(sqlite3.connect(fresh)) as copy:
                    self._connection.backup(copy)
                fresh.chmod(0o600)
                with fresh.open("rb") as file:
                    os.fsync(file.fileno())
                fresh.replace(f"{self.path}{BACKUP}")
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All statements inside happen or none does; may be nested (the outermost one counts)."""
        with self._lock:
            if self._depth == 0:
                self._run("BEGIN IMMEDIATE")
            self._depth += 1
            try:
                yield
            except BaseException:
                self._depth -= 1
                if self._depth == 0:
                    self._roll_back()
                raise
            self._depth -= 1
            if self._depth == 0:
                try:
                    self._run("COMMIT")
                except BaseException:
                    self._roll_back()
                    raise

    def _roll_back(self) -> None:
        if self._connection.in_transaction:  # where the disk was full, it has been taken back already
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    def _run(self, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        try:
            return self._connection.execute(statement, values)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            refuse(self.path, error)

    def execute(self, statement: str, *values: Any) -> int:
        """Runs one statement; the number of rows it changed."""
        with self._lock:
            return self._run(statement, values).rowcount

    def all(self, statement: str, *values: Any) -> list[sqlite3.Row]:
        """All rows of a query."""
        with self._lock:
            try:
                return self._connection.execute(statement, values).fetchall()
            except (sqlite3.Error, UnicodeDecodeError) as error:
                refuse(self.path, error)

    def one(self, statement: str, *values: Any) -> sqlite3.Row | None:
        """The first row of a query, or None."""
        rows = self.all(statement, *values)
        return rows[0] if rows else None

    def close(self) -> None:
        """Closes the connection; the files stay."""
        with self._lock:
            self._connection.close()
