"""Ranges of addresses, and what lives in a subnet.

Microsoft.Network/networkSecurityGroups, with their rules.

Microsoft.Network/virtualNetworks and their subnets.

Microsoft.Network/privateDnsZones and their links with virtual networks.

Microsoft.Network/privateEndpoints and the DNS zone groups in them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.kinds.private_link import APPROVED, CONNECTIONS, ENDPOINTS, STATE, connections, guid
from amlstack.sandbox.protocol.kind import UNDER_WAY, Body, KindContext, NameRule, ResourceKind
from amlstack.sandbox.protocol.refusals import Refused, invalid, near, not_emulated

if TYPE_CHECKING:
    from amlstack.sandbox.protocol.addresses import ArmPath
    from amlstack.sandbox.store.store import ResourceRow

TYPE = "Microsoft.Network/virtualNetworks"
SUBNETS = f"{TYPE}/subnets"
SECURITY_GROUPS = "Microsoft.Network/networkSecurityGroups"
ZONES = "Microsoft.Network/privateDnsZones"
LINKS = f"{ZONES}/virtualNetworkLinks"
SMALLEST = 29
_OPEN_UNTIL = "2021-02-01"
"""The last api-version that was recorded to have another default (azure-mgmt-network 19.0.0)."""
_STATUS_AT = "{subscription}/providers/Microsoft.Network/locations/{location}/operations/{id}"
_RESULT_AT = "{subscription}/providers/Microsoft.Network/locations/{location}/operationResults/{id}"
_NAMES = NameRule(
    r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,78}[A-Za-z0-9_])?",
    "1 to 80 letters, digits, '_', '.' and '-', a letter or digit first, no '.' or '-' at the end",
)


Range = ipaddress.IPv4Network | ipaddress.IPv6Network


def range_of(text: Any, where: str) -> Range:
    """A range in CIDR notation.

    Raises:
        Refused: It is none.
    """
    try:
        return ipaddress.ip_network(str(text))
    except ValueError:
        message = f"The address prefix '{text}' is not a valid CIDR range."
        raise Refused(400, "InvalidAddressPrefixFormat", message, where) from None


def check_subnet(name: str, prefix: Any, space: Iterable[Range], others: Iterable[tuple[str, Range]]) -> Range:
    """The range of a subnet, which lies in its network and overlaps no other.

    Raises:
        Refused: It does not.
    """
    found = range_of(prefix, "properties.addressPrefix")
    if found.prefixlen > SMALLEST:
        raise Refused(400, "SubnetTooSmall", f"The subnet '{name}' ({prefix}) is smaller than /{SMALLEST}.")
    if not any(found.version == one.version and found.subnet_of(one) for one in space):  # type: ignore[arg-type]
        message = f"The address range {prefix} of the subnet '{name}' is not within its virtual network's space."
        raise Refused(400, "NetcfgSubnetRangeOutsideVnet", message)
    for other, one in others:
        if found.overlaps(one):
            message = f"The subnet '{name}' ({prefix}) overlaps the subnet '{other}' ({one})."
            raise Refused(400, "NetcfgSubnetRangesOverlap", message)
    return found


def refuse_if_used(context: KindContext, subnet: ResourceRow) -> None:
    """Keeps a subnet in which something has an address: a private endpoint, a cluster.

    Raises:
        Refused: 400, naming one user.
    """
    placed = [(row, row.body["properties"]) for row in context.store.resources.of_type(ENDPOINTS)]
    placed += ((row, row.body["properties"].get("properties") or {}) for row in context.store.clusters())
    for row, inner in placed:
        if str((inner.get("subnet") or {}).get("id", "")).lower() == subnet.key:
            message = f"Subnet {subnet.name} is in use by {row.id} and cannot be deleted."
            raise Refused(400, "InUseSubnetCannotBeDeleted", message)


class OfNetwork(ResourceKind):
    """A resource of the network service, which makes all of them alike."""

    status_at, result_at = _STATUS_AT, _RESULT_AT


class VirtualNetworks(OfNetwork):
    """A network whose subnets are resources of their own, given with it or one by one."""

    type = TYPE

    def in_request(self, body: Body, version: str) -> Body:
        """Each subnet as of the api-version."""
        for subnet in body["properties"].get("subnets") or ():
            SUBNET_KIND.in_request(subnet, version)
        return body

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """Ranges fit into each other; a subnet that is left out is not in use."""
        properties = body["properties"]
        space = _space(properties)
        if properties.get("subnets") is None:
            return
        taken: list[tuple[str, Range]] = []
        for subnet in properties["subnets"]:
            name, inner = str(subnet.get("name") or ""), subnet.get("properties") or {}
            _NAMES.check(name, "a subnet")
            taken.append((name, check_subnet(name, inner.get("addressPrefix"), space, taken)))
            check_references(context, inner)
        wanted = {name.lower() for name, _ in taken}
        for row in context.store.resources.under(path.text, SUBNETS):
            if row.name.lower() not in wanted:
                refuse_if_used(context, row)

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
                inner = {"properties": {**Subnets.defaults, **subnet.get("properties", {})}}
                context.store.resources.put(f"{path.text}/subnets/{subnet['name']}", SUBNETS, path.text, inner)
        return {**body, "properties": properties}

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """With its subnets."""
        rows = context.store.resources.under(resource.key, SUBNETS)
        subnets = [SUBNET_KIND.render(context, row) for row in rows]
        if resource.state in UNDER_WAY:
            for subnet in subnets:
                subnet["properties"]["provisioningState"] = self.making
        return {"resourceGuid": guid(resource), "subnets": subnets}

    def check_removal(self, context: KindContext, resource: ResourceRow) -> None:
        """A network in which something has an address stays."""
        for row in context.store.resources.under(resource.key, SUBNETS):
            refuse_if_used(context, row)


class Subnets(OfNetwork):
    """One subnet."""

    type = SUBNETS

    def in_request(self, body: Body, version: str) -> Body:
        """Policies of a network's rules for private endpoints held as they were recorded in 2021; now they do not."""
        if version[:10] <= _OPEN_UNTIL:
            body.setdefault("properties", {}).setdefault("privateEndpointNetworkPolicies", "Enabled")
        return body

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """Its range lies in the network and overlaps no other."""
        space = _space(context.store.resources[path.parent].body["properties"])
        rows = context.store.resources.under(path.parent, SUBNETS)
        others = [
            (row.name, range_of(row.body["properties"]["addressPrefix"], ""))
            for row in rows
            if row.name.lower() != path.name.lower()
        ]
        check_subnet(path.name, body["properties"].get("addressPrefix"), space, others)
        check_references(context, body["properties"])

    def check_removal(self, context: KindContext, resource: ResourceRow) -> None:
        """One in use stays."""
        refuse_if_used(context, resource)


def check_references(context: KindContext, subnet: Mapping[str, Any]) -> None:
    """Require that the security group that a subnet names exists."""
    given = (subnet.get("networkSecurityGroup") or {}).get("id")
    if given and context.store.resources.get(given, SECURITY_GROUPS) is None:
        message = f"Resource {given} referenced by the subnet was not found."
        raise Refused(404, "InvalidResourceReference", message, "networkSecurityGroup")


def _space(properties: Mapping[str, Any]) -> list[Range]:
    prefixes = (properties.get("addressSpace") or {}).get("addressPrefixes")
    if not prefixes:
        raise invalid("properties.addressSpace", "the required property is missing.")
    return [range_of(prefix, "properties.addressSpace") for prefix in prefixes]


SUBNET_KIND = Subnets()


LOWEST, HIGHEST = 100, 4096


class SecurityGroups(OfNetwork):
    """Rules by direction and priority."""

    type = SECURITY_GROUPS

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """Its own mark."""
        return {"resourceGuid": guid(resource)}

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """No two rules of one direction share a priority."""
        seen: dict[tuple[str, int], str] = {}
        for index, rule in enumerate(body["properties"].get("securityRules") or ()):
            inner, where = rule.get("properties") or {}, f"properties.securityRules[{index}]"
            priority = inner["priority"]
            if not LOWEST <= priority <= HIGHEST:
                message = f"Security rule has invalid Priority. Value provided: {priority} Allowed range 100-4096."
                raise Refused(400, "SecurityRuleInvalidPriority", message, where)
            name = str(rule.get("name"))
            if other := seen.get((inner["direction"], priority)):
                message = f"Security rules {other} and {name} have the same priority and direction."
                raise Refused(400, "SecurityRuleConflict", message, where)
            seen[inner["direction"], priority] = name

    def check_removal(self, context: KindContext, resource: ResourceRow) -> None:
        """One that a subnet names stays."""
        for row in context.store.resources.of_type(SUBNETS):
            if str((row.body["properties"].get("networkSecurityGroup") or {}).get("id", "")).lower() == resource.key:
                message = f"Network security group {resource.name} cannot be deleted because it is in use by {row.id}."
                raise Refused(400, "InUseNetworkSecurityGroupCannotBeDeleted", message)


TARGETS = {
    "microsoft.machinelearningservices/workspaces": ("amlworkspace",),
    "microsoft.storage/storageaccounts": ("blob", "file", "dfs", "queue", "table", "web"),
    "microsoft.keyvault/vaults": ("vault",),
    "microsoft.containerregistry/registries": ("registry",),
}
"""Sub-resources by type (learn.microsoft.com/azure/private-link/private-endpoint-overview, 2026-11-22)."""


class PrivateEndpoints(OfNetwork):
    """An address in a subnet that leads to one part of a resource."""

    type = ENDPOINTS

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """Subnet and target exist and fit together; neither changes later."""
        properties = body["properties"]
        subnet = str((properties.get("subnet") or {}).get("id") or "")
        if context.store.resources.get(subnet, SUBNETS) is None:
            message = f"Resource {subnet} referenced by the private endpoint was not found."
            raise Refused(404, "InvalidResourceReference", message, "properties.subnet")
        network = context.store.resources[subnet.rsplit("/", 2)[0]]
        if network.body["location"] != body["location"]:
            message = "A private endpoint and its virtual network must be in the same region."
            raise Refused(400, "PrivateEndpointAndVirtualNetworkRegionMismatch", message, "location")
        links = connections(properties)
        if len(links) != 1:
            raise invalid("properties.privateLinkServiceConnections", f"{len(links)} connections; there must be one.")
        _check_link(context, links[0].get("properties") or {})
        if before is not None and _fixed(before.body["properties"]) != _fixed(properties):
            message = "The subnet and the connection of a private endpoint cannot be changed."
            raise Refused(400, "PrivateEndpointCannotBeUpdated", message)

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """The state of its connections is their target's to give: what a client says of it is left out."""
        stored = context.store.resources.get(path.text)
        was = connections(stored.body["properties"])[0]["properties"].get(STATE) if stored else None
        properties = dict(body["properties"])
        for name in CONNECTIONS:
            if links := properties.get(name):
                properties[name] = [{**link, "properties": {**link["properties"], STATE: was}} for link in links]
        return super().fill(context, path, {**body, "properties": properties})

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """Its network interface, and that the connection is approved.

        Source: azure-mgmt-storage 16.0.0, test_cli_mgmt_storage (2020-09-15).
        """
        properties, group = resource.body["properties"], resource.id.rpartition("/privateEndpoints/")[0]
        interface = f"{group}/networkInterfaces/{resource.name}.nic.{guid(resource)}"
        shown: Body = {"resourceGuid": guid(resource), "networkInterfaces": [{"id": interface}]}
        said = {"description": ""} if resource.state in UNDER_WAY else {}
        for name in CONNECTIONS:
            if links := properties.get(name):
                shown[name] = []
                for link in links:
                    given = link.get("properties", {}).get(STATE) or {}
                    state = {**APPROVED, "actionsRequired": "None", **said, **given}
                    added = {"provisioningState": "Succeeded", STATE: state}
                    shown[name].append(_part(self, resource, name, link, added))
        if resource.state not in UNDER_WAY and (names := _names(context, connections(properties)[0])):
            address = _address(context, resource)
            shown["customDnsConfigs"] = [{"fqdn": name, "ipAddresses": [address]} for name in names]
        return shown


def _names(context: KindContext, link: Body) -> list[str]:
    """The names of the target in public DNS, as far as they follow from its own name."""
    target = context.store.resources.get(str(link["properties"].get("privateLinkServiceId")))
    kind = "" if target is None else target.type.lower()
    name = "" if target is None else target.name.lower()
    if kind == "microsoft.storage/storageaccounts":
        return [f"{name}.{group}.core.windows.net" for group in link["properties"].get("groupIds") or ()]
    return [f"{name}.vault.azure.net"] if kind == "microsoft.keyvault/vaults" else []


def _address(context: KindContext, endpoint: ResourceRow) -> str:
    """Its address: Azure keeps the first four of a subnet, and gives the next ones in turn."""
    own = str(endpoint.body["properties"]["subnet"]["id"]).lower()
    rows = [row for row in context.store.resources.of_type(ENDPOINTS) if row.created <= endpoint.created]
    earlier = sum(1 for row in rows if str(row.body["properties"]["subnet"]["id"]).lower() == own)
    subnet = context.store.resources[own]
    return str(range_of(subnet.body["properties"]["addressPrefix"], "")[3 + earlier])


class ZoneGroups(OfNetwork):
    """The private DNS zones in which an endpoint's names are registered."""

    type = f"{ENDPOINTS}/privateDnsZoneGroups"

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """The zones exist, each named once."""
        for index, config in enumerate(body["properties"].get("privateDnsZoneConfigs") or ()):
            zone = str((config.get("properties") or {}).get("privateDnsZoneId") or "")
            if context.store.resources.get(zone, ZONES) is None:
                message = f"Private DNS zone {zone} was not found."
                raise Refused(404, "PrivateDnsZoneNotFound", message, f"properties.privateDnsZoneConfigs[{index}]")

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """Each zone with its own state, and no records: no name is resolved here."""
        state = self.making if resource.state in UNDER_WAY else resource.state
        added = {"provisioningState": state, "recordSets": []}
        given = resource.body["properties"].get("privateDnsZoneConfigs") or ()
        return {"privateDnsZoneConfigs": [_part(self, resource, "privateDnsZoneConfigs", one, added) for one in given]}


def _part(kind: ResourceKind, resource: ResourceRow, name: str, given: Body, added: Body) -> Body:
    """An item of a resource as an answer has it: with an id, a type and the resource's etag of its own."""
    own = {"id": f"{resource.id}/{name}/{given.get('name')}", "type": f"{kind.type}/{name}", **kind.etag_of(resource)}
    return {**given, **own, "properties": {**given.get("properties", {}), **added}}


def _check_link(context: KindContext, link: Body) -> None:
    where = "properties.privateLinkServiceConnections[0]"
    target = context.store.resources.get(str(link.get("privateLinkServiceId") or ""))
    if target is None and "/microsoft.network/privatelinkservices/" in str(link.get("privateLinkServiceId")).lower():
        raise not_emulated("a private endpoint of a service of one's own")
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


GLOBAL = "global"


class PrivateZones(ResourceKind):
    """A zone of names that only linked networks see."""

    type = ZONES

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """Zones are global."""
        _check_global(body)

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The number of networks that see it, and Azure's limits (azure-mgmt-network 19.0.0, 2021)."""
        most = {"RecordSets": 25000, "VirtualNetworkLinks": 1000, "VirtualNetworkLinksWithRegistration": 100}
        links = [row.body["properties"] for row in context.store.resources.under(resource.key, LINKS)]
        registering = sum(1 for link in links if link.get("registrationEnabled"))
        counts = {"RecordSets": 1, "VirtualNetworkLinks": len(links)}
        counts["VirtualNetworkLinksWithRegistration"] = registering
        limits = {f"maxNumberOf{name}": count for name, count in most.items()}
        return {**limits, **{f"numberOf{name}": count for name, count in counts.items()}}

    def check_removal(self, context: KindContext, resource: ResourceRow) -> None:
        """A linked one stays."""
        if links := context.store.resources.under(resource.key, LINKS):
            message = f"Can not delete resource before nested resources are deleted: {links[0].id}."
            raise Refused(409, "CannotDeleteResource", message)


class NetworkLinks(ResourceKind):
    """A network that sees a zone."""

    type = LINKS

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """The network exists, and is linked with a zone once."""
        _check_global(body)
        network = str((body["properties"].get("virtualNetwork") or {}).get("id") or "")
        if context.store.resources.get(network, TYPE) is None:
            raise invalid("properties.virtualNetwork", f"the virtual network '{network}' was not found.")
        for row in context.store.resources.under(path.parent, LINKS):
            other = str(row.body["properties"]["virtualNetwork"]["id"]).lower()
            if row.name.lower() != path.name.lower() and other == network.lower():
                raise Refused(409, "Conflict", f"A virtual network cannot be linked to the same zone twice: {row.id}.")

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """Done."""
        return {"virtualNetworkLinkState": "Completed"}


def _check_global(body: Body) -> None:
    if body.get("location") != GLOBAL:
        message = f"The location '{body.get('location')}' is not available for private DNS: it must be '{GLOBAL}'."
        raise Refused(400, "LocationNotAvailableForResourceType", message, "location")


KINDS = (
    *(SecurityGroups(), VirtualNetworks(), SUBNET_KIND, PrivateZones(), NetworkLinks()),
    *(PrivateEndpoints(), ZoneGroups()),
)
"""The kinds of this module; a new one is a row here."""
