"""People, groups and applications that work in the workspace, by the names of Azure's roles."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from infra.settings.model.base import SettingsModel, name_of

ObjectId = Annotated[str, name_of(r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")]


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
