"""Network rules in the forms of storage account, key vault and registry."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from infra.security.defaults import Security


def of_storage(allowed: tuple[str, ...]) -> list[str]:
    """Addresses as a storage account takes them, which knows no ranges of one or two addresses.

    Source: learn.microsoft.com/azure/storage/common/storage-network-security-limitations (2026-11-22).
    """
    found: list[str] = []
    for text in allowed:
        network = ipaddress.IPv4Network(text)
        found += map(str, network) if network.prefixlen > 30 else [text]
    return found


def of_vault(allowed: tuple[str, ...]) -> list[str]:
    """Addresses as a key vault gives them back: a single one as a range."""
    return [str(ipaddress.IPv4Network(text)) for text in allowed]


def storage_rules(security: Security) -> dict[str, Any] | None:
    """Network rules of a storage account; None for one that everybody reaches."""
    if not security.limited:
        return None
    rules = [{"iPAddressOrRange": one, "action": "Allow"} for one in of_storage(security.allowed)]
    # Trusted services and the workspace itself, as azure-ai-ml 1.35 makes a workspace with a private network.
    return {"defaultAction": "Deny", "bypass": "AzureServices", "ipRules": rules}


def vault_rules(security: Security) -> dict[str, Any] | None:
    """Network rules of a key vault; None for one that everybody reaches."""
    if not security.limited:
        return None
    rules = [{"value": one} for one in of_vault(security.allowed)]
    return {"defaultAction": "Deny", "bypass": "AzureServices", "ipRules": rules}


def registry_rules(security: Security) -> dict[str, Any] | None:
    """Network rules of a registry with an allow-list; one that is closed altogether has none."""
    if not security.allowed:
        return None
    return {
        "defaultAction": "Deny",
        "ipRules": [{"iPAddressOrRange": one, "action": "Allow"} for one in security.allowed],
    }
