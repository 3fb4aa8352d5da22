"""The workspace in which jobs are rehearsed: its names, without the client that makes it."""

from __future__ import annotations

from infra.names import Names

GROUP = "rehearsal"


def rehearsal_workspace() -> str:
    """The ARM id of the workspace in which jobs are rehearsed, in every sandbox the same."""
    from amlstack.sandbox.arm.entra import SUBSCRIPTION

    return Names(SUBSCRIPTION, GROUP, GROUP).workspace_id
