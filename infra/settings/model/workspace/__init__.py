"""The Azure ML workspace, what it stands on, and its security."""

from infra.settings.model.workspace.whole import GroupName, ResourceGroup, Workspace

__all__ = ["GroupName", "ResourceGroup", "Workspace"]
