"""The end of runs: of the one that a resource stood for, and of those that its job leaves behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.provider.owned import is_ours
from amlstack.provider.states import OnEdit, is_active
from amlstack.provider.waiting import InterruptedWaitError, follow
from amlstack.rpc import bare
from amlstack.run_identity import NO_JOB

if TYPE_CHECKING:
    from amlstack.provider.lifecycle.memory import DeploymentMemory
    from amlstack.provider.resource import Call, Services, Values
    from amlstack.provider.runs import Record


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


def stack_ids(*values: Values) -> tuple[str, ...]:
    """The stack's ids in inputs and states, as far as they are known."""
    found = (bare(one.get("stackId")) for one in values)
    return tuple(one for one in found if isinstance(one, str) and one)


def foreign(record: Record, old: Values, *inputs: Values) -> str:
    """Whose a run is when it is not the stack's own any more; empty when it is.

    Args:
        record: The run.
        old: The recorded state.
        inputs: Further inputs that may name the stack's id.
    """
    owner = str(old.get("owner"))
    if is_ours(record, owner, *stack_ids(old, *inputs)):
        return ""
    if record.owner != owner:
        return record.owner or "another owner"
    return f"another stack named {owner} (its id is {record.stack})"


def goes_on(deployment: DeploymentMemory, call: Call, workspace: str, record: Record) -> bool:
    """Whether an active run that is kept goes on although the resource that stood for it is deleted.

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
    """Whether a run has a resource after this deletion: a forced replacement, or a copy that was pending deletion."""
    if any(plan.run == run and plan.mode is OnEdit.CANCEL for plan in deployment.plans(call.urn)):
        return False
    return deployment.holder(workspace, run) is not None or deployment.declares(call.urn, inputs)


def _planned(deployment: DeploymentMemory, call: Call, record: Record) -> OnEdit | None:
    return next((plan.mode for plan in deployment.plans(call.urn) if plan.run == record.job_id), None)
