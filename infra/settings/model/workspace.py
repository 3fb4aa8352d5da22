"""The Azure ML workspace and what it stands on."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from infra.settings.model.base import SettingsModel, name_of

WorkspaceName = Annotated[str, name_of(r"^[A-Za-z0-9][A-Za-z0-9_-]{2,32}\Z")]
GroupName = Annotated[str, name_of(r"^[\w.()-]{0,89}[\w()-]\Z")]


class Workspace(SettingsModel):
    """The Azure ML workspace and what it stands on; a bare string is its name."""

    name: WorkspaceName = Field(description="Name of the workspace: 3 to 33 characters, letters, digits, '-' and '_'.")
    display_name: str | None = Field(None, description="What the studio shows; the name when absent.")
    description: str | None = Field(None, description="A sentence for people who find the workspace in the portal.")
    public_network: bool = Field(
        True,
        description="Whether workspace, storage, key vault and registry answer from the internet (to Entra ID only).",
    )
    name_salt: str = Field(
        "",
        description="Changes the names of storage account, key vault and registry: a destroyed vault's name stays "
        "taken until its purge protection ends.",
    )
