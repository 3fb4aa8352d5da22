"""The Azure ML workspace and what it stands on."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from infra.settings.model.base import SettingsModel, arm_id, name_of, or_named
from infra.settings.model.cluster import ClusterName
from infra.settings.model.network import NetworkSettings
from infra.settings.model.workspace.parts import (
    ApplicationInsights,
    ContainerRegistry,
    KeyVault,
    LogAnalytics,
    StorageAccount,
)
from infra.settings.model.workspace.security import (
    DiagnosticsField,
    Encryption,
    LocksField,
    PublicNetworkField,
    ServerlessCompute,
    WorkspaceIdentity,
)

WorkspaceName = Annotated[str, name_of(r"^[A-Za-z0-9][A-Za-z0-9_-]{2,32}\Z")]
WorkspaceRef = Annotated[
    str,
    name_of(
        rf"^({arm_id('Microsoft.MachineLearningServices/workspaces').removesuffix('[^/]+')})?"
        r"[A-Za-z0-9][A-Za-z0-9_-]{2,32}\Z"
    ),
]
GroupName = Annotated[str, name_of(r"^[\w.()-]{0,89}[\w()-]\Z")]


class ResourceGroup(SettingsModel):
    """The resource group of the stack; a bare string is its name."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["name"]}, {"required": ["existing"]}]})

    name: GroupName | None = Field(None, description="Name of the resource group that the stack makes.")
    existing: GroupName | None = Field(
        None,
        description="Instead of `name`: a resource group that exists. The stack puts its resources into it; the group "
        "itself is not created, changed, protected or deleted. docs/existing.md.",
    )

    @property
    def called(self) -> str:
        """Its name in either case."""
        return self.existing or self.name or ""


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
    public_network: PublicNetworkField | None = Field(
        None,
        description="Whether workspace, storage, key vault and registry answer from the internet, to Entra ID only: "
        "true, false, or the addresses that they answer ({allow: [203.0.113.0/24]}). When absent false, on the stack "
        "`sandbox` true.",
    )
    identity: Annotated[WorkspaceIdentity, or_named("type", WorkspaceIdentity)] = Field(
        default_factory=WorkspaceIdentity,
        description="As whom the workspace acts on what it stands on: a type, or an object.",
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
    encryption: Annotated[Encryption, or_named("key", Encryption)] | None = Field(
        None,
        description="A key of your own for the workspace's metadata: a name, or an object. A workspace gets one when "
        "it is made, or never.",
    )
    high_business_impact: bool = Field(
        False,
        description="Microsoft collects less for its diagnosis, and nodes encrypt and clean their scratch disks. Set "
        "when the workspace is made; it never changes.",
    )
    diagnostics: DiagnosticsField | None = Field(
        None,
        description="Whether resource logs of the workspace go to log analytics, and which: true, false, or "
        "{categories: [RunEvent]}. When absent true, on the stack `sandbox` false.",
    )
    locks: LocksField = Field(
        (),
        description="What is locked against deletion by any tool: true for storage, key_vault and registry, or a list "
        "of them. Never the group or the workspace, whose clusters would stop scaling. It takes a deployer who may "
        "write locks (Owner or User Access Administrator). While it is there, Azure does not delete role assignments "
        "on what is locked either, so that the identity of a cluster goes only after the lock.",
    )
    image_build_compute: ClusterName | None = Field(
        None,
        description="The cluster that builds the images of your own environments, without GPUs; nobody else reaches a "
        "registry that is closed to the internet.",
    )
    serverless_compute: ServerlessCompute | None = Field(
        None, description="The subnet of serverless jobs; Azure's own network when absent."
    )
    name_salt: str = Field(
        "",
        description="Changes the names of storage account, key vault and registry: a destroyed vault's name stays "
        "taken until its purge protection ends.",
    )
    network: NetworkSettings | None = Field(None, description="Its network: managed by Azure ML, or the team's own.")
