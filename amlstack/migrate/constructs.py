"""The table of constructs: an SDK v1 name, and what it becomes; the report, the pages and the tests derive from it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

TABLE = Path(__file__).with_suffix(".toml")
STATES = {"migrated": "migrated", "hand": "needs a hand", "dropped": "dropped"}
"""The states of a construct, as the report writes them."""


class Construct(NamedTuple):
    """One row.

    Attributes:
        name: Its v1 name, as far as it tells it from others.
        becomes: Its place in v2.
        state: ``migrated``, ``hand`` or ``dropped``.
        how: The next step of a person.
        takes: Its parameters, in order; one that begins with ``*`` takes all.
        returns: The kind of object that a call gives.
        type: Its `type` in v2: of a distribution, a sampling, a policy.
        file: The kind of file that it becomes by itself.
        call: Of a run's method, the function in its place; empty where the call goes, None for any other.
        keeps: The arguments that this function takes.
    """

    name: str
    becomes: str
    state: str = "migrated"
    how: str = ""
    takes: tuple[str, ...] = ()
    returns: str = ""
    type: str = ""
    file: str = ""
    call: str | None = None
    keeps: tuple[str, ...] = ()


@cache
def constructs() -> Mapping[str, Construct]:
    """Every row by its name."""
    rows: dict[str, dict[str, Any]] = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    takes: dict[str, str] = {name: row.get("takes", "") for name, row in rows.items()}
    return {name: Construct(name=name, **_read(row, takes)) for name, row in rows.items()}


def _read(row: dict[str, Any], takes: dict[str, str]) -> dict[str, Any]:
    """The fields of a row; parameters may be those of another."""
    lists = ("takes", "keeps")
    return {key: tuple(takes.get(value, value).split()) if key in lists else value for key, value in row.items()}


def type_of(kind: str) -> str:
    """The `type` of an object in v2; empty where it has none."""
    return constructs()[kind].type if kind in constructs() else ""


def construct(dotted: str) -> Construct | None:
    """The row of a full name: the longest of its ends that the table has, else that of its package."""
    parts = dotted.split(".")
    names = [".".join(parts[-length:]) for length in (3, 2, 1)] + [".".join(parts[:length]) for length in (3, 2)]
    return next((row for name in names if (row := constructs().get(name)) is not None), None)
