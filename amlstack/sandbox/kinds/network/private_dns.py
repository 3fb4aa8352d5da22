"""Microsoft.Network/privateDnsZones and their links with virtual networks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.sandbox.arm.refusals import Refused, invalid
from amlstack.sandbox.kinds.base import Body, KindContext, NameRule, ResourceKind, Schema
from amlstack.sandbox.kinds.network.private_endpoints import ZONES
from amlstack.sandbox.kinds.network.virtual_networks import TYPE as NETWORKS

if TYPE_CHECKING:
    from amlstack.sandbox.arm.ids import ArmPath
    from amlstack.sandbox.store.store import ResourceRow

LINKS = f"{ZONES}/virtualNetworkLinks"
GLOBAL = "global"


class PrivateZones(ResourceKind):
    """A zone of names that only linked networks see."""

    type = ZONES
    noun = "a private DNS zone"
    names = NameRule(r"([A-Za-z0-9_-]{1,63}\.){1,33}[A-Za-z0-9-]{1,63}", "2 to 34 labels of letters, digits and '-'")
    schema = Schema(
        "privatedns", "PrivateZoneArgs", frozenset({"resourceGroupName", "privateZoneName"}),
        envelope=frozenset({"location", "tags"}),
    )  # fmt: skip
    ticks = 1
    ticks_delete = 1
    made_status = 202

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """Zones are global."""
        del context, path, before
        _check_global(body)

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """How many networks see it."""
        return {"numberOfVirtualNetworkLinks": len(context.store.resources.under(resource.key, LINKS))}

    def check_removal(self, context: KindContext, resource: ResourceRow) -> None:
        """A linked one stays."""
        if links := context.store.resources.under(resource.key, LINKS):
            message = f"Can not delete resource before nested resources are deleted: {links[0].id}."
            raise Refused(409, "CannotDeleteResource", message)


class NetworkLinks(ResourceKind):
    """A network that sees a zone."""

    type = LINKS
    noun = "a virtual network link"
    names = NameRule(r"[A-Za-z0-9_.-]{1,80}", "1 to 80 letters, digits, '_', '.' and '-'")
    schema = Schema(
        "privatedns", "VirtualNetworkLinkArgs",
        frozenset({"resourceGroupName", "privateZoneName", "virtualNetworkLinkName"}),
        envelope=frozenset({"location", "tags"}),
    )  # fmt: skip
    ticks = 1
    ticks_delete = 1
    made_status = 202

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """The network exists, and is linked with a zone once."""
        del before
        _check_global(body)
        network = str((body["properties"].get("virtualNetwork") or {}).get("id") or "")
        found = context.store.resources.get(network)
        if found is None or found.type != NETWORKS:
            raise invalid("properties.virtualNetwork", f"the virtual network '{network}' was not found.")
        for row in context.store.resources.under(path.parent, LINKS):
            other = str(row.body["properties"]["virtualNetwork"]["id"]).lower()
            if row.name.lower() != path.name.lower() and other == network.lower():
                message = f"A virtual network cannot be linked to the same zone twice: {row.id}."
                raise Refused(409, "Conflict", message)

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """Done."""
        del context, resource
        return {"virtualNetworkLinkState": "Completed"}


def _check_global(body: Body) -> None:
    if body.get("location") != GLOBAL:
        message = f"The location '{body.get('location')}' is not available for private DNS: it must be '{GLOBAL}'."
        raise Refused(400, "LocationNotAvailableForResourceType", message, "location")


KIND = PrivateZones()
LINK_KIND = NetworkLinks()
