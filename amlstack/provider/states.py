"""The states of a run in Azure ML and what they mean to someone who waits."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Wait(StrEnum):
    """The state that a run must have reached before its dependents go on."""

    NONE = "none"
    STARTED = "started"
    COMPLETED = "completed"


class OnEdit(StrEnum):
    """The fate of an active run whose declaration is edited."""

    REFUSE = "refuse"
    CANCEL = "cancel"
    KEEP = "keep"


class RunVerdict(StrEnum):
    """The meaning of a status under a `Wait`."""

    SATISFIED = "satisfied"
    PENDING = "pending"
    FAILED = "failed"


COMPLETED: Final = "Completed"
UNSUCCESSFUL: Final = frozenset({"Failed", "Canceled"})
TERMINAL: Final = UNSUCCESSFUL | {COMPLETED}
_STARTED: Final = frozenset({"Running", "Finalizing", COMPLETED})


def is_active(status: str) -> bool:
    """True where the run may still use nodes, as at all but a known end: a doubt must not start a second run."""
    return status not in TERMINAL


def verdict(wait: Wait, status: str) -> RunVerdict:
    """The verdict on ``status``: it is what ``wait`` waits for, may become it, or never will."""
    if wait is Wait.NONE or status == COMPLETED or (wait is Wait.STARTED and status in _STARTED):
        return RunVerdict.SATISFIED
    return RunVerdict.FAILED if status in UNSUCCESSFUL else RunVerdict.PENDING
