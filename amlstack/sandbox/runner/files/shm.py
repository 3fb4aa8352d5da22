"""The size of a node's /dev/shm: the size that its container would have."""

from __future__ import annotations

import re

DEFAULT = "2g"
"""What Azure ML gives a container whose job does not say."""

_SIZE = re.compile(r"(\d+)\s*([bkmg]?)", re.IGNORECASE)
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def size(text: str) -> int | None:
    """Bytes of ``64g`` or ``512m``; None when it is no size."""
    found = _SIZE.fullmatch(text.strip())
    return int(found[1]) * _UNITS[found[2].lower()] or None if found else None
