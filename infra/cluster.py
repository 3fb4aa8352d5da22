"""A cluster's wire properties, written once: a row for each field of the settings that becomes one.

The component registers them, the rules judge them before that, a rehearsal submits them, and a finding on a property
finds the way back to the setting. Needs neither Pulumi nor the settings' models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infra import roles
from policies.checks.size.fabric import SINGLE_NODE_TAG

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from infra.settings import Cluster

PRIORITIES = {"dedicated": "Dedicated", "low_priority": "LowPriority"}
_AML = "properties.properties"


@dataclass(frozen=True, slots=True)
class Setting:
    """One field of a cluster's settings.

    Attributes:
        path: Below ``clusters[]``.
        wire: Path of the property in the body.
        to_wire: From the field's value to the property's; None leaves the property out.
        replaces: Whether another value means another cluster.
    """

    path: tuple[str, ...]
    wire: str
    to_wire: Callable[[Any], Any] = lambda value: value
    replaces: bool = False


SETTINGS = (
    Setting(("location",), "location", replaces=True),
    Setting(("identity",), "identity"),
    Setting(("description",), "properties.description"),
    Setting(("size",), f"{_AML}.vmSize", replaces=True),
    Setting(("priority",), f"{_AML}.vmPriority", PRIORITIES.__getitem__, replaces=True),
    Setting(("subnet",), f"{_AML}.subnet", lambda value: {"id": value} if value else None, replaces=True),
    # True is what azure-native registers when the property is absent.
    Setting(("node_public_ip",), f"{_AML}.enableNodePublicIp", lambda value: value is not False, replaces=True),
    Setting(("isolated_network",), f"{_AML}.isolatedNetwork", replaces=True),
    Setting(("nodes", "min"), f"{_AML}.scaleSettings.minNodeCount"),
    Setting(("nodes", "max"), f"{_AML}.scaleSettings.maxNodeCount"),
    Setting(("nodes", "idle"), f"{_AML}.scaleSettings.nodeIdleTimeBeforeScaleDown"),
    Setting(("tags",), "tags"),
    Setting(("single_node_jobs",), f"tags.{SINGLE_NODE_TAG}", lambda value: "true" if value else None),
)

_CONSTANT = {
    "properties.computeType": "AmlCompute",
    "properties.disableLocalAuth": True,
    f"{_AML}.osType": "Linux",
    f"{_AML}.remoteLoginPortPublicAccess": "Disabled",
}
"""What no setting changes."""

REPLACED_BY = (
    *(setting.wire for setting in SETTINGS if setting.replaces),
    "properties.computeLocation",
    f"{_AML}.osType",
    f"{_AML}.remoteLoginPortPublicAccess",
    f"{_AML}.userAccountCredentials",
)
"""What the service cannot change on a cluster that exists: it answers success and changes nothing, and azure-native
plans such an update. Only the scale is updated in place."""


def properties(
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
        ("tags",): {**tags, **spec.tags},
    }
    body: dict[str, Any] = {}
    for wire, value in _CONSTANT.items():
        _put(body, wire, value)
    for setting in SETTINGS:
        value = given[setting.path] if setting.path in given else _value(spec, setting.path)
        _put(body, setting.wire, setting.to_wire(value))
    return body


def setting_of(wire: str) -> tuple[str, ...]:
    """Path of the setting, below ``clusters[]``, that became a property; empty where none did."""
    rows = [row for row in SETTINGS if wire == row.wire or wire.startswith(f"{row.wire}.")]
    return max(rows, key=lambda row: len(row.wire)).path if rows else ()


def _value(spec: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        spec = getattr(spec, name)
    return spec


def _put(body: dict[str, Any], path: str, value: Any) -> None:
    if value is None:
        return
    *parents, last = path.split(".")
    for parent in parents:
        body = body.setdefault(parent, {})
    body[last] = value
