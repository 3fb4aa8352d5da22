"""What a created workspace stands on: each made by the stack, or given by its ARM id."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from infra.settings.model.base import SettingsModel, arm_id, name_of

StorageId = Annotated[str, name_of(rf"^{arm_id('Microsoft.Storage/storageAccounts')}\Z")]
KeyVaultId = Annotated[str, name_of(rf"^{arm_id('Microsoft.KeyVault/vaults')}\Z")]
RegistryId = Annotated[str, name_of(rf"^{arm_id('Microsoft.ContainerRegistry/registries')}\Z")]
InsightsId = Annotated[str, name_of(rf"^{arm_id('Microsoft.Insights/components')}\Z")]
LogsId = Annotated[str, name_of(rf"^{arm_id('Microsoft.OperationalInsights/workspaces')}\Z")]

_GIVEN = (
    "ARM id of one that exists, in any resource group or subscription: nothing of it is created, changed or deleted."
)
_ABSENT = "The workspace that was imported has none, and the stack makes none for it."
_NAMED = "Its name, of one that was imported under another name than the stack would give it."


class StorageAccount(SettingsModel):
    """The storage account of the workspace."""

    existing: StorageId | None = Field(None, description=_GIVEN)
    name: Annotated[str, name_of(r"^[a-z0-9]{3,24}\Z")] | None = Field(None, description=_NAMED)
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
    name: Annotated[str, name_of(r"^[A-Za-z][A-Za-z0-9-]{1,22}[A-Za-z0-9]\Z")] | None = Field(None, description=_NAMED)
    purge_protection: bool = Field(
        True,
        description="Nobody purges what is deleted before its time is over. Azure turns it on and never off again.",
    )


class ContainerRegistry(SettingsModel):
    """The container registry of the workspace."""

    existing: RegistryId | None = Field(None, description=_GIVEN)
    absent: bool = Field(False, description=_ABSENT)
    name: Annotated[str, name_of(r"^[A-Za-z0-9]{5,50}\Z")] | None = Field(None, description=_NAMED)


class ApplicationInsights(SettingsModel):
    """Application insights of the workspace."""

    existing: InsightsId | None = Field(None, description=_GIVEN)
    absent: bool = Field(False, description=_ABSENT)
    name: Annotated[str, name_of(r"^[^/]{1,255}\Z")] | None = Field(None, description=_NAMED)


class LogAnalytics(SettingsModel):
    """The log analytics workspace that application insights write to."""

    existing: LogsId | None = Field(None, description=_GIVEN)
    name: Annotated[str, name_of(r"^[A-Za-z0-9][A-Za-z0-9-]{2,61}[A-Za-z0-9]\Z")] | None = Field(
        None, description=_NAMED
    )
