"""Microsoft.MachineLearningServices/workspaces."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from amlstack.sandbox.arm.ids import ML
from amlstack.sandbox.arm.refusals import invalid
from amlstack.sandbox.kinds.base import Body, KindContext, NameRule, Reply, ResourceKind, Schema
from amlstack.sandbox.kinds.machine_learning import datastores, managed_network, workspace_security

if TYPE_CHECKING:
    from amlstack.sandbox.arm.ids import ArmPath
    from amlstack.sandbox.store.store import ResourceRow
    from amlstack.sandbox.store.tables.operations import Operation

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
        """What a workspace stands on must exist; which of it cannot change later."""
        del path
        properties = body["properties"]
        workspace_security.check(context, body, None if before is None else before.body)
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
        """What the service assigns: an id, and open networks unless asked otherwise."""
        body = managed_network.filled(context, path, body)
        given = {"friendlyName": path.name, "publicNetworkAccess": "Enabled", **body["properties"]}
        extra = {"hbiWorkspace": False, "v1LegacyMode": False, "workspaceId": str(uuid.uuid4())}
        return {"kind": "Default", "sku": {"name": "Basic", "tier": "Basic"}, **body, "properties": {**extra, **given}}

    def keep(self, body: Body, before: ResourceRow) -> Body:
        """A second PUT keeps what the service assigned."""
        network = managed_network.kept(body["properties"], before)
        return {**before.body, **body, "properties": {**before.body["properties"], **body["properties"], **network}}

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """Where its data plane is."""
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
        datastores.make_defaults(context, resource)


def _is(context: KindContext, given: str, kind: str) -> bool:
    found = context.store.resources.get(given)
    return found is not None and found.type.lower() == kind.lower()


KIND = Workspaces()
