"""Microsoft.MachineLearningServices/workspaces/datastores: those that every workspace is born with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.sandbox.arm.ids import ML
from amlstack.sandbox.data import sas
from amlstack.sandbox.kinds.base import Body, KindContext, NameRule, Reply, ResourceKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.arm.ids import ArmPath
    from amlstack.sandbox.store.store import ResourceRow

DEFAULT = "workspaceblobstore"


class Datastores(ResourceKind):
    """Datastores, read only."""

    type = f"{ML}/workspaces/datastores"
    noun = "a datastore"
    names = NameRule(r"[a-z0-9_]{1,255}", "1 to 255 lower-case letters, digits and underscores")
    tracked = False
    read_only = True
    actions = ("listSecrets",)
    note = "workspaceblobstore and workspaceartifactstore of every workspace, read only; listSecrets gives a SAS."

    def select(self, context: KindContext, path: ArmPath, query: Mapping[str, str]) -> tuple[ResourceRow, ...]:
        """All, or the default one (``isDefault``), or those named (``names``)."""
        rows = context.store.resources.under(path.parent, self.type)
        if query.get("isDefault", "").lower() == "true":
            rows = tuple(row for row in rows if row.body["properties"]["isDefault"])
        if names := query.get("names"):
            rows = tuple(row for row in rows if row.name in names.split(","))
        return rows

    def action(self, context: KindContext, resource: ResourceRow, name: str, body: Body) -> Reply:
        """``listSecrets``: a SAS for the container, as for an account without shared keys."""
        if name.lower() != "listsecrets":
            return super().action(context, resource, name, body)
        properties = resource.body["properties"]
        token = sas.grant(context.key, properties["accountName"], properties["containerName"], "racwl")
        return Reply(200, {"secretsType": "Sas", "sasToken": token})


def make_defaults(context: KindContext, workspace: ResourceRow) -> None:
    """The two blob datastores of a new workspace, in its storage account."""
    properties = workspace.body["properties"]
    account = properties["storageAccount"].rsplit("/", 1)[-1]
    containers = {
        DEFAULT: f"azureml-blobstore-{properties['workspaceId']}",
        "workspaceartifactstore": "azureml",
    }
    for name, container in containers.items():
        body = {
            "properties": {
                "datastoreType": "AzureBlob",
                "accountName": account,
                "containerName": container,
                "endpoint": "core.windows.net",
                "protocol": "https",
                "credentials": {"credentialsType": "None"},
                "serviceDataAccessAuthIdentity": "WorkspaceSystemAssignedIdentity",
                "isDefault": name == DEFAULT,
                "tags": {},
                "properties": {},
            }
        }
        context.store.resources.put(f"{workspace.id}/datastores/{name}", KIND.type, workspace.key, body)


KIND = Datastores()
