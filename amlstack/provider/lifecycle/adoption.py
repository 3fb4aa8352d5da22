"""A run that is there already: adopted when it is the stack's own and runs what is declared, refused otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.provider.lifecycle.ending import stack_ids
from amlstack.provider.owned import is_ours
from amlstack.provider.states import COMPLETED, UNSUCCESSFUL
from amlstack.rpc import UNKNOWN, ErrorCode, ProviderError, bare

if TYPE_CHECKING:
    from amlstack.provider.resource import Call, Services, Values
    from amlstack.provider.runs import Record


def refuse_foreign(record: Record, state: Values) -> None:
    """Refuses a run that this stack may not adopt.

    Raises:
        ProviderError: It names whose the run is, and the way out.
    """
    owner, seen = str(state["owner"]), f"run {record.job_id}"
    remedy = "Give the job another name, or set `rerun`"
    if record.owner is None:
        seen = f"a run {record.job_id} exists that was not made here"
    elif record.owner != owner:
        seen = f"{seen} belongs to {record.owner}, not to {owner}"
    elif not is_ours(record, owner, *stack_ids(state)) and bare(state.get("stackId")) is not UNKNOWN:
        ours = next(iter(stack_ids(state)), "") or "none"
        seen = f"{seen} belongs to another stack named {owner}: its id is {record.stack}, this stack's is {ours}"
        remedy = (
            "If it is this very stack and its state was lost, give it the id that it had: set `amlstack:stack_id` to "
            f"{record.stack}. Otherwise give the job another name, or set `rerun`"
        )
    elif record.identity != state["identity"]:
        seen = f"{seen} exists with another declaration"
    else:
        return
    raise ProviderError(
        f"{seen} (it is {record.status}). A run is adopted only by the stack that made it. {remedy}",
        ErrorCode.ALREADY_EXISTS,
    )


def announce(services: Services, call: Call, record: Record, derived: str) -> None:
    """Says that nothing is submitted, at preview and when it is done.

    Args:
        services: Where to say it.
        call: Its preview decides about the tense.
        record: The run.
        derived: Digest of what would be derived for it now; empty when that is not known.
    """
    done = "is adopted" if call.preview else "adopted"
    message = f"run {record.job_id}, which is {record.status}"
    message = f"{message}, {done}" if call.preview else f"{done} {message}"
    message += ": it runs exactly what is declared, and nothing is submitted"
    if record.derived and derived and record.derived != derived:
        message += "; what is derived has changed since and does not apply to it"
    if record.status == COMPLETED or record.status in UNSUCCESSFUL:
        message += "; to run it again, set `rerun` to another word"
    if record.status in UNSUCCESSFUL:
        services.host.warning(message, call.urn)
    else:
        services.host.info(message, call.urn)
