"""Readers of lists and mappings, and of a mapping's keys one by one; the values in them are read by `fields`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.base.findings import Level
from amlstack.base.near_misses import did_you_mean
from jobs.azureml.cursor import Bad, Cursor, shown
from jobs.azureml.fields import Nullable, anything, refuse_name, unsent

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    Reader = Callable[[Cursor], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """Reads a mapping of names to values of one kind.

    Attributes:
        read: Reads each value.
        numbers: Whether a name may be written as a number; it becomes text.
    """

    read: Callable[[Cursor], Any]
    numbers: bool = False

    def __call__(self, cursor: Cursor) -> Any:
        """The values by name."""
        if not isinstance(cursor.value, dict):
            return cursor.wrong("a mapping of names to values")
        result = {}
        for key in cursor.value:
            if not isinstance(key, str) and not self.numbers:
                refuse_name(cursor, key)
                continue
            value = self.read(cursor.at(key))
            if value is not Bad:
                result[str(key)] = value
        return result


def named(read: Reader, *, numbers: bool = False) -> Reader:
    """A mapping of names to values of one kind; see `Named`."""
    return Named(read, numbers)


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """Reads a list of values of one kind."""

    read: Callable[[Cursor], Any]

    def __call__(self, cursor: Cursor) -> Any:
        """The values."""
        if not isinstance(cursor.value, list):
            return cursor.wrong("a list")
        return tuple(value for index in range(len(cursor.value)) if (value := self.read(cursor.at(index))) is not Bad)


def listed(read: Reader) -> Reader:
    """A list of values of one kind."""
    return Listed(read)


def keys(
    cursor: Cursor, table: Mapping[str, Callable[[Cursor], Any]], *, ignored: Collection[str] = (), what: str
) -> Iterator[tuple[str, Any]]:
    """Read a mapping by a table of its keys: each key once, unknown ones reported with near misses.

    Args:
        cursor: The mapping.
        table: Key to the reader of its value.
        ignored: Keys that only the service writes; the real loader skips them, we say so.
        what: What the mapping is, for messages.
    """
    if not isinstance(cursor.value, dict):
        cursor.wrong(f"{what}, a mapping") if cursor.path else cursor.bad(
            "not-a-mapping", f"The file must be {what}, a mapping of keys, got {shown(cursor.value)}", ""
        )
        return
    for key in cursor.value:
        if (read := table.get(key)) is not None or key in ignored:
            if cursor.value[key] is None and read not in (anything, unsent) and not isinstance(read, Nullable):
                cursor.bad(
                    "value-missing",
                    f"`{key}` has no value",
                    "A key that is there has a value",
                    "Remove the key, or give it a value.",
                    key=key,
                )
                continue
            if read is not None:
                value = read(cursor.at(key))
                if value is not Bad:
                    yield key, value
            elif key != "$schema":
                cursor.bad(
                    "key-read-only",
                    f"`{key}` is written by Azure ML",
                    "It is ignored when a job is submitted",
                    "Remove it.",
                    level=Level.INFO,
                    key=key,
                )
        else:
            remedy = did_you_mean(str(key), table)
            cursor.bad(
                "key-unknown",
                f"`{key}` is not a known key of {what}",
                "Every key is one that Azure ML knows",
                remedy if remedy.startswith("Did") else "",
                key=key,
            )
