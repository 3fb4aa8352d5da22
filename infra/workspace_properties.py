"""A workspace's wire properties, written once: their setting, their value, and what another value means.

The component registers them, docs/edits.md shows them, and the setting of a property that has drifted is found here.
Azure's own request for updates (PATCH, ``WorkspaceUpdateParameters`` of the API version 2025-12-01) says what changes
in place; a test holds this table to it. What it does not take cannot change on a workspace that exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from infra.settings import Workspace


@dataclass(frozen=True, slots=True)
class WorkspaceProperty:
    """One property.

    Attributes:
        wire: azure-native's name of the input, or a path in it.
        settings: The settings of the stack that decide it.
        value: From the workspace's settings to the property's value; None where other parts of the stack decide it.
        replaces: Whether another value means another workspace.
        refused: Azure refuses another value. It fills this in by itself, so that a workspace that was imported has a
            value that no setting says; registered as a replacement, the silence would replace it.
        stays: On a workspace that was imported it stays as it was found, whatever its settings say.
        note: What docs/edits.md adds.
    """

    wire: str
    settings: tuple[str, ...] = ()
    value: Callable[[Workspace], Any] | None = None
    replaces: bool = False
    refused: bool = False
    stays: bool = False
    note: str = ""

    @property
    def input(self) -> str:
        """azure-native's name of the input."""
        return self.wire.partition(".")[0]


def _serverless(spec: Workspace) -> dict[str, Any] | None:
    """The subnet of serverless jobs."""
    serverless = spec.serverless_compute
    if serverless is None:
        return None
    return {
        "serverlessComputeCustomSubnet": serverless.subnet,
        "serverlessComputeNoPublicIP": not serverless.node_public_ip,
    }


_IN_PATH = "It is part of the workspace's id."
_GIVEN_ONCE = "It is given when a workspace is made, and never again."

PROPERTIES = (
    WorkspaceProperty("workspaceName", ("workspace.name",), replaces=True, note=_IN_PATH),
    WorkspaceProperty("resourceGroupName", ("resource_group",), replaces=True, note=_IN_PATH),
    WorkspaceProperty("location", ("location",), replaces=True, note=_GIVEN_ONCE),
    WorkspaceProperty("kind", refused=True, note=_GIVEN_ONCE),
    WorkspaceProperty(
        "storageAccount", ("workspace.storage", "workspace.name_salt"), replaces=True, stays=True, note=_GIVEN_ONCE
    ),
    WorkspaceProperty(
        "keyVault", ("workspace.key_vault", "workspace.name_salt"), replaces=True, stays=True, note=_GIVEN_ONCE
    ),
    WorkspaceProperty(
        "hbiWorkspace",
        ("workspace.high_business_impact",),
        lambda spec: spec.high_business_impact or None,
        refused=True,
        note=_GIVEN_ONCE,
    ),
    WorkspaceProperty(
        "enableServiceSideCMKEncryption",
        ("workspace.encryption.service_side",),
        refused=True,
        note=_GIVEN_ONCE,
    ),
    WorkspaceProperty("encryption.status", replaces=True, note=_GIVEN_ONCE),
    WorkspaceProperty("encryption.identity", ("workspace.identity",), replaces=True, stays=True, note=_GIVEN_ONCE),
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
    WorkspaceProperty("friendlyName", ("workspace.display_name",), lambda spec: spec.display_name or spec.name),
    WorkspaceProperty("description", ("workspace.description",), attrgetter("description")),
    WorkspaceProperty("tags", ("tags",)),
    WorkspaceProperty("publicNetworkAccess", ("workspace.public_network",)),
    WorkspaceProperty("applicationInsights", ("workspace.insights",), stays=True),
    WorkspaceProperty("containerRegistry", ("workspace.registry", "workspace.name_salt"), stays=True),
    WorkspaceProperty("identity", ("workspace.identity",)),
    WorkspaceProperty("primaryUserAssignedIdentity", ("workspace.identity",)),
    WorkspaceProperty("systemDatastoresAuthMode", value=lambda _: "Identity"),
    WorkspaceProperty("imageBuildCompute", ("workspace.image_build_compute",), attrgetter("image_build_compute")),
    WorkspaceProperty("serverlessComputeSettings", ("workspace.serverless_compute",), _serverless),
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

REPLACED_BY: Final = tuple(each.wire for each in PROPERTIES if each.replaces)
"""azure-native plans most of these as updates, which the service refuses or ignores."""

INPUTS: Final = tuple(
    sorted({*(each.input for each in PROPERTIES), *UNKNOWN, *OTHER_KINDS} - {"workspaceName", "resourceGroupName"})
)
"""Inputs of azure-native's Workspace but its name and group."""


def from_settings(spec: Workspace) -> dict[str, Any]:
    """The properties that the workspace's settings alone decide."""
    return {each.wire: each.value(spec) for each in PROPERTIES if each.value is not None}


def left_alone(spec: Workspace, tags: Mapping[str, str]) -> list[str] | None:
    """Inputs that the engine leaves as the state has them; None for a workspace that the stack made.

    The state of an import has all that Azure answered; the program registers what it would create.

    Args:
        spec: The workspace's settings.
        tags: Tags of every resource.
    """
    if not spec.adopted:
        return None
    written = {f"workspace.{name}" for name in spec.model_fields_set}
    given = {
        each.input
        for each in PROPERTIES
        if not each.stays and any(".".join(name.split(".")[:2]) in written for name in each.settings)
    }
    return [name for name in INPUTS if name not in given and not (name == "tags" and tags)]
