"""Data assets: data that jobs name instead of a place."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, model_validator

from infra.settings.model.base import EnvironmentName, SettingsModel, Tags, name_of
from infra.settings.model.datastore import DatastoreName

VersionName = Annotated[str, name_of(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,254}\Z")]
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


class DataAsset(SettingsModel):
    """One data asset; jobs read it as `azureml:NAME@latest` or `azureml:NAME:VERSION`."""

    name: EnvironmentName = Field(description="Name under which jobs refer to it.")
    path: str = Field(
        min_length=1,
        description="Where the data lie: a file or folder of this machine, a path in the project, which `up` uploads; "
        "or an address (`azureml://datastores/NAME/paths/…`, `https://…`), which is registered as it is.",
    )
    type: Literal["uri_folder", "uri_file", "mltable"] = Field(
        "uri_folder", description="A folder, a file, or a folder with a file `MLTable`."
    )
    version: VersionName | None = Field(
        None,
        description="Version of data at an address. Data of this machine have none here: their version is made from "
        "their content.",
    )
    datastore: DatastoreName | None = Field(
        None, description="Datastore that data of this machine are uploaded to; `workspaceblobstore` when absent."
    )
    description: str | None = Field(None, description="A sentence for people who find the data in the studio.")
    tags: Tags = Field(default_factory=dict, description="Tags of the version.")

    @model_validator(mode="after")
    def _versioned(self) -> DataAsset:
        if self.local and self.version is not None:
            raise ValueError(
                f"`{self.path}` lies on this machine and has the `version` {self.version}|The version of data of this "
                "machine is made from their content; leave `version` out"
            )
        if not self.local and self.version is None:
            raise ValueError(
                f"`{self.path}` is an address and has no `version`|Nobody sees from here whether data at an address "
                'change, so their version is yours to name; write `version: "1"`'
            )
        if not self.local and self.datastore is not None:
            raise ValueError(
                f"`{self.path}` is an address, and there is a `datastore`|`datastore` says where data of this machine "
                "are uploaded; leave it out"
            )
        return self

    @property
    def local(self) -> bool:
        """Whether the data lie on this machine."""
        return self.path.startswith("file:") or _ADDRESS.match(self.path) is None
