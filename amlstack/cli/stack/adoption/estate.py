"""What Azure has where a stack's settings say its workspace is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

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
