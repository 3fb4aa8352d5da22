"""Microsoft.Network/privateEndpoints and the DNS zone groups in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.sandbox.arm.refusals import Refused, invalid, near
from amlstack.sandbox.kinds.base import Body, KindContext, NameRule, ResourceKind, Schema
from amlstack.sandbox.kinds.network import addresses
from amlstack.sandbox.kinds.network.virtual_networks import SUBNETS, network_of

if TYPE_CHECKING:
    from amlstack.sandbox.arm.ids import ArmPath
    from amlstack.sandbox.store.store import ResourceRow

TYPE = addresses.ENDPOINTS
GROUPS = f"{TYPE}/privateDnsZoneGroups"
ZONES = "Microsoft.Network/privateDnsZones"
TARGETS = {
    "microsoft.machinelearningservices/workspaces": ("amlworkspace",),
    "microsoft.storage/storageaccounts": ("blob", "file", "dfs", "queue", "table", "web"),
    "microsoft.keyvault/vaults": ("vault",),
    "microsoft.containerregistry/registries": ("registry",),
}
"""Sub-resources by type (learn.microsoft.com/azure/private-link/private-endpoint-overview, 2026-11-22)."""

_NAMES = NameRule(
    r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,78}[A-Za-z0-9_])?",
    "1 to 80 letters, digits, '_', '.' and '-', a letter or digit first, no '.' or '-' at the end",
)


class PrivateEndpoints(ResourceKind):
    """An address in a subnet that leads to one part of a resource."""

    type = TYPE
    noun = "a private endpoint"
    names = _NAMES
    schema = Schema(
        "network", "PrivateEndpointArgs", frozenset({"resourceGroupName", "privateEndpointName"}),
        envelope=frozenset({"id", "location", "tags", "extendedLocation"}),
        nested=frozenset({"privateLinkServiceConnections", "manualPrivateLinkServiceConnections"}),
    )  # fmt: skip
    ticks = 2
    ticks_delete = 1

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """Subnet and target exist and fit together; neither changes later."""
        del path
        properties = body["properties"]
        subnet = str((properties.get("subnet") or {}).get("id") or "")
        found = context.store.resources.get(subnet)
        if found is None or found.type != SUBNETS:
            message = f"Resource {subnet} referenced by the private endpoint was not found."
            raise Refused(404, "InvalidResourceReference", message, "properties.subnet")
        network = network_of(context, subnet)
        if network is not None and network.body["location"] != body["location"]:
            message = "A private endpoint and its virtual network must be in the same region."
            raise Refused(400, "PrivateEndpointAndVirtualNetworkRegionMismatch", message, "location")
        links = [
            *(properties.get("privateLinkServiceConnections") or ()),
            *(properties.get("manualPrivateLinkServiceConnections") or ()),
        ]
        if len(links) != 1:
            raise invalid("properties.privateLinkServiceConnections", f"{len(links)} connections; there must be one.")
        _check_link(context, links[0].get("properties") or {})
        if before is not None and _fixed(before.body["properties"]) != _fixed(properties):
            message = "The subnet and the connection of a private endpoint cannot be changed."
            raise Refused(400, "PrivateEndpointCannotBeUpdated", message)

    def keep(self, body: Body, before: ResourceRow) -> Body:
        """A second PUT is taken whole."""
        del before
        return body

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """Its network interface, and that the connection is approved."""
        del context
        properties = resource.body["properties"]
        shown: Body = {"networkInterfaces": [{"id": f"{resource.id}.nic"}]}
        approved = {"status": "Approved", "description": "Auto-Approved", "actionsRequired": "None"}
        for name in ("privateLinkServiceConnections", "manualPrivateLinkServiceConnections"):
            if links := properties.get(name):
                shown[name] = [_approved(link, approved) for link in links]
        return shown


class ZoneGroups(ResourceKind):
    """The private DNS zones in which an endpoint's names are registered."""

    type = GROUPS
    noun = "a private DNS zone group"
    names = _NAMES
    schema = Schema(
        "network", "PrivateDnsZoneGroupArgs",
        frozenset({"resourceGroupName", "privateEndpointName", "privateDnsZoneGroupName"}),
        envelope=frozenset({"id", "name"}), nested=frozenset({"privateDnsZoneConfigs"}),
    )  # fmt: skip
    tracked = False

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """The zones exist, each named once."""
        del path, before
        for index, config in enumerate(body["properties"].get("privateDnsZoneConfigs") or ()):
            zone = str((config.get("properties") or {}).get("privateDnsZoneId") or "")
            found = context.store.resources.get(zone)
            if found is None or found.type != ZONES:
                message = f"Private DNS zone {zone} was not found."
                raise Refused(404, "PrivateDnsZoneNotFound", message, f"properties.privateDnsZoneConfigs[{index}]")

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """Always done."""
        del context, resource
        return {"provisioningState": "Succeeded"}


def _check_link(context: KindContext, link: Body) -> None:
    where = "properties.privateLinkServiceConnections[0]"
    target = context.store.resources.get(str(link.get("privateLinkServiceId") or ""))
    if target is None:
        message = f"Private link resource {link.get('privateLinkServiceId')} was not found."
        raise Refused(404, "PrivateLinkServiceNotFound", message, where)
    allowed = TARGETS.get(target.type.lower(), ())
    for group in link.get("groupIds") or ("",):
        if group not in allowed:
            message = f"The group id '{group}' is not one of {target.type}.{near(str(group), allowed)}"
            raise Refused(400, "InvalidPrivateLinkServiceGroupId", message, where)
    if target.type.lower().endswith("/registries") and target.body.get("sku", {}).get("name") != "Premium":
        message = f"Private endpoints need a registry of the tier Premium; '{target.name}' has another."
        raise Refused(400, "RegistrySkuNotSupported", message, where)


def _fixed(properties: Body) -> tuple[str, Any]:
    link = (properties.get("privateLinkServiceConnections") or [{}])[0].get("properties") or {}
    target = str(link.get("privateLinkServiceId")).lower(), tuple(link.get("groupIds") or ())
    return str(properties["subnet"]["id"]).lower(), target


def _approved(link: Body, state: Body) -> Body:
    return {**link, "properties": {**link.get("properties", {}), "privateLinkServiceConnectionState": state}}


KIND = PrivateEndpoints()
GROUP_KIND = ZoneGroups()
