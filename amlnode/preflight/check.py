"""The result of a check of a node."""

from __future__ import annotations

from dataclasses import dataclass

GOOD, WARNING, BAD, UNJUDGED = "good", "warning", "bad", "not judged"


@dataclass(frozen=True)
class Check:
    """One check's answer.

    Attributes:
        name: What was checked, in a word.
        state: good, warning, bad (the job must not go on) or not judged.
        seen: What was seen; for `not judged`, why it was not.
        remedy: What to do; empty when good.
    """

    name: str
    state: str
    seen: str
    remedy: str = ""


def size(count: float) -> str:
    """Bytes for a reader: 64 MiB, 1.5 TiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"
