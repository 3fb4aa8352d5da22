"""Takes a parent as far as it can go now: cancel, time limit, then what its kind is about."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.contract.spec import RefusedError, seconds
from amlstack.sandbox.orchestration import pipeline, sweep
from amlstack.sandbox.orchestration.parent import Parent, is_parent
from amlstack.sandbox.protocol.refusals import Refused
from amlstack.sandbox.store.store import JobError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from amlstack.sandbox.store.store import JobRow, Store

__all__ = ["advance", "drafts", "is_parent"]

KINDS = {"Pipeline": pipeline, "Sweep": sweep}
"""The module that advances each type of parent."""


def drafts(store: Store, name: str, properties: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The position of a child in a parent's body, and the body that the child would have.

    Raises:
        Refused: The parent cannot be run by the sandbox.
    """
    yield from KINDS[properties["jobType"]].drafts(store, name, properties)


def advance(store: Store, job: JobRow, now: float) -> tuple[bool, float | None]:
    """Does what is due for one active parent.

    Args:
        store: The sandbox's tables.
        job: The parent's row.
        now: Seconds since the epoch.

    Returns:
        Whether anything changed, and when its time limit is reached (seconds since the epoch; None for none).
    """
    parent = Parent.of(store, job)
    try:
        due = _advance(parent, now)
    except (Refused, RefusedError) as error:
        _give_up(parent, JobError(error.code, str(error)))
        return parent.moved, None
    except Exception as error:  # noqa: BLE001 - one broken parent must not stop all other jobs
        traceback.print_exc()
        _give_up(parent, JobError("SandboxError", f"The sandbox could not advance the {_noun(job)}: {error}"))
        return parent.moved, None
    return parent.moved, due


def _advance(parent: Parent, now: float) -> float | None:
    job = parent.job
    if job.cancel_requested:
        if parent.active:
            parent.cancel_all()
        else:
            parent.end("Canceled")
        return None
    due = _deadline(job)
    if due is not None and now >= due:
        if parent.active:
            parent.cancel_all()
        else:
            limit = (job.properties.get("limits") or {}).get("timeout")
            message = f"The {_noun(job)} ran longer than its limit of {limit} (limits.timeout) and was cancelled."
            parent.end("Canceled", JobError("JobTimeout", message))
        return None
    KINDS[job.properties["jobType"]].advance(parent)
    return due


def _deadline(job: JobRow) -> float | None:
    limit = (job.properties.get("limits") or {}).get("timeout")
    return None if limit is None or job.started is None else job.started + seconds(str(limit))


def _give_up(parent: Parent, error: JobError) -> None:
    """The parent cannot go on; its children must end first."""
    if parent.active:
        parent.cancel_all()
    else:
        parent.note(error.message)
        parent.end("Failed", error)


def _noun(job: JobRow) -> str:
    return str(job.properties.get("jobType")).lower()
