"""The estate where a stack's settings say its workspace is, and the settings under which it is the stack's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from infra.names import OWN_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from amlstack.provider.arm import ArmClient
    from infra.names import Names, Part

Body = dict[str, Any]

GROUPS: Final = "2024-03-01"
_NAMED_BY_WORKSPACE: Final[Mapping[Part, tuple[str, str]]] = {
    "storage": ("storageAccount", "2024-01-01"),
    "key_vault": ("keyVault", "2024-11-01"),
    "registry": ("containerRegistry", "2023-07-01"),
    "insights": ("applicationInsights", "2020-02-02"),
}
"""Part → property of the workspace that has its id, and the API version to ask for the part itself."""
_LOGS: Final = "2023-09-01"
_MOST_PAGES: Final = 1_000


@dataclass(frozen=True, slots=True)
class Estate:
    """A workspace with what it stands on and what lies in it.

    Attributes:
        group: Body of the resource group; None where there is none.
        workspace: Body of the workspace likewise.
        parts: Ids of what the workspace stands on, as Azure writes them, by part.
        computes: Bodies of its compute, of every kind.
        schedules: Bodies of its schedules.
    """

    group: Body | None
    workspace: Body | None
    parts: Mapping[Part, str] = field(default_factory=dict)
    computes: tuple[Body, ...] = ()
    schedules: tuple[Body, ...] = ()


def read(arm: ArmClient, names: Names) -> Estate:
    """Ask Azure.

    Args:
        arm: Azure Resource Manager.
        names: Where the stack's settings look for group and workspace.

    Raises:
        ArmError: Something could not be asked for; what is not there is no error.
    """
    group = _one(arm, names.group_id, GROUPS)
    workspace = _one(arm, names.workspace_id) if group else None
    if workspace is None:
        return Estate(group, None)
    root = str(workspace["id"])
    return Estate(
        group,
        workspace,
        dict(_parts(arm, workspace)),
        tuple(_listed(arm, f"{root}/computes")),
        tuple(_listed(arm, f"{root}/schedules")),
    )


def _parts(arm: ArmClient, workspace: Body) -> Iterator[tuple[Part, str]]:
    properties = workspace.get("properties") or {}
    for part, (name, version) in _NAMED_BY_WORKSPACE.items():
        if not (given := properties.get(name)):
            continue
        # The workspace repeats what it was created with, in whatever letter case.
        found = _one(arm, str(given), version)
        yield part, str((found or {}).get("id") or given)
        if part == "insights" and found is not None:
            inner = found.get("properties") or {}
            logs = inner.get("WorkspaceResourceId") or inner.get("workspaceResourceId")
            if logs:
                yield "logs", str((_one(arm, str(logs), _LOGS) or {}).get("id") or logs)


def _one(arm: ArmClient, resource_id: str, *version: str) -> Body | None:
    answer = arm.get(resource_id, *version, allow=(404,))
    return answer.body if answer.status == 200 and isinstance(answer.body, dict) else None


def _listed(arm: ArmClient, collection: str) -> Iterator[Body]:
    answer = arm.get(collection)
    for _ in range(_MOST_PAGES):
        body = answer.body if isinstance(answer.body, dict) else {}
        yield from body.get("value") or ()
        if not body.get("nextLink"):
            return
        answer = arm.request("GET", str(body["nextLink"]), None)


OPTIONAL: Final[tuple[Part, ...]] = ("registry", "insights")
"""Parts without which a workspace can be."""


def workspace_settings(estate: Estate, names: Names) -> dict[str, Any]:
    """The settings of the workspace: its parts by the names that they have, or by id where they lie elsewhere."""
    found: dict[str, Any] = {"name": names.workspace, "adopted": True}
    for part in OWN_SETTINGS:
        part_id = estate.parts.get(part)
        if part_id is None:
            if part in OPTIONAL:
                found[part] = {"absent": True}
        elif _within(part_id, names):
            found[part] = {"name": part_id.rsplit("/", 1)[-1]}
        else:
            found[part] = {"existing": part_id}
    return found


def differs(estate: Estate, names: Names, *, adopted: bool) -> bool:
    """True where the settings differ from the workspace that exists."""
    if not adopted:
        return True
    for part in OWN_SETTINGS:
        there = estate.parts.get(part)
        if there is None:
            # Log analytics go with application insights; where those are somebody else's, so are these.
            if part in OPTIONAL and part not in names.without:
                return True
        elif part in names.without or names.id(part).lower() != there.lower():
            if part == "logs" and "insights" in names.elsewhere:
                continue
            return True
    return False


def cluster_settings(body: Body, location: str) -> dict[str, Any]:
    """The settings of a cluster that Azure has.

    Args:
        body: Its ARM body.
        location: The stack's own region.
    """
    compute = body["properties"]
    aml = compute.get("properties") or {}
    scale = aml.get("scaleSettings") or {}
    nodes = {"min": scale.get("minNodeCount", 0), "max": scale.get("maxNodeCount", 0)}
    if idle := scale.get("nodeIdleTimeBeforeScaleDown"):
        nodes["idle"] = idle
    found: dict[str, Any] = {"name": body["name"], "adopted": True, "size": aml.get("vmSize"), "nodes": nodes}
    if str(aml.get("vmPriority")) == "LowPriority":
        found["priority"] = "low_priority"
    if subnet := (aml.get("subnet") or {}).get("id"):
        found["subnet"] = subnet
    if aml.get("enableNodePublicIp") is False:
        found["node_public_ip"] = False
    place = str(compute.get("computeLocation") or body.get("location") or "").replace(" ", "").lower()
    if place and place != location:
        found["location"] = place
    found["identity"] = _identity(body.get("identity") or {})
    optional = {"description": compute.get("description"), "tags": body.get("tags")}
    return {**found, **{name: value for name, value in optional.items() if value}}


def is_cluster(body: Body) -> bool:
    """True where a compute is one that a stack can declare."""
    return (body.get("properties") or {}).get("computeType") == "AmlCompute"


def _identity(given: Body) -> Any:
    users = sorted(given.get("userAssignedIdentities") or ())
    system = "systemassigned" in str(given.get("type", "")).replace(" ", "").lower()
    if users:
        return {"user_assigned": users, **({"type": "system"} if system else {})}
    return "system" if system else "none"


def _within(part_id: str, names: Names) -> bool:
    return part_id.lower().startswith(f"{names.group_id}/providers/".lower())
