"""Microsoft.MachineLearningServices/workspaces/datastores: those of every workspace, and those that are registered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.sandbox.files import datastores
from amlstack.sandbox.files.datastores import CONTAINER, DEFAULT, account_and_container
from amlstack.sandbox.protocol import requests
from amlstack.sandbox.protocol.ids import ML
from amlstack.sandbox.protocol.kind import Body, KindContext, NameRule, Reply, ResourceKind, Schema
from amlstack.sandbox.protocol.refusals import Refused, invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.protocol.ids import ArmPath
    from amlstack.sandbox.store.store import ResourceRow


class Datastores(ResourceKind):
    """Datastores: a name for a container of a storage account."""

    type = f"{ML}/workspaces/datastores"
    noun = "a datastore"
    names = NameRule(r"[a-z0-9_]{1,255}", "1 to 255 lower-case letters, digits and underscores")
    schema = Schema(
        "machinelearningservices",
        "DatastoreArgs",
        frozenset({"resourceGroupName", "workspaceName", "name", "skipValidation"}),
        envelope=frozenset(),
        wrapped=True,
    )
    tracked = False
    actions = ("listSecrets",)

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """A type that the sandbox can store, and both names; those of a workspace's own do not change."""
        properties = body["properties"]
        kind = properties["datastoreType"]
        if kind not in CONTAINER:
            known = ", ".join(CONTAINER)
            raise invalid("properties.datastoreType", f"the sandbox has no '{kind}'; it has {known}.")
        for name in ("accountName", CONTAINER[kind]):
            if not properties.get(name):
                raise invalid(f"properties.{name}", f"the required property '{name}' of a datastore is missing.")
            requests.check_folder_name(str(properties[name]), f"properties.{name}")
        if before is not None and _is_own(before):
            old, new = map(account_and_container, (before.body["properties"], properties))
            if old != new:
                message = f"The datastore '{path.name}' belongs to the workspace; its account and container stay."
                raise Refused(400, "UserError", message)
        del context

    def keep(self, body: Body, before: ResourceRow) -> Body:
        """The service's own word on which is the default stays."""
        kept = {name: before.body["properties"][name] for name in ("isDefault",) if name in before.body["properties"]}
        return {**body, "properties": {**body["properties"], **kept}}

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """The service's defaults; of credentials only their type, as every answer has them."""
        del context, path
        given = body["properties"]
        credentials = {name: value for name, value in given["credentials"].items() if name != "secrets"}
        defaults: Body = {"endpoint": "core.windows.net", "protocol": "https", "serviceDataAccessAuthIdentity": "None"}
        rest: Body = {"isDefault": False, "tags": {}, "properties": {}}
        return {**body, "properties": {**defaults, **rest, **given, "credentials": credentials}}

    def select(self, context: KindContext, path: ArmPath, query: Mapping[str, str]) -> tuple[ResourceRow, ...]:
        """All, or the default one (``isDefault``), or those named (``names``)."""
        rows = context.store.resources.under(path.parent, self.type)
        if query.get("isDefault", "").lower() == "true":
            rows = tuple(row for row in rows if row.body["properties"]["isDefault"])
        if names := query.get("names"):
            rows = tuple(row for row in rows if row.name in names.split(","))
        return rows

    def check_removal(self, context: KindContext, resource: ResourceRow) -> None:
        """A workspace keeps what it was born with."""
        del context
        if _is_own(resource):
            message = f"The datastore '{resource.name}' belongs to the workspace and cannot be deleted."
            raise Refused(400, "UserError", message)

    def action(self, context: KindContext, resource: ResourceRow, name: str, body: Body) -> Reply:
        """``listSecrets``: a SAS for the container, as for an account without shared keys."""
        if name.lower() != "listsecrets":
            return super().action(context, resource, name, body)
        token = datastores.grant(context.key, *account_and_container(resource.body["properties"]), "racwl")
        return Reply(200, {"secretsType": "Sas", "sasToken": token})


def _is_own(resource: ResourceRow) -> bool:
    return resource.name in _OWN


_OWN = {
    DEFAULT: "AzureBlob",
    "workspaceartifactstore": "AzureBlob",
    "workspacefilestore": "AzureFile",
    "workspaceworkingdirectory": "AzureFile",
}
"""What every workspace is born with, with types (learn.microsoft.com/azure/machine-learning/how-to-datastore)."""


def make_defaults(context: KindContext, workspace: ResourceRow) -> None:
    """The datastores of a new workspace, in its storage account."""
    properties = workspace.body["properties"]
    account = properties["storageAccount"].rsplit("/", 1)[-1]
    containers = {
        DEFAULT: f"azureml-blobstore-{properties['workspaceId']}",
        "workspaceartifactstore": "azureml",
        "workspacefilestore": f"azureml-filestore-{properties['workspaceId']}",
        "workspaceworkingdirectory": f"code-{properties['workspaceId']}",
    }
    for name, container in containers.items():
        body = {
            "properties": {
                "datastoreType": _OWN[name],
                "accountName": account,
                CONTAINER[_OWN[name]]: container,
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
