"""The settings under which an estate is a stack's own, as a person writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from infra.names import OWN_SETTINGS

if TYPE_CHECKING:
    from amlstack.cli.stack.adoption.estate import Body, Estate
    from infra.names import Names, Part

OPTIONAL: Final[tuple[Part, ...]] = ("registry", "insights")
"""Parts without which a workspace can be."""


def workspace(estate: Estate, names: Names) -> dict[str, Any]:
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
    """Whether the settings say another thing of the workspace than what there is."""
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


def cluster(body: Body, location: str) -> dict[str, Any]:
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
    """Whether a compute is one that a stack can declare."""
    return (body.get("properties") or {}).get("computeType") == "AmlCompute"


def _identity(given: Body) -> Any:
    users = sorted(given.get("userAssignedIdentities") or ())
    system = "systemassigned" in str(given.get("type", "")).replace(" ", "").lower()
    if users:
        return {"user_assigned": users, **({"type": "system"} if system else {})}
    return "system" if system else "none"


def _within(part_id: str, names: Names) -> bool:
    return part_id.lower().startswith(f"{names.group_id}/providers/".lower())
