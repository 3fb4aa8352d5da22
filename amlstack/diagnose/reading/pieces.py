"""Named pieces of a line, as patterns give them, as values."""

from __future__ import annotations

import re
from typing import Any

from amlstack.diagnose.reading.collector import MOST_EVENTS


def values(facts: dict[str, str]) -> dict[str, Any]:
    """Numbers as numbers, lists of ranks as tuples, all else as text."""
    read: dict[str, Any] = {}
    for name, value in facts.items():
        key = name.rstrip("0123456789")
        if key == "missing":
            read[key] = tuple(int(each) for each in re.findall(r"\d+", value)[:MOST_EVENTS])
        elif re.fullmatch(r"-?\d{1,12}", value):
            read[key] = int(value)
        else:
            read[key] = value.strip(".,:;")
    if not isinstance(read.get("rank", 0), int):
        del read["rank"]
    if "node" in read:
        read["node"] = str(read["node"])
    return read
