"""Reads the data files of the catalogue."""

from __future__ import annotations

import json
from datetime import date
from importlib.resources import files
from typing import Any


def load(name: str) -> Any:
    """The content of ``data/<name>.json``.

    Args:
        name: File name without its ending.
    """
    return json.loads(files("amlstack.catalog").joinpath("data", f"{name}.json").read_text(encoding="utf-8"))


def day(text: str | None) -> date | None:
    """An ISO date, or None where the data has none."""
    return None if text is None else date.fromisoformat(text)
