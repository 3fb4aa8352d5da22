"""The Azure ML workspace and what it stands on."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from infra.settings.model.base import SettingsModel, name_of
from infra.settings.model.network import NetworkSettings
from infra.settings.model.parts import ApplicationInsights, ContainerRegistry, KeyVault, LogAnalytics, StorageAccount

WorkspaceName = Annotated[str, name_of(r"^[A-Za-z0-9][A-Za-z0-9_-]{2,32}\Z")]
WorkspaceRef = Annotated[
    str,
    name_of(
        r"^(/subscriptions/[^/]+/resource[Gg]roups/[^/]+/providers/Microsoft\.MachineLearningServices/workspaces/)?"
        r"[A-Za-z0-9][A-Za-z0-9_-]{2,32}\Z"
    ),
]
GroupName = Annotated[str, name_of(r"^[\w.()-]{0,89}[\w()-]\Z")]


class Workspace(SettingsModel):
    """The Azure ML workspace and what it stands on; a bare string is its name.

    Either ``name`` (the stack creates it) or ``existing`` (nothing of it is changed); `infra.settings.existing` says
    what goes with which.
    """

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["name"]}, {"required": ["existing"]}]})

    name: WorkspaceName = Field(
        "", description="Name of the workspace: 3 to 33 characters, letters, digits, '-' and '_'."
    )
    existing: WorkspaceRef | None = Field(
        None,
        description="Instead of `name`: a workspace that exists, by its name in `resource_group` or by its ARM id, of "
        "any resource group or subscription. Nothing of it is created, changed, protected or deleted; clusters, "
        "environments, code, data, jobs and schedules are put into it. docs/existing.md.",
    )
    display_name: str | None = Field(None, description="What the studio shows; the name when absent.")
    description: str | None = Field(None, description="A sentence for people who find the workspace in the portal.")
    public_network: bool = Field(
        True,
        description="Whether workspace, storage, key vault and registry answer from the internet (to Entra ID only).",
    )
    storage: StorageAccount = Field(default_factory=StorageAccount, description="The storage account.")
    key_vault: KeyVault = Field(default_factory=KeyVault, description="The key vault.")
    registry: ContainerRegistry = Field(default_factory=ContainerRegistry, description="The container registry.")
    insights: ApplicationInsights = Field(default_factory=ApplicationInsights, description="Application insights.")
    logs: LogAnalytics = Field(
        default_factory=LogAnalytics,
        description="Log analytics, which application insights that the stack creates write to.",
    )
    adopted: bool = Field(
        False,
        description="The group, the workspace and its parts were imported (docs/existing.md): they are the stack's, "
        "protected and deleted with it, and what the settings do not say of the workspace stays as it was found.",
    )
    name_salt: str = Field(
        "",
        description="Changes the names of storage account, key vault and registry: a destroyed vault's name stays "
        "taken until its purge protection ends.",
    )
    network: NetworkSettings | None = Field(None, description="Its network: managed by Azure ML, or the team's own.")
