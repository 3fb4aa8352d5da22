"""Microsoft.MachineLearningServices/workspaces: workspaces, their datastores, and lists that have no records."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from amlstack.sandbox.files import storage
from amlstack.sandbox.kinds import private_link
from amlstack.sandbox.kinds.machine_learning import managed_network
from amlstack.sandbox.protocol import entra, requests
from amlstack.sandbox.protocol.addresses import ML, ArmPath
from amlstack.sandbox.protocol.kind import (
    Body,
    KindContext,
    Reply,
    ResourceKind,
)
from amlstack.sandbox.protocol.refusals import Refused, invalid, not_emulated
from amlstack.sandbox.protocol.times import iso

if TYPE_CHECKING:
    from amlstack.sandbox.store.store import ResourceRow
    from amlstack.sandbox.store.tables import Operation


TYPE: Final = f"{ML}/workspaces"
_KINDS: Final = "Default", "FeatureStore", "Hub", "Project"
"""Kinds of workspaces in the service's letters."""


class Datastores(ResourceKind):
    """Datastores: a name for a container of a storage account."""

    type = f"{TYPE}/datastores"

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """A type that the sandbox can store, and both names; those of a workspace's own do not change."""
        properties = body["properties"]
        kind = properties["datastoreType"]
        if kind not in storage.CONTAINER:
            known = ", ".join(storage.CONTAINER)
            raise not_emulated(f"datastores of type '{kind}', only {known}")
        for name in ("accountName", storage.CONTAINER[kind]):
            if not properties.get(name):
                raise invalid(f"properties.{name}", f"the required property '{name}' of a datastore is missing.")
            requests.check_folder_name(str(properties[name]), f"properties.{name}")
        if before is not None and before.name in OWN_DATASTORES:
            old, new = map(storage.account_and_container, (before.body["properties"], properties))
            if old != new:
                message = f"The datastore '{path.name}' belongs to the workspace; its account and container stay."
                raise Refused(400, "UserError", message)

    def keep(self, body: Body, before: ResourceRow) -> Body:
        """The service's own word on which is the default stays."""
        return {**body, "properties": {**body["properties"], "isDefault": before.body["properties"]["isDefault"]}}

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """The service's defaults; of credentials only their type, as every answer has them."""
        given = body["properties"]
        credentials = {name: value for name, value in given["credentials"].items() if name != "secrets"}
        return super().fill(context, path, {**body, "properties": {**given, "credentials": credentials}})

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The present type of the credentials."""
        return {"credentials": {"credentialsType": _credentials(context, resource)}}

    def select(self, context: KindContext, path: ArmPath, query: Mapping[str, str]) -> tuple[ResourceRow, ...]:
        """All, newest first, or the default one (``isDefault``), or those named (``names``)."""
        rows = super().select(context, path, query)[::-1]
        if query.get("isDefault", "").lower() == "true":
            rows = tuple(row for row in rows if row.body["properties"]["isDefault"])
        if names := query.get("names"):
            rows = tuple(row for row in rows if row.name in names.split(","))
        return rows

    def check_removal(self, context: KindContext, resource: ResourceRow) -> None:
        """A workspace keeps what it was born with."""
        if resource.name in OWN_DATASTORES:
            message = f"The datastore '{resource.name}' belongs to the workspace and cannot be deleted."
            raise Refused(400, "UserError", message)

    def action(self, context: KindContext, resource: ResourceRow, name: str, body: Body) -> Reply | Operation:
        """``listSecrets``: a SAS for the account, or its key where no secret that expires is asked for.

        Source: recordings of azure-ai-ml's tests: test_datastore of 2026-03-27, test_model of 2025-02-28.
        """
        if name.lower() != "listsecrets":
            return super().action(context, resource, name, body)
        properties = resource.body["properties"]
        if (kind := _credentials(context, resource)) == "None":
            raise Refused(400, "UserError", "No secrets for credentials of type None.")
        account = storage.account_and_container(properties)[0]
        if kind == "AccountKey" and not body.get("expirableSecret"):
            return Reply(200, {"secretsType": "AccountKey", "key": storage.account_key(context.key, account)})
        hours = float(body.get("expireAfterHours") or storage.HOURS)
        return Reply(
            200, {"secretsType": "Sas", "sasToken": f"?{storage.account_grant(context.key, account, hours=hours)}"}
        )

    def absent(self, path: ArmPath) -> Refused:
        """Its own words."""
        return Refused(404, "UserError", f"Could not find datastore: {path.name}.", inner=("NotFoundError",))


OWN_DATASTORES = {
    storage.DEFAULT_STORE: ("AzureBlob", "azureml-blobstore-{}"),
    "workspacefilestore": ("AzureFile", "azureml-filestore-{}"),
    storage.ARTIFACT_STORE: ("AzureBlob", "azureml"),
    "workspaceworkingdirectory": ("AzureFile", "code-{}"),
}
"""The datastores that every workspace is born with, in their order: type, and container by the workspace's id.

Source: learn.microsoft.com/azure/machine-learning/how-to-datastore; the order: azure-sdk-assets, test_datastore,
2026-03-27."""


def _credentials(context: KindContext, datastore: ResourceRow) -> str:
    """The type of a datastore's credentials: a workspace's own have none where it, or its account, goes by identities.

    That the account alone decides it is docs/reference/unproven.md#keyless-datastores: else Azure would give a
    signature that such an account refuses.
    """
    if datastore.name not in OWN_DATASTORES:
        return str(datastore.body["properties"]["credentials"]["credentialsType"])
    workspace = context.store.resources[datastore.parent].body["properties"]
    account = context.store.resources.get(workspace["storageAccount"])
    keyless = account is not None and account.body["properties"].get("allowSharedKeyAccess", True) is False
    return "None" if keyless or workspace.get("systemDatastoresAuthMode", "").lower() == "identity" else "AccountKey"


def make_defaults(context: KindContext, workspace: ResourceRow) -> None:
    """The datastores of a new workspace, in its storage account."""
    properties = workspace.body["properties"]
    _, _, subscription, _, group, *_ = properties["storageAccount"].split("/")
    for name, (kind, container) in OWN_DATASTORES.items():
        own = {
            **Datastores.defaults,
            "datastoreType": kind,
            "accountName": properties["storageAccount"].rsplit("/", 1)[-1],
            storage.CONTAINER[kind]: container.format(properties["workspaceId"]),
            "credentials": {"credentialsType": "AccountKey"},
        }
        if name == storage.DEFAULT_STORE:
            identity = "WorkspaceSystemAssignedIdentity"
            own |= {"isDefault": True, "serviceDataAccessAuthIdentity": identity}
            own |= {"subscriptionId": subscription, "resourceGroup": group}
        identity = f"{workspace.id}/datastores/{name}"
        context.store.resources.put(identity, Datastores.type, workspace.key, {"properties": own})


_KEY = re.compile(r"https://([0-9a-z-]+)\.vault\.[^/]+/keys/([0-9a-z-]+)(?:/[0-9a-f]{32})?", re.IGNORECASE)


def _check_fixed(context: KindContext, body: Body, before: ResourceRow | None) -> None:
    """Refuses identities that are none, and what cannot be changed on a workspace that exists.

    Raises:
        Refused: 400.
    """
    properties, old = body["properties"], {} if before is None else before.body["properties"]
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
    vault = context.store.resources.get(vault_id, NEIGHBOURS["keyVault"])
    if vault is None:
        expected = f"expected the id of a {NEIGHBOURS['keyVault']}."
        raise invalid(f"{where}.keyVaultArmId", f"'{vault_id}' was not found; {expected}")
    protected = vault.body["properties"]
    if not (protected.get("enablePurgeProtection") and protected.get("enableSoftDelete")):
        raise invalid(f"{where}.keyVaultArmId", "the key vault has no soft delete and purge protection.")
    found = _KEY.fullmatch(key)
    if found is None or found[1].lower() != vault.name.lower():
        raise invalid(f"{where}.keyIdentifier", f"'{key}' is no key of the vault '{vault.name}'.")
    if context.store.resources.get(f"{vault.id}/keys/{found[2]}") is None:
        raise invalid(f"{where}.keyIdentifier", f"the vault '{vault.name}' has no key '{found[2]}'.")


LISTS: Final = ("privateendpointconnections", "privatelinkresources", "features", "connections")
"""Lists of a workspace without records; the last two are empty, as nothing makes an entry here."""


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
    if above != TYPE.lower() or what not in LISTS:
        return None
    workspace = context.store.resources.get(path.parent)
    if workspace is None:
        raise Refused(404, "ResourceNotFound", f"The Resource '{TYPE}/{path.parent.rpartition('/')[2]}' was not found.")
    rows: list[Body] = []
    if what == "privateendpointconnections":
        rows = _connections(context, workspace)
    elif what == "privatelinkresources":
        rows = _link_resources(workspace)
    return Reply(200, {"value": rows})


def _connections(context: KindContext, workspace: ResourceRow) -> list[Body]:
    """One for each private endpoint that leads to the workspace, approved as all are here."""
    found: list[Body] = []
    for row, state in private_link.leading_to(context, workspace.key):
        shown = {
            "privateEndpoint": {"id": row.id},
            "privateLinkServiceConnectionState": state,
            "provisioningState": "Succeeded",
        }
        own = f"{workspace.id}/privateEndpointConnections/{row.name}"
        kind = f"{TYPE}/privateEndpointConnections"
        found.append({"id": own, "name": row.name, "type": kind, "properties": shown})
    return found


def _link_resources(workspace: ResourceRow) -> list[Body]:
    """The one part that a private endpoint leads to, with the zones of its names.

    Source: learn.microsoft.com/azure/private-link/private-endpoint-dns (2026-11-22).
    """
    zones = ["privatelink.api.azureml.ms", "privatelink.notebooks.azure.net"]
    properties = {"groupId": "amlworkspace", "requiredMembers": ["default"], "requiredZoneNames": zones}
    own = f"{workspace.id}/privateLinkResources/amlworkspace"
    kind = f"{TYPE}/privateLinkResources"
    return [{"id": own, "name": "amlworkspace", "type": kind, "properties": properties}]


_LETTERS: Final = {"keyVault": "Microsoft.Keyvault/vaults", "applicationInsights": "Microsoft.insights/components"}
"""Types in the letters in which a workspace answers the ids of its neighbours."""


def _in_letters(resource_id: str, kind: str) -> str:
    above, _, name = resource_id.partition("/providers/")
    return f"{above}/providers/{kind}/{name.rpartition('/')[2]}"


def _notebooks(name: str, region: str, workspace: str) -> str:
    """The host of a workspace's notebooks: its name is cut so that the first label has the 63 letters of DNS."""
    rest = f"-{region}-{workspace}"
    return f"ml-{name.replace('_', '')[: 60 - len(rest)]}{rest}.{region}.notebooks.azure.net".lower()


NEIGHBOURS = {
    "storageAccount": "Microsoft.Storage/storageAccounts",
    "keyVault": "Microsoft.KeyVault/vaults",
    "applicationInsights": "Microsoft.Insights/components",
    "containerRegistry": "Microsoft.ContainerRegistry/registries",
}
REQUIRED = ("storageAccount", "keyVault")
_DIAGNOSED: Final = (
    *("userDefinedRoute", "networkSecurityRule", "resourceLock", "dnsResolution"),
    *("storageAccount", "keyVault", "containerRegistry", "applicationInsights", "other"),
)
"""Parts of a diagnosis."""


def _diagnosis(context: KindContext, workspace: ResourceRow) -> Body:
    """The neighbours of a workspace that are gone.

    Source: test_workspace_diagnosis of azure-ai-ml (2023-04-25, 2023-10-31).
    """
    found: Body = {f"{part}Results": [] for part in _DIAGNOSED}
    for part in NEIGHBOURS:
        neighbour = workspace.body["properties"].get(part)
        if not neighbour or context.store.resources.get(neighbour) is not None:
            continue
        where = _in_letters(neighbour, _LETTERS[part]) if part in _LETTERS else neighbour
        gone = (
            f"Resource {where} has been removed, which is an essential resource to use Azure Machine Learning. "
            f"Please recover Resource {where}."
        )
        rows = [{"code": "DependencyResourceNotExist", "level": "Error", "message": gone}]
        if part in REQUIRED:
            message = f"Unable to check settings on resource '{where}'."
            rows.append({"code": "UnableToCheckDependencyResource", "level": "Warning", "message": message})
        found[f"{part}Results"] = rows
    return found


class Workspaces(ResourceKind):
    """Azure Machine Learning workspaces, each born with its default datastores."""

    type = TYPE

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """Require that all a workspace stands on exists, and that its fixed parts do not change."""
        properties = body["properties"]
        _check_fixed(context, body, before)
        for name, kind in NEIGHBOURS.items():
            given = properties.get(name)
            if given is None and name in REQUIRED:
                raise invalid(f"properties.{name}", "the required property is missing.")
            if given is not None and context.store.resources.get(given, kind) is None:
                raise invalid(f"properties.{name}", f"'{given}' was not found; expected the id of a {kind}.")
            old = None if before is None else before.body["properties"].get(name)
            if old is not None and name in REQUIRED and str(given).lower() != old.lower():
                raise invalid(f"properties.{name}", f"it cannot be changed from '{old}'.")
        rules = properties.get("networkAcls") or {}
        if properties.get("ipAllowlist") or rules.get("ipRules") or rules.get("defaultAction", "Allow") != "Allow":
            raise not_emulated("a workspace that only some addresses reach")
        managed_network.check(context, body, before)

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """The body with what the service assigns: an id, and open networks unless asked otherwise."""
        body = managed_network.filled(context, path, body)
        given = {"friendlyName": "", "publicNetworkAccess": "Enabled", **body["properties"]}
        extra = {"hbiWorkspace": False, "v1LegacyMode": False, "workspaceId": str(uuid.uuid4())}
        kind = str(body.get("kind", "Default"))
        if users := (body.get("identity") or {}).get("userAssignedIdentities"):
            users = {re.sub("(?i)/resourcegroups/", "/resourceGroups/", name): {} for name in users}
            body = {**body, "identity": {**body["identity"], "userAssignedIdentities": users}}
        named = {**body, "kind": {each.lower(): each for each in _KINDS}.get(kind.lower(), kind)}
        return {"sku": {"name": "Basic", "tier": "Basic"}, **named, "properties": {**extra, **given}}

    def keep(self, body: Body, before: ResourceRow) -> Body:
        """A second PUT keeps what the service assigned."""
        network = managed_network.kept(body["properties"], before)
        return {**before.body, **body, "properties": {**before.body["properties"], **body["properties"], **network}}

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The addresses of its data plane, and what the service says of every workspace.

        Ids of a vault and of Application Insights come in the service's own letters. Source: azure-powershell,
        Get-AzMLWorkspace (2025-11-04).
        """
        host = context.base.removeprefix("https://")
        properties, place = resource.body["properties"], resource.body["location"]
        own = str(properties["workspaceId"])
        linked = len(_connections(context, resource))
        account = context.store.resources.get(properties["storageAccount"])
        shown = {name: _in_letters(properties[name], kind) for name, kind in _LETTERS.items() if properties.get(name)}
        return {
            **shown,
            "tenantId": entra.TENANT,
            "creationTime": iso(resource.created),
            "storageHnsEnabled": bool(account and account.body["properties"].get("isHnsEnabled")),
            "privateLinkCount": linked,
            "sdkTelemetryAppInsightsKey": str(uuid.uuid5(uuid.UUID(own), "telemetry")),
            "notebookInfo": {
                "resourceId": uuid.uuid5(uuid.UUID(own), "notebooks").hex,
                "fqdn": _notebooks(resource.name, place, own),
                "isPrivateLinkEnabled": linked > 0,
                "notebookPreparationError": None,
            },
            "discoveryUrl": f"{context.base}/discovery",
            "mlFlowTrackingUri": f"azureml://{host}/mlflow/v1.0{resource.id}",
            **managed_network.shown(context, resource),
        }

    def render(self, context: KindContext, resource: ResourceRow) -> Body:
        """The resource; an identity has a principal, or says that it has none."""
        shown = super().render(context, resource)
        if shown.get("identity"):
            shown["identity"] = {"principalId": None, **shown["identity"]}
        return shown

    def finished(self, context: KindContext, resource: ResourceRow, operation: Operation) -> None:
        """The managed network is provisioned."""
        if operation.kind == managed_network.PROVISION:
            managed_network.finish(context, resource)

    def result(self, context: KindContext, operation: Operation) -> Body | None:
        """The status of the managed network, or a diagnosis."""
        if operation.kind == "diagnose":
            return {"value": _diagnosis(context, context.store.resources[operation.resource])}
        if operation.kind != managed_network.PROVISION:
            return None
        return managed_network.status_of(context.store.resources[operation.resource])

    def action(self, context: KindContext, resource: ResourceRow, name: str, body: Body) -> Reply | Operation:
        """The provisioning of its network, a diagnosis, and the account: its key is not there.

        The sandbox's accounts are opened by Entra ID alone.
        """
        account = resource.body["properties"]["storageAccount"]
        if name.lower() == "provisionmanagednetwork":
            return managed_network.start(context, resource)
        if name.lower() == "liststorageaccountkeys":
            return Reply(200, {"userStorageKey": None})
        if name.lower() == "resynckeys":
            return Reply(200)
        if name.lower() == "diagnose":
            return context.store.operations.start(resource.key, "diagnose", 2)
        if name.lower() != "listkeys":
            return super().action(context, resource, name, body)
        return Reply(200, {"userStorageArmId": account, "userStorageResourceId": account, "userStorageKey": None})

    def made(self, context: KindContext, resource: ResourceRow) -> None:
        """The default datastores."""
        make_defaults(context, resource)


KINDS = (Workspaces(), Datastores())
