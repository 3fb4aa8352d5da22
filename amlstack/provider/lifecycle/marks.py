"""The mark of a run that goes on although its job has moved on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.provider.arm import ArmError
from amlstack.provider.runs import WorkspaceMissingError
from amlstack.rpc import ProviderError
from amlstack.run_identity import KEPT_FOR

if TYPE_CHECKING:
    from amlstack.provider.runs import Record, Runs


def keep(runs: Runs, workspace: str, run: str, successor: str) -> None:
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


def release(runs: Runs, workspace: str, record: Record) -> None:
    """Takes the mark off a run that a resource stands for again.

    Raises:
        ArmError: The service refused.
    """
    if not record.kept_for:
        return
    if not runs.remove_tags(workspace, record, [KEPT_FOR]):
        # Not every service removes tags; an empty one means the same.
        runs.edit(workspace, record, {"tags": {KEPT_FOR: ""}})
