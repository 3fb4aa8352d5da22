"""Microsoft.Network/virtualNetworks and their subnets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.sandbox.arm.refusals import Refused, invalid
from amlstack.sandbox.kinds.base import Body, KindContext, NameRule, ResourceKind, Schema
from amlstack.sandbox.kinds.network import addresses

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.arm.ids import ArmPath
    from amlstack.sandbox.store.store import ResourceRow

TYPE = "Microsoft.Network/virtualNetworks"
SUBNETS = f"{TYPE}/subnets"
_NAMES = NameRule(
    r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,78}[A-Za-z0-9_])?",
    "1 to 80 letters, digits, '_', '.' and '-', a letter or digit first, no '.' or '-' at the end",
)
_REFERENCES = {
    "networkSecurityGroup": "Microsoft.Network/networkSecurityGroups",
}
_DEFAULTS = {"privateEndpointNetworkPolicies": "Disabled", "privateLinkServiceNetworkPolicies": "Enabled"}


class VirtualNetworks(ResourceKind):
    """A network whose subnets are resources of their own, given with it or one by one."""

    type = TYPE
    noun = "a virtual network"
    names = _NAMES
    schema = Schema(
        "network", "VirtualNetworkInitArgs", frozenset({"resourceGroupName", "virtualNetworkName"}),
        envelope=frozenset({"id", "location", "tags", "extendedLocation"}), nested=frozenset({"subnets"}),
    )  # fmt: skip
    ticks = 1

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """Ranges fit into each other; a subnet that is left out is not in use."""
        del before
        properties = body["properties"]
        space = _space(properties)
        if properties.get("subnets") is None:
            return
        taken: list[tuple[str, addresses.Range]] = []
        for subnet in properties["subnets"]:
            name, inner = str(subnet.get("name") or ""), subnet.get("properties") or {}
            _NAMES.check(name, "a subnet")
            taken.append((name, addresses.check_subnet(name, inner.get("addressPrefix"), space, taken)))
            check_references(context, inner)
        wanted = {name.lower() for name, _ in taken}
        for row in context.store.resources.under(path.text, SUBNETS):
            if row.name.lower() not in wanted:
                addresses.refuse_if_used(context, row.id)

    def keep(self, body: Body, before: ResourceRow) -> Body:
        """A second PUT is taken whole."""
        del before
        return body

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """Its subnets become resources of their own."""
        properties = dict(body["properties"])
        subnets = properties.pop("subnets", None)
        if subnets is not None:
            wanted = {str(subnet["name"]).lower() for subnet in subnets}
            for row in context.store.resources.under(path.text, SUBNETS):
                if row.name.lower() not in wanted:
                    context.store.resources.delete(row.key)
            for subnet in subnets:
                inner = {**_DEFAULTS, **subnet.get("properties", {})}
                context.store.resources.put(
                    f"{path.text}/subnets/{subnet['name']}", SUBNETS, path.text, {"properties": inner}
                )
        return {**body, "properties": properties}

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """With its subnets."""
        rows = context.store.resources.under(resource.key, SUBNETS)
        return {"subnets": [_shown(SUBNET_KIND.render(context, row)) for row in rows]}

    def check_removal(self, context: KindContext, resource: ResourceRow) -> None:
        """A network in which something has an address stays."""
        for row in context.store.resources.under(resource.key, SUBNETS):
            addresses.refuse_if_used(context, row.id)


class Subnets(ResourceKind):
    """One subnet."""

    type = SUBNETS
    noun = "a subnet"
    names = _NAMES
    schema = Schema(
        "network", "SubnetInitArgs", frozenset({"resourceGroupName", "virtualNetworkName", "subnetName"}),
        envelope=frozenset({"id", "name", "type"}),
    )  # fmt: skip
    tracked = False

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """Its range lies in the network and overlaps no other."""
        del before
        network = context.store.resources.get(path.parent)
        space = _space(network.body["properties"]) if network is not None else []
        rows = context.store.resources.under(path.parent, SUBNETS)
        others = [
            (row.name, addresses.range_of(row.body["properties"]["addressPrefix"], ""))
            for row in rows
            if row.name.lower() != path.name.lower()
        ]
        addresses.check_subnet(path.name, body["properties"].get("addressPrefix"), space, others)
        check_references(context, body["properties"])

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """The service's defaults."""
        del context, path
        return {**body, "properties": {**_DEFAULTS, **body["properties"]}}

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """What has addresses in it."""
        del context, resource
        return {"provisioningState": "Succeeded"}

    def check_removal(self, context: KindContext, resource: ResourceRow) -> None:
        """One in use stays."""
        addresses.refuse_if_used(context, resource.id)


def check_references(context: KindContext, subnet: Mapping[str, Any]) -> None:
    """What a subnet names and the sandbox knows must exist."""
    for name, kind in _REFERENCES.items():
        given = (subnet.get(name) or {}).get("id")
        found = context.store.resources.get(given) if given else None
        if given and (found is None or found.type.lower() != kind.lower()):
            message = f"Resource {given} referenced by the subnet was not found."
            raise Refused(404, "InvalidResourceReference", message, name)


def network_of(context: KindContext, subnet: str) -> ResourceRow | None:
    """The network that a subnet is in."""
    return context.store.resources.get(subnet.lower().rsplit("/subnets/", 1)[0])


def _shown(subnet: Body) -> Body:
    """A subnet as its network lists it."""
    return {name: value for name, value in subnet.items() if name != "systemData"}


def _space(properties: Mapping[str, Any]) -> list[addresses.Range]:
    prefixes = (properties.get("addressSpace") or {}).get("addressPrefixes")
    if not prefixes:
        raise invalid("properties.addressSpace", "the required property is missing.")
    return [addresses.range_of(prefix, "properties.addressSpace") for prefix in prefixes]


KIND = VirtualNetworks()
SUBNET_KIND = Subnets()
