"""The Azure ML workspace: its resource group, what it stands on, and who works in it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from amlstack.base.models import matching
from infra.settings.model.base import ObjectId, SettingsModel, arm_id, given_by_id, or_named
from infra.settings.model.cluster import ClusterName
from infra.settings.model.network import NetworkSettings
from infra.settings.model.workspace_security import (
    DiagnosticsField,
    Encryption,
    LocksField,
    PublicNetworkField,
    ServerlessCompute,
    WorkspaceIdentity,
)

StorageId = Annotated[str, given_by_id("Microsoft.Storage/storageAccounts")]
KeyVaultId = Annotated[str, given_by_id("Microsoft.KeyVault/vaults")]
RegistryId = Annotated[str, given_by_id("Microsoft.ContainerRegistry/registries")]
InsightsId = Annotated[str, given_by_id("Microsoft.Insights/components")]
LogsId = Annotated[str, given_by_id("Microsoft.OperationalInsights/workspaces")]

StorageName = Annotated[
    str, matching(r"^[a-z0-9]{3,24}\Z", "A storage account's name has 3 to 24 lower-case letters and digits")
]
RegistryName = Annotated[
    str, matching(r"^[A-Za-z0-9]{5,50}\Z", "A container registry's name has 5 to 50 letters and digits")
]
InsightsName = Annotated[str, matching(r"^[^/]{1,255}\Z", "It has 1 to 255 characters, no '/'")]
LogsName = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9][A-Za-z0-9-]{2,61}[A-Za-z0-9]\Z", "It has 4 to 63 letters, digits and '-', no '-' at either end"
    ),
]

_GIVEN = (
    "ARM id of one that exists, in any resource group or subscription: nothing of it is created, changed or deleted."
)
_ABSENT = "The workspace that was imported has none, and the stack makes none for it."
_NAMED = "Its name, of one that was imported under another name than the stack would give it."


class StorageAccount(SettingsModel):
    """The storage account of the workspace."""

    existing: StorageId | None = Field(None, description=_GIVEN)
    name: StorageName | None = Field(None, description=_NAMED)
    redundancy: Literal["lrs", "zrs", "grs", "gzrs", "ragrs", "ragzrs"] = Field(
        "lrs",
        description="Where the copies are: lrs in one data centre, zrs in three zones, grs and gzrs in another region "
        "too. Azure changes lrs to zrs on request, not by an edit.",
    )
    soft_delete_days: int | None = Field(
        None,
        ge=0,
        le=365,
        description="Days for which deleted blobs and containers can be brought back; 0 for none. When absent 7, on "
        "the stack `sandbox` none.",
    )
    infrastructure_encryption: bool | None = Field(
        None,
        description="A second layer of encryption. Set when the account is made; one that exists keeps what it has. "
        "When absent true, on the stack `sandbox` false.",
    )


class KeyVault(SettingsModel):
    """The key vault of the workspace."""

    existing: KeyVaultId | None = Field(None, description=_GIVEN)
    name: ClusterName | None = Field(None, description=_NAMED)
    purge_protection: bool = Field(
        True,
        description="Nobody purges what is deleted before its time is over. Azure turns it on and never off again.",
    )


class ContainerRegistry(SettingsModel):
    """The container registry of the workspace."""

    existing: RegistryId | None = Field(None, description=_GIVEN)
    absent: bool = Field(False, description=_ABSENT)
    name: RegistryName | None = Field(None, description=_NAMED)


class ApplicationInsights(SettingsModel):
    """Application insights of the workspace."""

    existing: InsightsId | None = Field(None, description=_GIVEN)
    absent: bool = Field(False, description=_ABSENT)
    name: InsightsName | None = Field(None, description=_NAMED)


class LogAnalytics(SettingsModel):
    """The log analytics workspace that application insights write to."""

    existing: LogsId | None = Field(None, description=_GIVEN)
    name: LogsName | None = Field(None, description=_NAMED)


WorkspaceName = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9][A-Za-z0-9_-]{2,32}\Z",
        "It has 3 to 33 characters: letters, digits, '-' and '_', a letter or digit first",
    ),
]
WorkspaceRef = Annotated[
    str,
    matching(
        rf"^({arm_id('Microsoft.MachineLearningServices/workspaces').removesuffix('[^/]+')})?"
        r"[A-Za-z0-9][A-Za-z0-9_-]{2,32}\Z",
        "A workspace that exists is given by its name in `resource_group`, or by its ARM id, "
        "/subscriptions/…/resourceGroups/…/providers/Microsoft.MachineLearningServices/workspaces/<name>",
    ),
]
GroupName = Annotated[
    str,
    matching(
        r"^[\w.()-]{0,89}[\w()-]\Z",
        "A resource group's name has 1 to 90 letters, digits, '_', '-', '.', '(' and ')', no '.' at the end",
    ),
]


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

    Either ``name`` (the stack creates it) or ``existing`` (nothing of it is changed);
    `infra.settings.existing_workspace` says what goes with which.
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


class Principal(SettingsModel):
    """Somebody in Entra ID."""

    id: ObjectId = Field(description="Object id, as `az ad user show --id NAME --query id` prints it.")
    type: Literal["user", "group", "service_principal"] = Field(
        description="What it is; of an application the object id is that of its service principal."
    )


class WorkspaceAccess(SettingsModel):
    """One role on the workspace, and who gets it."""

    role: str = Field(
        min_length=1, description="Azure's name of the role, e.g. `AzureML Data Scientist`; docs/data.md lists them."
    )
    principals: tuple[Principal, ...] = Field(description="Who gets it.")

    @model_validator(mode="after")
    def _given(self) -> WorkspaceAccess:
        if not self.principals:
            raise ValueError("`principals` is empty|A role is given to somebody")
        return self
