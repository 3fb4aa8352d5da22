"""Rules for addresses of the internet, as storage accounts, key vaults and registries have them."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.protocol.refusals import invalid

if TYPE_CHECKING:
    from collections.abc import Mapping

_PRIVATE = tuple(map(ipaddress.IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))


def check_addresses(rules: Mapping[str, Any] | None, where: str, *, smallest: int = 32) -> None:
    """Refuses rules for what is no public IPv4 address or range.

    Args:
        rules: Of the body; None for none.
        where: Their path in the body.
        smallest: Longest prefix that a range may have; single addresses are written without one.

    Raises:
        Refused: 400, at the first that is wrong.
    """
    for index, rule in enumerate((rules or {}).get("ipRules") or ()):
        text, at = str(rule.get("value", "")), f"{where}.ipRules[{index}].value"
        try:
            network = ipaddress.IPv4Network(text)
        except ValueError:
            raise invalid(at, f"'{text}' is no IPv4 address, and no range of them in CIDR notation.") from None
        if any(network.overlaps(one) for one in _PRIVATE):
            raise invalid(at, f"'{text}' is private; rules are for addresses of the internet.")
        if "/" in text and network.prefixlen > smallest:
            raise invalid(at, f"'{text}' is a range of one or two addresses; write them without a prefix.")
