"""Takes a parent as far as it can go now: cancel, time limit, then what its kind is about."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from typing import Any

from amlstack.sandbox.contract import RefusedError, seconds
from amlstack.sandbox.orchestration import pipeline, sweep
from amlstack.sandbox.orchestration.parent import Parent
from amlstack.sandbox.protocol.refusals import Refused
from amlstack.sandbox.store.store import JobError, JobRow, Store

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
    parent, due, failure = Parent(store, job, store.children(job.id)), None, None
    try:
        due = _advance(parent, now)
    except (Refused, RefusedError) as error:
        failure = JobError(error.code, str(error))
    except Exception as error:  # noqa: BLE001 - one broken parent must not stop all other jobs
        traceback.print_exc()
        noun = str(job.properties.get("jobType")).lower()
        failure = JobError("SandboxError", f"The sandbox could not advance the {noun}: {error}")
    if failure is not None:
        if not parent.active:
            parent.note(failure.message)
        parent.give_up("Failed", failure)
    return parent.moved, due


def _advance(parent: Parent, now: float) -> float | None:
    job, kind = parent.job, parent.job.properties["jobType"]
    if job.cancel_requested:
        parent.give_up("Canceled")
        return None
    limit = (job.properties.get("limits") or {}).get("timeout")
    due = None if limit is None or job.started is None else job.started + seconds(str(limit))
    if due is not None and now >= due:
        message = f"The {kind.lower()} ran longer than its limit of {limit} (limits.timeout) and was cancelled."
        parent.give_up("Canceled", JobError("JobTimeout", message))
        return None
    KINDS[kind].advance(parent)
    return due
