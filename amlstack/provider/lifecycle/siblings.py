"""The end of runs, the marks of those that are kept, and other active runs of a job than its resource's own."""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING

from amlstack.provider import run_lists
from amlstack.provider.arm import ArmError, InterruptedWaitError
from amlstack.provider.lifecycle.gates import follow
from amlstack.provider.resource import text_of
from amlstack.provider.runs import OnEdit, WorkspaceMissingError, is_active
from amlstack.rpc import UNKNOWN, ProviderError
from amlstack.run_identity import KEPT_FOR, NO_JOB, owner_of, resource_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amlstack.provider.lifecycle.edits import DeploymentMemory
    from amlstack.provider.resource import Call, Services, Values
    from amlstack.provider.runs import Record, Runs


def mark_kept(runs: Runs, workspace: str, run: str, successor: str) -> None:
    """Marks a run as kept.

    Args:
        runs: Job records.
        workspace: ARM id of the workspace.
        run: The run that goes on. One whose record is gone needs no mark.
        successor: The run that its job stands for from now on, or `amlstack.run_identity.NO_JOB`.

    Raises:
        ProviderError: It could not be marked. A later deployment would end it by mistake.
    """
    try:
        record = runs.get(workspace, run)
        if record is None or record.kept_for == successor:
            return
        if runs.edit(workspace, record, {"tags": {KEPT_FOR: successor}}):
            return
        reason = "the run history does not know it"
    except (ArmError, WorkspaceMissingError) as error:
        reason = str(error)
    raise ProviderError(
        f"run {run} could not be marked as kept ({reason}); nothing new was started, so that it is not "
        "cancelled by mistake. Try again"
    )


def release_mark(runs: Runs, workspace: str, record: Record) -> None:
    """Takes the mark off a run that a resource stands for again.

    Raises:
        ArmError: The service refused.
    """
    if not record.kept_for:
        return
    if not runs.remove_tags(workspace, record, [KEPT_FOR]):
        # Not every service removes tags; an empty one means the same.
        runs.edit(workspace, record, {"tags": {KEPT_FOR: ""}})


def end(services: Services, call: Call, workspace: str, record: Record) -> None:
    """Cancels an active run and waits for its end.

    Raises:
        ArmError: The service refused.
        InterruptedWaitError: The engine wants to end.
        WaitTimeoutError: The call's timeout has passed.
    """
    services.runs.cancel(workspace, record.job_id)
    try:
        # A run that has not begun is over as soon as it is cancelled.
        ended, what = (lambda now: not is_active(now.status)), "has ended"
        follow(services, call, workspace, record, until=ended, what=what, at_once=True)
    except InterruptedWaitError:
        raise InterruptedWaitError(f"the wait for the end of {record.job_id}", uncertain=True) from None


def goes_on(deployment: DeploymentMemory, call: Call, workspace: str, record: Record) -> bool:
    """True where an active run that is kept goes on although the resource that stood for it is deleted.

    A mark holds as long as the job is there. It is left over from an edit that never came to be when `Diff` has decided
    to end the run, and it holds nothing when the job itself is removed: no resource would stand for the run any more.
    """
    if not record.kept_for or _planned(deployment, call, record) is OnEdit.CANCEL:
        return False
    return (
        record.kept_for == NO_JOB
        or deployment.has(call.urn)
        or deployment.holder(workspace, record.kept_for) is not None
    )


def stays(deployment: DeploymentMemory, call: Call, workspace: str, run: str, inputs: Values) -> bool:
    """True where a run has a resource after this deletion: a forced replacement, or a copy pending deletion."""
    if any(plan.run == run and plan.mode is OnEdit.CANCEL for plan in deployment.plans(call.urn)):
        return False
    return deployment.holder(workspace, run) is not None or deployment.declares(call.urn, inputs)


def _planned(deployment: DeploymentMemory, call: Call, record: Record) -> OnEdit | None:
    return next((plan.mode for plan in deployment.plans(call.urn) if plan.run == record.job_id), None)


FRESH = 5.0
"""Seconds for which a list says whose a run is and whether it was kept; somebody else may change either."""


class Siblings:
    """Finds and settles them. Safe for use by several threads."""

    def __init__(self, services: Services, deployment: DeploymentMemory) -> None:
        self._services = services
        self._deployment = deployment
        self._lock = threading.Lock()
        # Listed once before what a deployment creates and once before what it removes: what is looked for is older.
        # Each find but a removed job's own run is looked at again.
        self._listed: dict[tuple[str, str, str, bool], tuple[float, dict[str, list[Record]]]] = {}

    def active_runs(
        self, call: Call, workspace: str, run: str, owner: str, values: Values, *, removed: bool = False
    ) -> list[Record]:
        """The active runs of the job but ``run``, as they are now.

        Args:
            call: Its URN tells runs of this resource from those of another one of the same name.
            workspace: ARM id of the workspace.
            run: The run to leave out.
            owner: ``project/stack``.
            values: Inputs or state of the job.
            removed: Whether the job itself is removed.

        Raises:
            ArmError: The workspace cannot be asked.
        """
        found: list[Record] = []
        for one in self._candidates(call, workspace, owner, values, removed=removed):
            if one.job_id == run:
                continue
            if self._deployment.holder(workspace, one.job_id) not in (None, call.urn):
                continue
            now = self._services.runs.get(workspace, one.job_id)
            if now is not None and is_active(now.status):
                found.append(now)
        return found

    def removed(self, call: Call, workspace: str, run: str, old: Values) -> Record | None:
        """The run of a job that is removed, as the stack's list of active runs has it; None when it is not there.

        One list serves the removals of `FRESH` seconds, which saves a request for each job: its owner and its mark are
        at most so old. Its status may have changed since: whether it has ended is for the look after the cancellation.

        Raises:
            ArmError: The workspace cannot be asked.
        """
        candidates = self._candidates(call, workspace, str(old.get("owner")), old, removed=True, age=FRESH)
        return next((one for one in candidates if one.job_id == run), None)

    def foretell(self, call: Call, workspace: str, run: str, state: Values) -> None:
        """Says at preview what `settle` will do.

        Raises:
            ProviderError: A run without a resource is active, and ``on_edit`` is refuse.
            ArmError: The workspace cannot be asked.
        """
        planned = {plan.run for plan in self._deployment.plans(call.urn)}
        orphans = [one for one in self._orphans(call, workspace, run, state) if one.job_id not in planned]
        if state.get("onEdit") is UNKNOWN:
            for one in orphans:
                self._services.host.info(f"{_seen(one)}; what becomes of it is not known yet (on_edit)", call.urn)
            return
        mode = _mode(state, orphans)
        for one in orphans:
            becomes = "goes on" if mode is OnEdit.KEEP else "is ended first"
            self._services.host.info(f"{_seen(one)}; it {becomes} (on_edit: {mode})", call.urn)

    def settle(self, call: Call, workspace: str, run: str, state: Values) -> None:
        """Before ``run`` begins or is adopted: what goes on is marked, what must end is ended.

        A crash at any later point then finds every other run of the job kept or ended.

        Raises:
            ProviderError: A run without a resource is active, and ``on_edit`` is refuse; or one cannot be marked.
            ArmError: The workspace cannot be asked.
        """
        for plan in self._deployment.plans(call.urn):
            if plan.mode is OnEdit.KEEP and plan.run != run:
                mark_kept(self._services.runs, plan.workspace, plan.run, run)
        orphans = self._orphans(call, workspace, run, state)
        mode = _mode(state, orphans)
        for one in orphans:
            if mode is OnEdit.KEEP:
                mark_kept(self._services.runs, workspace, one.job_id, run)
                self._services.host.info(f"{_seen(one)}; it goes on (on_edit: keep)", call.urn)
            else:
                self._services.host.info(f"{_seen(one)}; it is ended first (on_edit: cancel)", call.urn)
                end(self._services, call, workspace, one)

    def end_all(self, call: Call, workspace: str, run: str, old: Values) -> None:
        """End the job's other runs when the job itself is removed: no resource stands for them any more.

        Raises:
            ArmError: The workspace cannot be asked, or refused.
        """
        for one in self.left(call, workspace, run, old):
            self._services.host.info(f"run {one.job_id} is ended as well: its job is removed", call.urn)
            end(self._services, call, workspace, one)

    def left(self, call: Call, workspace: str, run: str, old: Values) -> list[Record]:
        """The other active runs that end with a job that is removed.

        Raises:
            ArmError: The workspace cannot be asked.
        """
        found = self.active_runs(call, workspace, run, str(old.get("owner")), old, removed=True)
        return [one for one in found if one.kept_for != NO_JOB]

    def _orphans(self, call: Call, workspace: str, run: str, state: Values) -> list[Record]:
        return [one for one in self.active_runs(call, workspace, run, owner_of(call.urn), state) if not one.kept_for]

    def _candidates(
        self, call: Call, workspace: str, owner: str, values: Values, *, removed: bool, age: float = math.inf
    ) -> Sequence[Record]:
        """The listed runs that a record names this job with, by a list of at most so many seconds."""
        key = (workspace.casefold(), owner, text_of(values, "stackId"), removed)
        with self._lock:
            if key not in self._listed or time.monotonic() - self._listed[key][0] >= age:
                start = time.monotonic()
                found: dict[str, list[Record]] = {}
                for one in run_lists.active_runs(self._services.arm, workspace, (owner,), key[2]):
                    found.setdefault(str(one.resource), []).append(one)
                self._listed[key] = start, found
            _, listed = self._listed[key]
        return listed.get(resource_of(call.urn), ())


def _seen(record: Record) -> str:
    return f"run {record.job_id} of this job is {record.status}, and no resource stands for it"


def _mode(state: Values, orphans: list[Record]) -> OnEdit:
    mode = OnEdit(state.get("onEdit") or OnEdit.REFUSE)
    if orphans and mode is OnEdit.REFUSE:
        raise ProviderError(
            f"{_seen(orphans[0])} (an interrupted deployment leaves such a run, or a lost state). A second one is not "
            "started beside it by surprise. Declare it again, wait for its end or cancel it, or say what becomes of "
            "it: `on_edit: cancel` ends it first, `on_edit: keep` lets it go on"
        )
    return mode
