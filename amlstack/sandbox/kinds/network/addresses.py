"""Ranges of addresses, and what lives in a subnet."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.arm.refusals import Refused
from amlstack.sandbox.store.store import COMPUTE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amlstack.sandbox.kinds.base import KindContext

ENDPOINTS = "Microsoft.Network/privateEndpoints"
SMALLEST = 29

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


def users(context: KindContext, subnet: str) -> tuple[str, ...]:
    """Ids of what has addresses in a subnet: private endpoints and clusters."""
    key = subnet.lower()
    placed = [(row, row.body["properties"]) for row in context.store.resources.of_type(ENDPOINTS)]
    computes = context.store.resources.of_type(COMPUTE)
    placed += ((row, row.body["properties"].get("properties") or {}) for row in computes)
    return tuple(row.id for row, inner in placed if str((inner.get("subnet") or {}).get("id", "")).lower() == key)


def refuse_if_used(context: KindContext, subnet: str) -> None:
    """Keeps a subnet in which something has an address.

    Raises:
        Refused: 400, naming one user.
    """
    if found := users(context, subnet):
        name = subnet.rsplit("/", 1)[-1]
        message = f"Subnet {name} is in use by {found[0]} and cannot be deleted."
        raise Refused(400, "InUseSubnetCannotBeDeleted", message)
