"""Reads the data files of the catalogue."""

from __future__ import annotations

import json
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any


def load(name: str) -> Any:
    """The content of ``data/<name>.json``.

    Args:
        name: File name without its ending.
    """
    return json.loads(path(name).read_text(encoding="utf-8"))


_DAYS = frozenset({"checked", "changed", "closed_since", "taken"})


@cache
def rows(name: str) -> tuple[dict[str, Any], ...]:
    """The rows of ``data/<name>.json`` as values: lists are tuples, days are dates."""
    return tuple({key: _value(key, value) for key, value in row.items()} for row in load(name))


def _value(key: str, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    return day(value) if value and key in _DAYS else value


def path(name: str) -> Path:
    """The path of ``data/<name>.json``."""
    return Path(__file__).with_name("data") / f"{name}.json"


def day(text: str) -> date:
    """The date of a data file, which writes ISO dates.

    Raises:
        ValueError: The text is no date.
    """
    return date.fromisoformat(text)
