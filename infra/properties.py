"""Wire properties of a cluster and of a workspace, each written once: its setting, its value, and what an edit means.

The components register them, the rules judge a cluster's before that, a rehearsal submits them, docs/reference/edits.md
shows them, and a finding on a property, or one that has drifted, finds the way back to its setting. Needs no Pulumi.

Azure's own request for updates of a workspace (PATCH, ``WorkspaceUpdateParameters`` of the API version 2025-12-01) says
what changes in place; a test holds its table to it. What it does not take cannot change on a workspace that exists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from infra import roles
from policies.checks.size import SINGLE_NODE_TAG

if TYPE_CHECKING:
    from infra.settings import Cluster, Workspace

PRIORITIES = {"dedicated": "Dedicated", "low_priority": "LowPriority"}
_AML = "properties.properties"
_SSH = f"{_AML}.userAccountCredentials"
_NOT_MEASURED = "[Not proven](unproven.md#cluster-in-place) of Azure."


class ClusterSetting(NamedTuple):
    """One field of a cluster's settings.

    Attributes:
        path: Below ``clusters[]``.
        wire: Path of the property in the body.
        to_wire: From the field's value to the property's; None leaves the property out.
        replaces: Whether another value means another cluster.
        note: What docs/reference/edits.md adds about such an edit.
    """

    path: tuple[str, ...]
    wire: str
    to_wire: Callable[[Any], Any] = lambda value: value
    replaces: bool = False
    note: str = ""


CLUSTER_SETTINGS = (
    ClusterSetting(("location",), "location", replaces=True),
    ClusterSetting(
        ("identity",),
        "identity",
        note="Whether Azure changes it in place is [not proven](unproven.md#cluster-identity), so a replacement is "
        "planned; `identity_change: in_place` plans an update.",
    ),
    ClusterSetting(("description",), "properties.description", note=_NOT_MEASURED),
    ClusterSetting(("disable_local_auth",), "properties.disableLocalAuth", replaces=True),
    ClusterSetting(("size",), f"{_AML}.vmSize", replaces=True),
    ClusterSetting(("priority",), f"{_AML}.vmPriority", PRIORITIES.__getitem__, replaces=True),
    ClusterSetting(("subnet",), f"{_AML}.subnet", lambda value: {"id": value} if value else None, replaces=True),
    # True is what azure-native registers when the property is absent.
    ClusterSetting(("node_public_ip",), f"{_AML}.enableNodePublicIp", lambda value: value is not False, replaces=True),
    ClusterSetting(("isolated_network",), f"{_AML}.isolatedNetwork", lambda value: value or None, replaces=True),
    ClusterSetting(("ssh", "user"), f"{_SSH}.adminUserName", replaces=True),
    ClusterSetting(("ssh", "public_key"), f"{_SSH}.adminUserSshPublicKey", replaces=True),
    ClusterSetting(
        ("ssh", "public_access"),
        f"{_AML}.remoteLoginPortPublicAccess",
        lambda value: "Enabled" if value else "Disabled",
        replaces=True,
    ),
    ClusterSetting(("nodes", "min"), f"{_AML}.scaleSettings.minNodeCount"),
    ClusterSetting(("nodes", "max"), f"{_AML}.scaleSettings.maxNodeCount"),
    ClusterSetting(("nodes", "idle"), f"{_AML}.scaleSettings.nodeIdleTimeBeforeScaleDown"),
    ClusterSetting(("tags",), "tags", note=_NOT_MEASURED),
    ClusterSetting(
        ("single_node_jobs",),
        f"tags.{SINGLE_NODE_TAG}",
        lambda value: "true" if value else None,
        note=f"It is a tag. {_NOT_MEASURED}",
    ),
)
"""docs/reference/edits.md shows the table; a test previews an edit of each row."""

_CONSTANT = {"properties.computeType": "AmlCompute", f"{_AML}.osType": "Linux"}
"""Properties that no setting changes."""

CLUSTER_REPLACED_BY = (
    *(setting.wire for setting in CLUSTER_SETTINGS if setting.replaces),
    # An administrator that comes or goes is one change of the whole object.
    _SSH,
    "properties.computeLocation",
    *_CONSTANT,
)
"""Properties that the service cannot change on a cluster that exists: it answers success and changes nothing,
and azure-native plans such an update. Only the scale is updated in place."""


def replaced_by(identity_change: str = "replace") -> tuple[str, ...]:
    """The properties of which another value means another cluster, as the cluster's settings have it."""
    return CLUSTER_REPLACED_BY if identity_change == "in_place" else ("identity", *CLUSTER_REPLACED_BY)


def cluster_properties(
    spec: Cluster, *, location: str | None, tags: Mapping[str, str], stack_identity: str = ""
) -> dict[str, Any]:
    """The body of a cluster, without what is not set; its name is no part of a body.

    Args:
        spec: The cluster's settings.
        location: Region of the nodes; the settings may leave it to the stack. None where it is not known.
        tags: The stack's.
        stack_identity: ARM id of the identity that the stack makes for its clusters.

    Returns:
        ``{"location", "identity", "properties": {…}, "tags"}``.
    """
    given: dict[tuple[str, ...], Any] = {
        ("location",): location,
        ("identity",): roles.identity(spec.identity, stack=stack_identity),
        ("disable_local_auth",): spec.without_local_auth,
        ("tags",): {**tags, **spec.tags},
    }
    body: dict[str, Any] = {}
    for wire, value in _CONSTANT.items():
        _put(body, wire, value)
    for setting in CLUSTER_SETTINGS:
        value = given[setting.path] if setting.path in given else _value(spec, setting.path)
        _put(body, setting.wire, setting.to_wire(value))
    if spec.adopted:  # the state of an import has the size in capitals, as Azure was recorded to answer it
        _put(body, f"{_AML}.vmSize", spec.size.upper())
    return body


def setting_of(wire: str) -> tuple[str, ...]:
    """Path of the setting, below ``clusters[]``, that became a property; empty where none did."""
    rows = [row for row in CLUSTER_SETTINGS if wire == row.wire or wire.startswith(f"{row.wire}.")]
    return max(rows, key=lambda row: len(row.wire)).path if rows else ()


def _value(spec: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        if spec is None:  # an object that may be absent
            return None
        spec = getattr(spec, name)
    return spec


def _put(body: dict[str, Any], path: str, value: Any) -> None:
    if value is None:
        return
    *parents, last = path.split(".")
    for parent in parents:
        body = body.setdefault(parent, {})
    body[last] = value


_INPUTS: Final = (
    *("identity", "location", "sku", "tags"),
    *(f"properties.{name}" for name in ("computeLocation", "description", "disableLocalAuth", "resourceId")),
    *(f"{_AML}.{name}" for name in ("enableNodePublicIp", "isolatedNetwork", "osType", "propertyBag")),
    *(f"{_AML}.{name}" for name in ("remoteLoginPortPublicAccess", "subnet", "userAccountCredentials")),
    *(f"{_AML}.{name}" for name in ("virtualMachineImage", "vmPriority", "vmSize")),
)
"""Inputs of azure-native's Compute that an AmlCompute cluster has, but for its scale."""


def cluster_left_alone(spec: Cluster, tags: Mapping[str, str]) -> list[str] | None:
    """Properties that the engine leaves as the state has them; None for a cluster that the stack made.

    The state of an import has all that Azure answered; the program registers what it would create.

    Args:
        spec: The cluster's settings.
        tags: Tags of every resource.
    """
    if not spec.adopted:
        return None
    rows = [row for row in CLUSTER_SETTINGS if not row.wire.startswith("tags")]
    given = {row.wire for row in rows if _says(spec, row.path)}
    if tags or spec.tags or spec.single_node_jobs:
        given.add("tags")
    if spec.identity.kind == "none" and not spec.identity.user_assigned:
        given.discard("identity")
    known = dict.fromkeys((*_INPUTS, *(row.wire for row in rows), *replaced_by()))
    silent = [wire for wire in known if not any(_within(each, wire) for each in given)]
    # An object that the settings do not say at all is left alone as one.
    return [wire for wire in silent if not any(wire != each and _within(wire, each) for each in silent)]


def _within(wire: str, whole: str) -> bool:
    return wire == whole or wire.startswith(f"{whole}.")


def _says(spec: Any, path: tuple[str, ...]) -> bool:
    """True where a person has written a setting."""
    for name in path:
        if name not in spec.model_fields_set:
            return False
        spec = getattr(spec, name)
    return True


class WorkspaceProperty(NamedTuple):
    """One property.

    Attributes:
        wire: azure-native's name of the input, or a path in it.
        settings: The settings of the stack that decide it.
        value: From the workspace's settings to the property's value; None where other parts of the stack decide it.
        replaces: Whether another value means another workspace.
        refused: Azure refuses another value. It fills this in by itself, so that a workspace that was imported has a
            value that no setting says; registered as a replacement, the silence would replace it.
        stays: On a workspace that was imported it stays as it was found, whatever its settings say.
        note: What docs/reference/edits.md adds.
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

WORKSPACE_SETTINGS = (
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
        "enableServiceSideCMKEncryption", ("workspace.encryption.service_side",), refused=True, note=_GIVEN_ONCE
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
        note="The way back from an isolated network is refused at preview (docs/reference/networks.md).",
    ),
    WorkspaceProperty("enableDataIsolation"),
    WorkspaceProperty("v1LegacyMode"),
    WorkspaceProperty("serviceManagedResourcesSettings"),
    WorkspaceProperty("sku"),
)

UNKNOWN = ("allowPublicAccessWhenBehindVnet", "discoveryUrl", "provisionNetworkNow", "sharedPrivateLinkResources")
"""Azure's PUT takes them and its PATCH does not (docs/reference/unproven.md#workspace-properties). Planned is an
update: no workspace is given up for a guess."""

OTHER_KINDS = ("associatedWorkspaces", "featureStoreSettings", "hubResourceId", "workspaceHubConfig")
"""Of hubs, projects and feature stores, which a stack does not make."""

WORKSPACE_REPLACED_BY: Final = tuple(each.wire for each in WORKSPACE_SETTINGS if each.replaces)
"""azure-native plans most of these as updates, which the service refuses or ignores."""

WORKSPACE_INPUTS: Final = tuple(
    sorted(
        {*(each.input for each in WORKSPACE_SETTINGS), *UNKNOWN, *OTHER_KINDS} - {"workspaceName", "resourceGroupName"}
    )
)
"""Inputs of azure-native's Workspace but its name and group."""


def workspace_properties(spec: Workspace) -> dict[str, Any]:
    """The properties that the workspace's settings alone decide."""
    return {each.wire: each.value(spec) for each in WORKSPACE_SETTINGS if each.value is not None}


def workspace_left_alone(spec: Workspace, tags: Mapping[str, str]) -> list[str] | None:
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
        for each in WORKSPACE_SETTINGS
        if not each.stays and any(".".join(name.split(".")[:2]) in written for name in each.settings)
    }
    return [name for name in WORKSPACE_INPUTS if name not in given and not (name == "tags" and tags)]
