"""What another value of each property of the workspace means: data; docs/edits.md shows it.

Azure's own request for updates (PATCH, ``WorkspaceUpdateParameters`` of the API version 2025-12-01) says what changes
in place; a test holds this table to it. What it does not take cannot change on a workspace that exists.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkspaceProperty:
    """One property.

    Attributes:
        wire: azure-native's name of the input, or a path in it.
        settings: The settings of the stack that decide it.
        replaces: Whether another value means another workspace.
        refused: Azure refuses another value. It fills this in by itself, so that a workspace that was imported has a
            value that no setting says; registered as a replacement, the silence would replace it.
        note: What docs/edits.md adds.
    """

    wire: str
    settings: tuple[str, ...] = ()
    replaces: bool = False
    refused: bool = False
    note: str = ""


_IN_PATH = "It is part of the workspace's id."
_GIVEN_ONCE = "It is given when a workspace is made, and never again."

PROPERTIES = (
    WorkspaceProperty("workspaceName", ("workspace.name",), replaces=True, note=_IN_PATH),
    WorkspaceProperty("resourceGroupName", ("resource_group",), replaces=True, note=_IN_PATH),
    WorkspaceProperty("location", ("location",), replaces=True, note=_GIVEN_ONCE),
    WorkspaceProperty("kind", refused=True, note=_GIVEN_ONCE),
    WorkspaceProperty("storageAccount", ("workspace.storage", "workspace.name_salt"), replaces=True, note=_GIVEN_ONCE),
    WorkspaceProperty("keyVault", ("workspace.key_vault", "workspace.name_salt"), replaces=True, note=_GIVEN_ONCE),
    WorkspaceProperty("hbiWorkspace", ("workspace.high_business_impact",), refused=True, note=_GIVEN_ONCE),
    WorkspaceProperty(
        "enableServiceSideCMKEncryption",
        ("workspace.encryption.service_side",),
        refused=True,
        note=_GIVEN_ONCE,
    ),
    WorkspaceProperty("encryption.status", replaces=True, note=_GIVEN_ONCE),
    WorkspaceProperty("encryption.identity", ("workspace.identity",), replaces=True, note=_GIVEN_ONCE),
    WorkspaceProperty(
        "encryption.keyVaultProperties.keyVaultArmId",
        ("workspace.encryption.key_vault",),
        replaces=True,
        note=_GIVEN_ONCE,
    ),
    WorkspaceProperty(
        "encryption.keyVaultProperties.keyIdentifier",
        ("workspace.encryption.key",),
        note="A workspace without a key cannot be given one: Azure refuses.",
    ),
    WorkspaceProperty("friendlyName", ("workspace.display_name",)),
    WorkspaceProperty("description", ("workspace.description",)),
    WorkspaceProperty("tags", ("tags",)),
    WorkspaceProperty("publicNetworkAccess", ("workspace.public_network",)),
    WorkspaceProperty("applicationInsights", ("workspace.insights",)),
    WorkspaceProperty("containerRegistry", ("workspace.registry", "workspace.name_salt")),
    WorkspaceProperty("identity", ("workspace.identity",)),
    WorkspaceProperty("primaryUserAssignedIdentity", ("workspace.identity",)),
    WorkspaceProperty("systemDatastoresAuthMode"),
    WorkspaceProperty("imageBuildCompute", ("workspace.image_build_compute",)),
    WorkspaceProperty("serverlessComputeSettings", ("workspace.serverless_compute",)),
    WorkspaceProperty(
        "managedNetwork",
        ("workspace.network.isolation", "workspace.network.firewall"),
        note="The way back from an isolated network is refused at preview (docs/networks.md).",
    ),
    WorkspaceProperty("enableDataIsolation"),
    WorkspaceProperty("v1LegacyMode"),
    WorkspaceProperty("serviceManagedResourcesSettings"),
    WorkspaceProperty("sku"),
)

UNKNOWN = ("allowPublicAccessWhenBehindVnet", "discoveryUrl", "provisionNetworkNow", "sharedPrivateLinkResources")
"""Azure's PUT takes them and its PATCH does not; what becomes of another value is documented nowhere. An update is
planned: no workspace is given up for a guess."""

OTHER_KINDS = ("associatedWorkspaces", "featureStoreSettings", "hubResourceId", "workspaceHubConfig")
"""Of hubs, projects and feature stores, which a stack does not make."""

REPLACED_BY = tuple(each.wire for each in PROPERTIES if each.replaces)
"""azure-native plans most of these as updates, which the service refuses or ignores."""
