"""Datastores: storage accounts that jobs read and write under a name of the workspace."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from infra.settings.model.base import SettingsModel, Tags, arm_id, name_of

DatastoreName = Annotated[str, name_of(r"^[a-z0-9_]{1,255}\Z")]
_ACCOUNT = arm_id("Microsoft.Storage/storageAccounts").removesuffix("[^/]+")
StorageAccount = Annotated[str, name_of(rf"^({_ACCOUNT})?[a-z0-9]{{3,24}}\Z")]
_KEYS = frozenset(
    {"account_key", "key", "sas_token", "sas", "client_secret", "client_id", "tenant_id", "certificate", "credentials"}
)
"""What azure-ai-ml's own files say where a datastore keeps a credential."""


class Datastore(SettingsModel):
    """A datastore that goes by identities: whoever reads or writes does so under a role on the account."""

    name: DatastoreName = Field(
        description="Name in the workspace, as in `azureml://datastores/NAME/paths/…`: lower-case letters, digits, '_'."
    )
    kind: Literal["blob", "adls_gen2", "file"] = Field(
        "blob",
        description="blob: a container of blobs; adls_gen2: a file system of an account with hierarchical namespace; "
        "file: a file share.",
    )
    account: StorageAccount | None = Field(
        None,
        description="Storage account that exists: the name of one in the stack's resource group, or the ARM id of any "
        "other. It is not changed, but for the roles of the clusters' identities on it. The workspace's own account "
        "when absent.",
    )
    container: str = Field(
        min_length=1,
        max_length=63,
        description="Container, file system or share. In an account that the stack creates, which is that of its "
        "workspace, it is created and deleted with the datastore; everywhere else it exists already, and stays.",
    )
    read_only: bool = Field(
        False, description="The clusters' identities get the right to read the account, not to write to it."
    )
    description: str | None = Field(None, description="A sentence for people who find the datastore in the studio.")
    tags: Tags = Field(default_factory=dict, description="Tags of the datastore.")

    @model_validator(mode="before")
    @classmethod
    def _without_keys(cls, value: Any) -> Any:
        found = sorted(_KEYS & value.keys()) if isinstance(value, dict) else []
        if found:
            raise ValueError(
                f"`{found[0]}` is a credential|A stack's datastores go by identities: a key in a datastore is handed "
                "to everybody who may use the workspace, does not expire, and many tenants deny accounts that take "
                "keys; leave it out, and give whoever reads the data a role on the account"
            )
        return value
