"""The container registry of the workspace's own environments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.components import azure_native, tokens
from infra.security import network_rules

if TYPE_CHECKING:
    import pulumi

    from infra.components.workspace.place import Place


def register_registry(place: Place) -> pulumi.CustomResource:
    """Register the container registry, which has no admin user."""
    properties = {
        "registryName": place.names.registry,
        **place.common,
        # Only the premium tier can be closed to the internet, or to a part of it, and take private endpoints.
        "sku": {"name": "Premium" if place.security.limited or place.premium else "Standard"},
        "adminUserEnabled": False,
        "publicNetworkAccess": place.public,
        "networkRuleSet": network_rules.registry_rules(place.security),
        # As azure-native's classes register what is not given.
        "anonymousPullEnabled": False,
        "networkRuleBypassOptions": "AzureServices",
        "zoneRedundancy": "Disabled",
    }
    return azure_native.register(tokens.REGISTRY, "registry", properties, place.opts)
