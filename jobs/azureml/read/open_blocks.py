"""Blocks whose unknown keys are passed through, as azure-ai-ml does, with a warning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.base.findings import Level
from amlstack.base.near_misses import did_you_mean
from jobs.azureml.containers import keys
from jobs.azureml.cursor import Cursor
from jobs.azureml.fields import by_text
from jobs.azureml.read.command import READ_ONLY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SKIPPED = (*READ_ONLY, "id", "latest_version")
"""Keys that Azure ML writes."""


def split(
    cursor: Cursor, table: Mapping[str, Callable[[Cursor], Any]], what: str, *, sent: bool = True
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The known keys read, and the others as they are.

    Args:
        cursor: The block.
        table: Key to its reader.
        what: What the block is, for messages.
        sent: Whether azure-ai-ml sends unknown keys; where not, they are errors.
    """
    given = by_text(cursor)
    extra = {key: value for key, value in given.items() if key not in table and key not in SKIPPED}
    for key in extra:
        remedy = did_you_mean(key, table)
        cursor.bad(
            "key-unknown",
            f"`{key}` is not a known key of {what}",
            "It is sent as it is, as azure-ai-ml does" if sent else "Every key is one that Azure ML knows",
            remedy if remedy.startswith("Did") else "Remove it, unless Azure ML knows it.",
            level=Level.WARNING if sent else Level.ERROR,
            key=key,
        )
    rest = {key: value for key, value in given.items() if key not in extra}
    inner = Cursor(rest, cursor.path, cursor.findings, cursor.base)
    return dict(keys(inner, table, ignored=SKIPPED, what=what)), extra
