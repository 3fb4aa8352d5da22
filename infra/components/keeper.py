"""The keeper is made last and deleted first: it refuses the end of the stack before anything is deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from amlstack import resources
from infra import security
from infra.components.registration import after, known_of

if TYPE_CHECKING:
    from infra.components.workspace import AnyWorkspace
    from infra.components.workspace.security import StackResources
    from infra.settings import Settings

_NOT_IN_AZURE = (resources.StackRecord, resources.RunsGuard)
"""Ids of these are no ARM ids."""


def register(
    settings: Settings, workspace: AnyWorkspace, record: resources.StackRecord, registered: StackResources
) -> None:
    """Declare what comes after everything else: locks, and then the keeper.

    Args:
        settings: They say whether the stack is protected.
        workspace: The stack's own, or one that exists.
        record: The stack's record.
        registered: All resources of the stack.
    """
    workspace.lock(registered.locked_in)
    every = registered.every
    own = bool(workspace.part("workspace"))
    resources.StackKeeper(
        "keeper",
        stack_id=record.stack_id,
        owned=known_of(
            [
                each.job_id if isinstance(each, resources.JobResource) else each.id
                for each in every
                if not isinstance(each, _NOT_IN_AZURE)
            ]
        ),
        group=workspace.group_id if workspace.part("group") else None,
        workspace=workspace.workspace_id if own else None,
        # The engine deletes nothing else while what goes first is protected.
        opts=pulumi.ResourceOptions(
            protect=own and security.is_protected(settings, pulumi.get_stack()), depends_on=[after(*every)]
        ),
    )
