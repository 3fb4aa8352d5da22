"""The error number that a line names: what a call failed with decides what its failure means."""

from __future__ import annotations

import re
from typing import Final

TEXTS: Final = {
    "operation not permitted": 1,
    "no such file or directory": 2,
    "input/output error": 5,
    "resource temporarily unavailable": 11,
    "cannot allocate memory": 12,
    "permission denied": 13,
    "device or resource busy": 16,
    "invalid argument": 22,
    "too many open files": 24,
    "no space left on device": 28,
    "read-only file system": 30,
    "broken pipe": 32,
    "address already in use": 98,
    "network is unreachable": 101,
    "software caused connection abort": 103,
    "connection reset by peer": 104,
    "connection timed out": 110,
    "connection refused": 111,
    "no route to host": 113,
    "disk quota exceeded": 122,
}
"""What `strerror` of Linux says, in lower case → the number (man 3 errno)."""
_TEXTS = re.compile("|".join(map(re.escape, TEXTS)))
_NUMBER = re.compile(r"errno\W{0,3}(\d{1,3})\b")


def of(lower: str) -> int | None:
    """The number that a line, given in lower case, names by its text or as ``errno``; None when it names none."""
    if found := _TEXTS.search(lower):
        return TEXTS[found[0]]
    if found := _NUMBER.search(lower):
        return int(found[1])
    return None
