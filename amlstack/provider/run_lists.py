"""Runs that belong to a stack, as the workspace knows them: found by their marks, and looked up by one list."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from amlstack.provider.arm import ArmClient, ArmError
from amlstack.provider.resource import Values, text_of
from amlstack.provider.runs import Record, Runs, is_active, record_of
from amlstack.run_identity import OWNER

_QUERY = {"listViewType": "All", "properties": OWNER}
"""The service selects by the mark's name only: for values see docs/reference/unproven.md#list-filter."""


def is_ours(record: Record, owners: Collection[str], *stack_ids: str) -> bool:
    """True where a record belongs to a stack.

    Args:
        record: The record.
        owners: ``project/stack``, now and formerly.
        stack_ids: The stack's random id, as far as it is known; several while it is being changed.

    The record of a program that gives no stack id has none: its owner decides.
    """
    return record.owner in owners and (record.stack is None or record.stack in stack_ids)


def stack_ids(*values: Values) -> tuple[str, ...]:
    """The stack's ids in inputs and states, as far as they are known."""
    return tuple(filter(None, (text_of(one, "stackId") for one in values)))


def foreign(record: Record, old: Values, *inputs: Values) -> str:
    """Whose a run is when it is not the stack's own any more; empty when it is.

    Args:
        record: The run.
        old: The recorded state.
        inputs: Further inputs that may name the stack's id.
    """
    owner = str(old.get("owner"))
    if is_ours(record, (owner,), *stack_ids(old, *inputs)):
        return ""
    if record.owner != owner:
        return record.owner or "another owner"
    return f"another stack named {owner} (its id is {record.stack})"


def active_runs(arm: ArmClient, workspace: str, owners: Collection[str], stack_id: str) -> list[Record]:
    """The runs of a stack that have not ended, kept ones included, sorted by id.

    Args:
        arm: Azure Resource Manager.
        workspace: ARM id of the workspace. One that is not there has no runs.
        owners: ``project/stack``, now and formerly.
        stack_id: The stack's random id; empty when it has none.

    Raises:
        ArmError: The list could not be read to its end. No part of it is given then: a missing run could be ended.
    """
    marked = _marked(arm, workspace)
    ours = {one.job_id: one for one in marked if is_ours(one, owners, stack_id) and is_active(one.status)}
    return [ours[run] for run in sorted(ours)]


def stack_id_of(arm: ArmClient, workspace: str, owner: str) -> str:
    """The random id of a stack as its runs bear it, for who has not its state; empty where no run bears one.

    Args:
        arm: Azure Resource Manager.
        workspace: ARM id of the workspace.
        owner: ``project/stack``.

    Raises:
        ArmError: The list could not be read to its end.
    """
    ours = [one for one in _marked(arm, workspace) if one.owner == owner and one.stack]
    # A stack that lost its state has another id since: that of an active run counts.
    live = [one for one in ours if is_active(one.status)]
    return next((str(one.stack) for one in (*live, *ours)), "")


def _marked(arm: ArmClient, workspace: str) -> list[Record]:
    """Every run of any stack."""
    return [_record(row) for row in arm.rows(f"{workspace}/jobs", query=_QUERY, allow=(404,))]


def _record(row: Mapping[str, Any]) -> Record:
    return record_of(str(row.get("name") or ""), row)


FRESH: Final = 2.0
"""Seconds since a list was begun for which runs are looked up in it."""
SEVERAL: Final = 4
"""A list is asked for only while at least so many runs are looked up at once."""
FIRST: Final = 32
"""So many runs are asked for one by one before a workspace is listed: few jobs never pay for a list."""
NEEDED: Final = ("status", "experimentName", "services")
"""The part of a record that is read here; a run whose row lacks it is asked for by itself
(docs/reference/unproven.md#list-is-late)."""


@dataclass(slots=True)
class _Workspace:
    """The facts that are known of one workspace.

    Attributes:
        turn: Held by who decides whether to list, and while it lists.
        asked: How many runs were asked for one by one.
        due: From how many of these on the workspace is listed.
        began, writes: When the list was begun, and how many writes there had been.
        listed: The records in it by run.
        pages: How many requests the list took.
        served: How many runs were looked up in it.
    """

    turn: threading.Lock = field(default_factory=threading.Lock)
    waiting: int = 0
    asked: int = 0
    due: int = field(default_factory=lambda: FIRST)
    began: float = 0.0
    writes: int = -1
    listed: dict[str, Record] = field(default_factory=dict)
    pages: int = 0
    served: int = 0


class SharedList:
    """Looks up runs. Safe for use by several threads."""

    def __init__(self, arm: ArmClient, runs: Runs) -> None:
        self._arm = arm
        self._runs = runs
        self._lock = threading.Lock()
        self._workspaces: dict[str, _Workspace] = {}

    def get(self, workspace: str, run: str) -> Record | None:
        """As `Runs.get`; of a record that a list gave only `NEEDED` is there.

        Raises:
            WorkspaceMissingError: The workspace is not there.
            ArmError: The service refused, or could not be asked.
            InterruptedWaitError: The engine wants to end.
        """
        with self._entered(workspace) as known:
            with known.turn:
                record = self._listed(workspace, known, run)
                if record is not None:
                    known.served += 1
                    return record
                known.asked += 1
            return self._runs.get(workspace, run)

    @contextlib.contextmanager
    def _entered(self, workspace: str) -> Iterator[_Workspace]:
        with self._lock:
            known = self._workspaces.setdefault(workspace.casefold(), _Workspace())
            known.waiting += 1
        try:
            yield known
        finally:
            with self._lock:
                known.waiting -= 1

    def _listed(self, workspace: str, known: _Workspace, run: str) -> Record | None:
        """The run's record in a list that is fresh, made now if that is likely to save requests."""
        if not self._is_fresh(known):
            # A list that served fewer runs than it took requests was no help: ask twice as many runs before the next.
            if known.pages and known.served < known.pages:
                known.due = max(known.due, 2 * known.asked)
            known.listed, known.pages, known.served = {}, 0, 0
            if known.waiting < SEVERAL or known.asked < known.due:
                return None
            self._list(workspace, known)
        return known.listed.get(run) if self._is_fresh(known) else None

    def _is_fresh(self, known: _Workspace) -> bool:
        return known.writes == self._runs.writes and time.monotonic() - known.began <= FRESH

    def _list(self, workspace: str, known: _Workspace) -> None:
        """Lists the workspace, in at most as many requests as runs were asked for; one that fails is not repeated."""
        known.began, known.writes = time.monotonic(), self._runs.writes
        try:
            for page in self._arm.pages(f"{workspace}/jobs", query=_QUERY, once=True, most=known.asked):
                known.pages += 1
                records = map(_record, page)
                known.listed |= {one.job_id: one.cut(NEEDED) for one in records if one.holds(NEEDED)}
        except ArmError:
            known.due = 2 * known.asked
