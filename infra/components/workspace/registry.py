"""The container registry of the workspace's own environments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.components import azure_native, tokens

if TYPE_CHECKING:
    import pulumi

    from infra.components.workspace.place import Place


def register_registry(place: Place) -> pulumi.CustomResource:
    """Register the container registry, which has no admin user."""
    properties = {
        "registryName": place.names.registry,
        **place.common,
        # Only the premium tier can be closed to the internet, and take private endpoints.
        "sku": {"name": "Standard" if place.public == "Enabled" and not place.premium else "Premium"},
        "adminUserEnabled": False,
        "publicNetworkAccess": place.public,
        # As azure-native's classes register what is not given.
        "anonymousPullEnabled": False,
        "networkRuleBypassOptions": "AzureServices",
        "zoneRedundancy": "Disabled",
    }
    return azure_native.register(tokens.REGISTRY, "registry", properties, place.opts)
