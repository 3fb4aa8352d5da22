"""Records of many runs by one list: a refresh of a thousand jobs asks some dozens of times instead of a thousand.

A list is older than the moment at which a run is looked up in it, by `FRESH` seconds at most, and never older than
anything that this process has written of any run. How soon Azure's own list shows a change is not documented; so it
serves only where a status is recorded and nothing is decided by it, and what it lacks is asked for by itself.
"""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from amlstack.provider import owned
from amlstack.provider.arm import ArmError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amlstack.provider.arm import ArmClient
    from amlstack.provider.runs import Record, Runs

FRESH: Final = 2.0
"""Seconds since a list was begun for which runs are looked up in it."""
SEVERAL: Final = 4
"""A list is asked for only while at least so many runs are looked up at once."""
FIRST: Final = 32
"""So many runs are asked for one by one before a workspace is listed: few jobs never pay for a list."""
NEEDED: Final = ("status", "experimentName", "services")
"""What of a record is read here. Whether Azure's list has all that a single record has is not documented."""


@dataclass(slots=True)
class _Workspace:
    """What is known of one workspace.

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
            for records in owned.pages(self._arm, workspace, most=known.asked):
                known.pages += 1
                known.listed |= {one.job_id: one.cut(NEEDED) for one in records if one.holds(NEEDED)}
        except ArmError:
            known.due = 2 * known.asked
