"""Whether one range of IP addresses contains another, as ``ipRangeContains`` of Azure Policy says it."""

from __future__ import annotations

import ipaddress

from amlstack.base.arm_language.values import FailingExpressionError


def contains(outer: str, inner: str) -> bool:
    """Whether all addresses of a range lie in another.

    Args:
        outer: An address, a CIDR range, or two addresses with ``-`` between them.
        inner: Likewise.

    Raises:
        FailingExpressionError: One is no range, or they are of two families; Azure's evaluation fails there too.
    """
    (first, last), (start, end) = _ends(outer), _ends(inner)
    if first.version != start.version:
        raise FailingExpressionError("the ranges are of IPv4 and of IPv6")
    return int(first) <= int(start) and int(end) <= int(last)


def _ends(
    text: str,
) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, ipaddress.IPv4Address | ipaddress.IPv6Address]:
    try:
        if "-" in text:
            low, high = (ipaddress.ip_address(part.strip()) for part in text.split("-", 1))
            return low, high
        net = ipaddress.ip_network(text.strip(), strict=False)
        return net[0], net[-1]
    except ValueError:
        raise FailingExpressionError(f"`{text[:60]}` is no range of IP addresses") from None
