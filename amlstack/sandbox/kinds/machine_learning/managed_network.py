"""The managed network of a workspace: its modes, its outbound rules, and how it is provisioned.

Sources: learn.microsoft.com/azure/machine-learning/how-to-managed-network (2026-11-22), the REST specification of
``ManagedNetworkProvisions_ProvisionManagedNetwork``, and recordings of azure-ai-ml's test_workspace (2023-05-09), which
have the service's own rules.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from amlstack.sandbox.protocol.addresses import ML, ArmPath
from amlstack.sandbox.protocol.kind import Body, KindContext, Reply, ResourceKind
from amlstack.sandbox.protocol.refusals import Refused, invalid
from amlstack.sandbox.store.store import COMPUTE, ResourceRow

if TYPE_CHECKING:
    from amlstack.sandbox.store.tables import Operation

RULES: Final = f"{ML}/workspaces/outboundRules"
OFF: Final = "Disabled"
OPEN: Final = "AllowInternetOutbound"
APPROVED: Final = "AllowOnlyApprovedOutbound"
STRICTER: Final = (OFF, OPEN, APPROVED)
ACTIVE: Final = "Active"
INACTIVE: Final = "Inactive"
PROVISION: Final = "provision"
TICKS: Final = 4
STORAGE_HOSTS: Final = (".blob.core.windows.net", ".file.core.windows.net", ".dfs.core.windows.net")
_PARTS: Final = {"storageAccount": ("blob", "file"), "keyVault": ("vault",), "containerRegistry": ("registry",)}
_SPARK: Final = frozenset({"storageAccount"})
"""Parts whose endpoints Spark may use."""
_TAGS: Final = (
    "AzureActiveDirectory",
    "AzureContainerRegistry",
    "AzureFrontDoor.FirstParty",
    "AzureMachineLearning",
    "AzureMonitor",
    "AzureResourceManager",
    "BatchNodeManagement",
    "MicrosoftContainerRegistry",
    "VirtualNetwork",
)
"""Service tags that the service allows by itself under `APPROVED`."""


def mode_of(workspace: ResourceRow | None) -> str:
    """The isolation of a workspace."""
    return str(_settings(workspace).get("isolationMode") or OFF)


def status_of(workspace: ResourceRow) -> Body:
    """The status of its network; empty without one."""
    return dict(_settings(workspace).get("status") or {})


def is_active(workspace: ResourceRow) -> bool:
    """True where its network has been provisioned."""
    return status_of(workspace).get("status") == ACTIVE


def is_awaited(workspace: ResourceRow) -> bool:
    """True where there is a network that has not been provisioned."""
    return mode_of(workspace) != OFF and not is_active(workspace)


def check(context: KindContext, body: Body, before: ResourceRow | None) -> None:
    """Check the way that a workspace may go from the isolation that it has."""
    given = body["properties"].get("managedNetwork") or {}
    old = mode_of(before)
    new = str(given.get("isolationMode") or old)
    if STRICTER.index(new) < STRICTER.index(old):
        message = f"The isolation mode cannot be changed from '{old}' to '{new}'."
        raise Refused(400, "ManagedNetworkIsolationModeNotSupported", message, "properties.managedNetwork")
    names = [row.name for row in context.store.resources.under(before.key, COMPUTE)] if before is not None else []
    if old == OFF != new and names:
        message = (
            f"A managed network cannot be enabled while the workspace has computes: {', '.join(names)}. Delete "
            "them first."
        )
        raise Refused(400, "ManagedNetworkCannotBeEnabled", message, "properties.managedNetwork")
    for name, rule in _user_rules(given).items():
        check_rule(context, new, rule, f"properties.managedNetwork.outboundRules.{name}")


def _user_rules(network: Mapping[str, Any]) -> dict[str, Body]:
    rules = (network.get("outboundRules") or {}).items()
    return {name: rule for name, rule in rules if rule.get("category", "UserDefined") == "UserDefined"}


def kept(new: Mapping[str, Any], before: ResourceRow) -> Body:
    """The settings to store at a second PUT: what it does not name stays, and only the service writes the status."""
    given = {name: value for name, value in (new.get("managedNetwork") or {}).items() if name != "status"}
    merged = {**_settings(before), **given}
    return {"managedNetwork": merged} if merged else {}


def filled(context: KindContext, path: ArmPath, body: Body) -> Body:
    """The body with its inline rules moved to resources of their own, and with a status."""
    given = body["properties"].get("managedNetwork")
    if not given:
        return body
    network = {name: value for name, value in given.items() if name != "outboundRules"}
    for name, rule in _user_rules(given).items():
        put_rule(context, path.text, name, rule)
    if network.get("isolationMode", OFF) != OFF:
        network = {"networkId": str(uuid.uuid4()), "status": {"status": INACTIVE, "sparkReady": False}, **network}
    return {**body, "properties": {**body["properties"], "managedNetwork": network}}


def shown(context: KindContext, workspace: ResourceRow) -> Body:
    """The settings with all rules, those of the service itself included."""
    if mode_of(workspace) == OFF:
        return {}
    return {"managedNetwork": {**_settings(workspace), "outboundRules": _rules(context, workspace)}}


def _rules(context: KindContext, workspace: ResourceRow) -> dict[str, Body]:
    rules = {row.name: row.body["properties"] for row in context.store.resources.under(workspace.key, RULES)}
    return {**rules, **_required(context, workspace)}


def start(context: KindContext, workspace: ResourceRow) -> Operation:
    """Begins provisioning, or joins what is under way.

    Raises:
        Refused: The workspace has no managed network.
    """
    if mode_of(workspace) == OFF:
        message = f"The workspace '{workspace.name}' has no managed network: its isolation mode is '{OFF}'."
        raise Refused(400, "ManagedNetworkDisabled", message)
    return context.store.operations.start(workspace.key, PROVISION, TICKS)


def finish(context: KindContext, workspace: ResourceRow) -> None:
    """The end of provisioning: network and rules are active."""
    properties = workspace.body["properties"]
    network = {**properties["managedNetwork"], "status": {"status": ACTIVE, "sparkReady": False}}
    body = {**workspace.body, "properties": {**properties, "managedNetwork": network}}
    context.store.resources.put(workspace.id, workspace.type, workspace.parent, body, workspace.state)
    for row in context.store.resources.under(workspace.key, RULES):
        put_rule(context, workspace.id, row.name, row.body["properties"])


def check_compute(context: KindContext, workspace: ResourceRow, body: Body) -> None:
    """Check where nodes may be: in a managed network, nowhere else; without one, in a subnet that exists."""
    cluster = body["properties"].get("properties") or {}
    subnet = (cluster.get("subnet") or {}).get("id")
    where = "properties.properties.subnet"
    if mode_of(workspace) == OFF:
        if subnet and context.store.resources.get(subnet) is None:
            raise Refused(400, "SubnetNotFound", f"The subnet '{subnet}' was not found.", where)
        return
    if subnet:
        message = "Computes of a workspace with a managed network cannot be in another virtual network."
        raise Refused(400, "ManagedNetworkCustomSubnetNotSupported", message, where)
    if body.get("location") and body["location"] != workspace.body["location"]:
        message = (
            f"The compute is in '{body['location']}' and the workspace in '{workspace.body['location']}': with a "
            "managed network both are in one region."
        )
        raise Refused(400, "ManagedNetworkCrossRegionComputeNotSupported", message, "location")


def check_rule(context: KindContext, mode: str, rule: Mapping[str, Any], where: str) -> None:
    """Check that a mode takes a rule, and where the rule may lead."""
    if mode == OFF:
        raise invalid(where, f"outbound rules need a managed network; the isolation mode is '{OFF}'.")
    kind, destination = rule.get("type"), rule.get("destination")
    if kind in ("FQDN", "ServiceTag") and mode != APPROVED:
        raise invalid(where, f"rules of type {kind} need the isolation mode '{APPROVED}', not '{mode}'.")
    if not destination:
        raise invalid(f"{where}.destination", "the required property is missing.")
    if kind == "FQDN" and str(destination).lower().endswith(STORAGE_HOSTS):
        raise invalid(f"{where}.destination", "a storage account is reached by a private endpoint, not by its host.")
    if kind == "PrivateEndpoint":
        target = str(destination.get("serviceResourceId") or "")
        if not target or context.store.resources.get(target) is None:
            raise invalid(f"{where}.destination.serviceResourceId", f"the resource '{target}' was not found.")
        if not destination.get("subresourceTarget"):
            raise invalid(f"{where}.destination.subresourceTarget", "the required property is missing.")


def put_rule(context: KindContext, workspace: str, name: str, rule: Mapping[str, Any]) -> None:
    """Stores a rule."""
    body = {"properties": _stored(context, workspace, rule)}
    context.store.resources.put(f"{workspace}/outboundRules/{name}", RULES, workspace, body)


def _stored(context: KindContext, workspace: str, rule: Mapping[str, Any]) -> Body:
    """A user's rule as it is stored: active as soon as the network is."""
    found = context.store.resources.get(workspace)
    active = found is not None and is_active(found)
    if rule.get("type") == "PrivateEndpoint":
        rule = {**rule, "destination": {**rule["destination"], "sparkStatus": INACTIVE}}
    return {**rule, "category": "UserDefined", "status": ACTIVE if active else INACTIVE}


def _required(context: KindContext, workspace: ResourceRow) -> dict[str, Body]:
    """The rules that the service makes: endpoints of what is private, and of everything under `APPROVED`."""
    approved = mode_of(workspace) == APPROVED
    found: dict[str, Body] = {}
    for part, targets in _PARTS.items():
        row = context.store.resources.get(str(workspace.body["properties"].get(part) or ""))
        if row is None or not (approved or row.body["properties"].get("publicNetworkAccess") == "Disabled"):
            continue
        for target in targets:
            found |= _endpoint(row, target, spark=part in _SPARK)
    if approved:
        found |= _endpoint(workspace, "amlworkspace", spark=True)
        for tag in _TAGS:
            destination = {"serviceTag": tag, "protocol": "*", "portRanges": "*"}
            found[f"__SYS_ST_{tag}"] = {"type": "ServiceTag", "destination": destination}
    status = ACTIVE if is_active(workspace) else INACTIVE
    return {name: {**rule, "category": "Required", "status": status} for name, rule in found.items()}


def _endpoint(row: ResourceRow, target: str, *, spark: bool) -> dict[str, Body]:
    place = row.id.replace("/Microsoft.KeyVault/", "/Microsoft.Keyvault/")  # in the service's letters
    destination = {"serviceResourceId": place, "subresourceTarget": target, "sparkEnabled": spark}
    destination["sparkStatus"] = INACTIVE
    return {f"__SYS_PE_{row.name}_{target}": {"type": "PrivateEndpoint", "destination": destination}}


def _settings(workspace: ResourceRow | None) -> dict[str, Any]:
    return {} if workspace is None else dict(workspace.body["properties"].get("managedNetwork") or {})


class OutboundRules(ResourceKind):
    """Rules that users make; those of the service are shown with the workspace."""

    type = RULES

    def answer(
        self, context: KindContext, method: str, path: ArmPath, query: Mapping[str, str], body: Any
    ) -> Reply | None:
        """A rule, or all of them: those of the service are no rows.

        Ids, types and dates are as in azure-ai-ml's test_workspace_outbound_rule_operations (2023-05-09).
        """
        workspace = context.store.resources.get(path.parent)
        if method != "GET" or workspace is None:
            return None
        rules, without = _rules(context, workspace), {"systemData": None}
        if path.collection:
            rows = [
                {"id": None, "name": name, "type": None, "properties": rule, **without} for name, rule in rules.items()
            ]
            return Reply(200, {"value": rows})
        found = next((name for name in rules if name.lower() == path.name.lower()), None)
        if found is None:
            return None
        shown = {"id": f"{workspace.name}/outboundRules/{found}", "name": found, "type": RULES}
        return Reply(200, {"tags": None, "location": None, **shown, "properties": rules[found], **without})

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """By the mode of the workspace."""
        mode = mode_of(context.store.resources[path.parent])
        check_rule(context, mode, body["properties"], "properties")

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """Category and status."""
        return {**body, "properties": _stored(context, path.parent, body["properties"])}


KIND = OutboundRules()
