"""Where a workspace and its jobs are looked at in a browser: the studio's addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amlstack.cli.workspace.found_jobs import WorkspaceJob
    from amlstack.provider.arm import ArmClient


def workspace(arm: ArmClient, workspace_id: str) -> str:
    """The page of a workspace."""
    return f"{arm.cloud.studio}/?wsid={workspace_id}"


def job(arm: ArmClient, found: WorkspaceJob) -> str:
    """The page of a job: as the service gives it, else composed."""
    given = found.record.services.get("Studio", "")
    return given if given.startswith("https://") else f"{arm.cloud.studio}/runs/{found.name}?wsid={found.workspace}"
