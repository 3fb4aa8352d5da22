"""Microsoft.MachineLearningServices/workspaces: workspaces, their datastores, and lists that have no records."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Final

from amlstack.sandbox.files import datastores
from amlstack.sandbox.files.datastores import CONTAINER, DEFAULT_STORE, account_and_container
from amlstack.sandbox.kinds import network
from amlstack.sandbox.kinds.machine_learning import managed_network
from amlstack.sandbox.protocol import entra, requests
from amlstack.sandbox.protocol.addresses import ML
from amlstack.sandbox.protocol.kind import Body, KindContext, NameRule, Reply, ResourceKind, Schema
from amlstack.sandbox.protocol.refusals import Refused, invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.protocol.addresses import ArmPath
    from amlstack.sandbox.store.store import ResourceRow
    from amlstack.sandbox.store.tables import Operation


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
    DEFAULT_STORE: "AzureBlob",
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
        DEFAULT_STORE: f"azureml-blobstore-{properties['workspaceId']}",
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
                "isDefault": name == DEFAULT_STORE,
                "tags": {},
                "properties": {},
            }
        }
        context.store.resources.put(f"{workspace.id}/datastores/{name}", DATASTORES.type, workspace.key, body)


DATASTORES = Datastores()


_VAULT = "Microsoft.KeyVault/vaults"
_KEY = re.compile(r"https://([0-9a-z-]+)\.vault\.[^/]+/keys/([0-9a-z-]+)(?:/[0-9a-f]{32})?", re.IGNORECASE)


def check(context: KindContext, body: Body, before: Body | None) -> None:
    """Refuses identities that are none, and what cannot be changed on a workspace that exists.

    Raises:
        Refused: 400.
    """
    properties, old = body["properties"], (before or {}).get("properties", {})
    entra.check(context.store, body)
    _check_primary(body)
    if before is not None and properties.get("hbiWorkspace", old.get("hbiWorkspace")) != old.get("hbiWorkspace"):
        raise invalid("properties.hbiWorkspace", "it is set when a workspace is created, and cannot be changed.")
    was, given = old.get("encryption"), properties.get("encryption")
    if before is not None and given is not None and was is None:
        raise invalid("properties.encryption", "a workspace that exists cannot be given a customer-managed key.")
    if given is not None:
        _check_key(context, given, was)


def _check_primary(body: Body) -> None:
    primary = body["properties"].get("primaryUserAssignedIdentity")
    identity = body.get("identity") or {}
    users = {str(each).lower() for each in identity.get("userAssignedIdentities") or {}}
    where = "properties.primaryUserAssignedIdentity"
    if primary and str(primary).lower() not in users:
        raise invalid(where, f"'{primary}' is none of the workspace's user-assigned identities.")
    if not primary and identity.get("type") == "UserAssigned":
        raise invalid(where, "a workspace without a system-assigned identity needs a primary one.")


def _check_key(context: KindContext, given: Body, was: Body | None) -> None:
    where = "properties.encryption.keyVaultProperties"
    vault_id, key = given["keyVaultProperties"]["keyVaultArmId"], given["keyVaultProperties"]["keyIdentifier"]
    if was is not None and vault_id.lower() != was["keyVaultProperties"]["keyVaultArmId"].lower():
        raise invalid(f"{where}.keyVaultArmId", "another key comes from the same key vault.")
    vault = context.store.resources.get(vault_id)
    if vault is None or vault.type.lower() != _VAULT.lower():
        raise invalid(f"{where}.keyVaultArmId", f"'{vault_id}' was not found; expected the id of a {_VAULT}.")
    protected = vault.body["properties"]
    if not (protected.get("enablePurgeProtection") and protected.get("enableSoftDelete")):
        raise invalid(f"{where}.keyVaultArmId", "the key vault has no soft delete and purge protection.")
    found = _KEY.fullmatch(key)
    if found is None or found[1].lower() != vault.name.lower():
        raise invalid(f"{where}.keyIdentifier", f"'{key}' is no key of the vault '{vault.name}'.")
    if context.store.resources.get(f"{vault.id}/keys/{found[2]}") is None:
        raise invalid(f"{where}.keyIdentifier", f"the vault '{vault.name}' has no key '{found[2]}'.")


_WORKSPACE: Final = f"{ML}/workspaces"
EMPTY: Final = ("features", "connections")
"""Lists with nothing in them, as nothing makes an entry here."""


def answer(context: KindContext, path: ArmPath) -> Reply | None:
    """Answers a GET of such a list; None for every other path.

    Raises:
        Refused: 404; there is no such workspace.
    """
    if not path.collection:
        return None
    kind = path.type.lower()
    if kind == f"{ML}/registries".lower():
        # The registries of the group itself; azureml is Microsoft's own, and in no list of a subscription.
        return Reply(200, {"value": []})
    above, _, what = kind.rpartition("/")
    made = {"privateendpointconnections": _connections, "privatelinkresources": _link_resources}
    if above != _WORKSPACE.lower() or (what not in made and what not in EMPTY):
        return None
    workspace = context.store.resources.get(path.parent)
    if workspace is None:
        message = f"The Resource '{_WORKSPACE}/{path.parent.rpartition('/')[2]}' was not found."
        raise Refused(404, "ResourceNotFound", message)
    return Reply(200, {"value": made[what](context, workspace) if what in made else []})


def _connections(context: KindContext, workspace: ResourceRow) -> list[Body]:
    """One for each private endpoint that leads to the workspace, approved as all are here."""
    found: list[Body] = []
    for row in context.store.resources.of_type(network.ENDPOINTS):
        properties = row.body["properties"]
        links = [
            *(properties.get("privateLinkServiceConnections") or ()),
            *(properties.get("manualPrivateLinkServiceConnections") or ()),
        ]
        targets = {str(link.get("properties", {}).get("privateLinkServiceId")).lower() for link in links}
        if workspace.key in targets:
            shown = {
                "privateEndpoint": {"id": row.id},
                "privateLinkServiceConnectionState": {"status": "Approved", "description": "Auto-Approved"},
                "provisioningState": "Succeeded",
            }
            own = f"{workspace.id}/privateEndpointConnections/{row.name}"
            kind = f"{_WORKSPACE}/privateEndpointConnections"
            found.append({"id": own, "name": row.name, "type": kind, "properties": shown})
    return found


def _link_resources(context: KindContext, workspace: ResourceRow) -> list[Body]:
    """The one part that a private endpoint leads to, with the zones of its names.

    Source: learn.microsoft.com/azure/private-link/private-endpoint-dns (2026-11-22).
    """
    del context
    zones = ["privatelink.api.azureml.ms", "privatelink.notebooks.azure.net"]
    properties = {"groupId": "amlworkspace", "requiredMembers": ["default"], "requiredZoneNames": zones}
    own = f"{workspace.id}/privateLinkResources/amlworkspace"
    kind = f"{_WORKSPACE}/privateLinkResources"
    return [{"id": own, "name": "amlworkspace", "type": kind, "properties": properties}]


TYPE = f"{ML}/workspaces"

NEIGHBOURS = {
    "storageAccount": "Microsoft.Storage/storageAccounts",
    "keyVault": "Microsoft.KeyVault/vaults",
    "applicationInsights": "Microsoft.Insights/components",
    "containerRegistry": "Microsoft.ContainerRegistry/registries",
}
REQUIRED = ("storageAccount", "keyVault")
DIAGNOSED = (
    *("userDefinedRouteResults", "networkSecurityRuleResults", "resourceLockResults", "dnsResolutionResults"),
    *("storageAccountResults", "keyVaultResults", "containerRegistryResults", "applicationInsightsResults"),
    "otherResults",
)
"""Parts of a diagnosis; what is wrong with one would be listed there."""


class Workspaces(ResourceKind):
    """Azure Machine Learning workspaces, each born with its default datastores."""

    type = TYPE
    noun = "a workspace"
    names = NameRule(
        r"[A-Za-z0-9][A-Za-z0-9_-]{2,32}", "3 to 33 letters, digits, hyphens and underscores, a letter or digit first"
    )
    schema = Schema("machinelearningservices", "WorkspaceArgs", frozenset({"resourceGroupName", "workspaceName"}))
    ticks = 3
    ticks_delete = 2
    patches = True
    made_status = 202  # Microsoft's clients take no 201 here
    actions = ("provisionManagedNetwork", "listKeys", "listStorageAccountKeys", "resyncKeys", "diagnose")

    assigned = ResourceKind.assigned | {"discoveryUrl"}

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """Require that all a workspace stands on exists, and that its fixed parts do not change."""
        del path
        properties = body["properties"]
        check(context, body, None if before is None else before.body)
        for name, kind in NEIGHBOURS.items():
            given = properties.get(name)
            if given is None and name in REQUIRED:
                raise invalid(f"properties.{name}", "the required property is missing.")
            if given is not None and not _is(context, given, kind):
                raise invalid(f"properties.{name}", f"'{given}' was not found; expected the id of a {kind}.")
            old = None if before is None else before.body["properties"].get(name)
            if old is not None and name in REQUIRED and str(given).lower() != old.lower():
                raise invalid(f"properties.{name}", f"it cannot be changed from '{old}'.")
        managed_network.check(context, body, before)

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """The body with what the service assigns: an id, and open networks unless asked otherwise."""
        body = managed_network.filled(context, path, body)
        given = {"friendlyName": path.name, "publicNetworkAccess": "Enabled", **body["properties"]}
        extra = {"hbiWorkspace": False, "v1LegacyMode": False, "workspaceId": str(uuid.uuid4())}
        return {"kind": "Default", "sku": {"name": "Basic", "tier": "Basic"}, **body, "properties": {**extra, **given}}

    def keep(self, body: Body, before: ResourceRow) -> Body:
        """A second PUT keeps what the service assigned."""
        network = managed_network.kept(body["properties"], before)
        return {**before.body, **body, "properties": {**before.body["properties"], **body["properties"], **network}}

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The addresses of its data plane."""
        host = context.base.removeprefix("https://")
        return {
            "discoveryUrl": f"{context.base}/discovery",
            "mlFlowTrackingUri": f"azureml://{host}/mlflow/v1.0{resource.id}",
            **managed_network.shown(context, resource),
        }

    def operate(self, context: KindContext, resource: ResourceRow, name: str) -> Operation | None:
        """``provisionManagedNetwork``."""
        if name.lower() == "provisionmanagednetwork":
            return managed_network.start(context, resource)
        return super().operate(context, resource, name)

    def finished(self, context: KindContext, resource: ResourceRow, operation: Operation) -> None:
        """The managed network is provisioned."""
        if operation.kind == managed_network.PROVISION:
            managed_network.finish(context, resource)

    def result(self, context: KindContext, operation: Operation) -> Body | None:
        """The status of the managed network."""
        provisions = operation.kind == managed_network.PROVISION
        return managed_network.result(context, operation.resource) if provisions else None

    def action(self, context: KindContext, resource: ResourceRow, name: str, body: Body) -> Reply:
        """Keys and a diagnosis.

        Which account it is; its key is not there, as the sandbox's accounts are opened by Entra ID alone.
        """
        account = resource.body["properties"]["storageAccount"]
        if name.lower() == "liststorageaccountkeys":
            return Reply(200, {"userStorageKey": None})
        if name.lower() == "resynckeys":
            return Reply(200)
        if name.lower() == "diagnose":
            return Reply(200, {"value": {part: [] for part in DIAGNOSED}})
        if name.lower() != "listkeys":
            return super().action(context, resource, name, body)
        return Reply(200, {"userStorageArmId": account, "userStorageResourceId": account, "userStorageKey": None})

    def made(self, context: KindContext, resource: ResourceRow) -> None:
        """The default datastores."""
        make_defaults(context, resource)


def _is(context: KindContext, given: str, kind: str) -> bool:
    found = context.store.resources.get(given)
    return found is not None and found.type.lower() == kind.lower()


KIND = Workspaces()
