"""Runs that belong to a stack, as the workspace knows them: found by their marks, whatever the state file says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.provider.arm import ArmError
from amlstack.provider.runs import record_of
from amlstack.provider.states import is_active
from amlstack.run_identity import OWNER

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from amlstack.provider.arm import ArmClient, Response
    from amlstack.provider.runs import Record

_QUERY = {"listViewType": "All", "properties": OWNER}
"""The service selects by the mark's name only: which characters a value may have in that filter is not documented."""
_MOST_PAGES = 10_000
"""More pages than any workspace has; a list that never ends is an error and no reason to hang."""


def is_ours(record: Record, owner: str, *stack_ids: str) -> bool:
    """Whether a record belongs to a stack.

    Args:
        record: The record.
        owner: ``project/stack``.
        stack_ids: The stack's random id, as far as it is known; several while it is being changed.

    The record of a program that gives no stack id has none: its owner decides.
    """
    return record.owner == owner and (record.stack is None or record.stack in stack_ids)


def active(arm: ArmClient, workspace: str, owner: str, stack_id: str) -> list[Record]:
    """The runs of a stack that have not ended, kept ones included, sorted by id.

    Args:
        arm: Azure Resource Manager.
        workspace: ARM id of the workspace. One that is not there has no runs.
        owner: ``project/stack``.
        stack_id: The stack's random id; empty when it has none.

    Raises:
        ArmError: The list could not be read to its end. No part of it is given then: a missing run could be ended.
    """
    marked = _marked(arm, workspace)
    ours = {one.job_id: one for one in marked if is_ours(one, owner, stack_id) and is_active(one.status)}
    return [ours[run] for run in sorted(ours)]


def of_others(arm: ArmClient, workspace: str, owners: Collection[str], stack_id: str) -> list[Record]:
    """The runs of other stacks on the same workspace that have not ended, sorted by id.

    Args:
        arm: Azure Resource Manager.
        workspace: ARM id of the workspace.
        owners: What the asking stack is called, now and formerly.
        stack_id: Its random id; empty when it has none.

    Raises:
        ArmError: The list could not be read to its end.
    """
    theirs = [
        one
        for one in _marked(arm, workspace)
        if is_active(one.status) and (one.stack != stack_id if one.stack and stack_id else one.owner not in owners)
    ]
    return sorted(theirs, key=lambda one: one.job_id)


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


def pages(arm: ArmClient, workspace: str, *, most: int) -> Iterator[list[Record]]:
    """Every run of any stack by pages of the list, each asked for once: for what may as well be asked otherwise.

    Args:
        arm: Azure Resource Manager.
        workspace: ARM id of the workspace. One that is not there has no runs.
        most: So many pages are asked for at most.

    Raises:
        ArmError: A page could not be read, or there are more.
    """
    response = arm.look(f"{workspace}/jobs", query=_QUERY)
    for _ in range(most - 1):
        yield _records(response)
        following = _following(response)
        if not following:
            return
        response = arm.look(following, None)
    yield _records(response)
    if _following(response):
        raise ArmError(0, "ListTooLong", f"the list of jobs of {workspace} has more than {most} pages")


def _marked(arm: ArmClient, workspace: str) -> list[Record]:
    """Every run of any stack."""
    found: list[Record] = []
    response = arm.get(f"{workspace}/jobs", query=_QUERY, allow=(404,))
    for _ in range(_MOST_PAGES):
        found += _records(response)
        following = _following(response)
        if not following:
            break
        response = arm.request("GET", following, None)
    else:
        raise ArmError(0, "ListTooLong", f"the list of jobs of {workspace} does not end")
    return found


def _records(response: Response) -> list[Record]:
    body = response.body if response.status != 404 and isinstance(response.body, dict) else {}
    return [record_of(str(one.get("name") or ""), one) for one in body.get("value") or ()]


def _following(response: Response) -> str:
    """The address of the next page; empty when there is none."""
    body = response.body if response.status != 404 and isinstance(response.body, dict) else {}
    return str(body.get("nextLink") or "")
