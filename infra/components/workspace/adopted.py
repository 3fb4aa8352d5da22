"""What an imported resource keeps as it was found: every property that the settings do not say.

The state of an import has all that Azure answered; the program registers what it would create. The engine leaves the
paths that are named here as the state has them. Where the resource is created they mean nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from infra.compute.cluster import SETTINGS, replaced_by

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.settings import Cluster, Workspace

ALL: Final = ["*"]
"""Of a part: the settings say nothing of one that was imported but its name."""

_WORKSPACE: Final = (
    *("allowPublicAccessWhenBehindVnet", "applicationInsights", "associatedWorkspaces", "containerRegistry"),
    *("description", "discoveryUrl", "enableDataIsolation", "enableServiceSideCMKEncryption", "encryption"),
    *("featureStoreSettings", "friendlyName", "hbiWorkspace", "hubResourceId", "identity", "imageBuildCompute"),
    *("keyVault", "kind", "location", "managedNetwork", "primaryUserAssignedIdentity", "provisionNetworkNow"),
    *("publicNetworkAccess", "serverlessComputeSettings", "serviceManagedResourcesSettings"),
    *("sharedPrivateLinkResources", "sku", "storageAccount", "systemDatastoresAuthMode", "tags", "v1LegacyMode"),
    "workspaceHubConfig",
)
"""Inputs of azure-native's Workspace."""

_OF_WORKSPACE: Final[Mapping[str, tuple[str, ...]]] = {
    "display_name": ("friendlyName",),
    "description": ("description",),
    "public_network": ("publicNetworkAccess",),
    "identity": ("identity", "primaryUserAssignedIdentity"),
    "encryption": ("encryption", "enableServiceSideCMKEncryption"),
    "high_business_impact": ("hbiWorkspace",),
    "image_build_compute": ("imageBuildCompute",),
    "serverless_compute": ("serverlessComputeSettings",),
    "network": ("managedNetwork",),
}
"""Setting of the workspace → the inputs that it becomes."""

_AML = "properties.properties"
_CLUSTER: Final = (
    *("identity", "location", "sku", "tags"),
    *(f"properties.{name}" for name in ("computeLocation", "description", "disableLocalAuth", "resourceId")),
    *(f"{_AML}.{name}" for name in ("enableNodePublicIp", "isolatedNetwork", "osType", "propertyBag")),
    *(f"{_AML}.{name}" for name in ("remoteLoginPortPublicAccess", "subnet", "userAccountCredentials")),
    *(f"{_AML}.{name}" for name in ("virtualMachineImage", "vmPriority", "vmSize")),
)
"""Inputs of azure-native's Compute that an AmlCompute cluster has, but for its scale."""


def of_workspace(spec: Workspace, tags: Mapping[str, str]) -> list[str] | None:
    """Paths that the engine leaves alone; None for a workspace that the stack made."""
    if not spec.adopted:
        return None
    given = {wire for name, wires in _OF_WORKSPACE.items() if name in spec.model_fields_set for wire in wires}
    return [name for name in _WORKSPACE if name not in given and not (name == "tags" and tags)]


def of_cluster(spec: Cluster, tags: Mapping[str, str]) -> list[str] | None:
    """The same of a cluster."""
    if not spec.adopted:
        return None
    rows = [row for row in SETTINGS if not row.wire.startswith("tags")]
    given = {row.wire for row in rows if _says(spec, row.path)}
    if tags or spec.tags or spec.single_node_jobs:
        given.add("tags")
    if spec.identity.kind == "none" and not spec.identity.user_assigned:
        given.discard("identity")
    known = dict.fromkeys((*_CLUSTER, *(row.wire for row in rows), *replaced_by()))
    silent = [wire for wire in known if not any(_within(each, wire) for each in given)]
    # An object that the settings do not say at all is left alone as one.
    return [wire for wire in silent if not any(wire != each and _within(wire, each) for each in silent)]


def _within(wire: str, whole: str) -> bool:
    return wire == whole or wire.startswith(f"{whole}.")


def _says(spec: Any, path: tuple[str, ...]) -> bool:
    """Whether a person has written a setting."""
    for name in path:
        if name not in spec.model_fields_set:
            return False
        spec = getattr(spec, name)
    return True
