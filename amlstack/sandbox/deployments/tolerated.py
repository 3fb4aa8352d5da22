"""Keys of azure-ai-ml's own template that a present request lacks: data, each left out or read as intended.

Source: azure-ai-ml 1.35, ``_arm_deployments/arm_templates/workspace_base.json``; its api-versions (2020-08-01,
2023-08-01-preview) are older than those of azure-native's classes, by which bodies are judged here. A value that would
have an effect is not left out: it is refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Tolerated:
    """Of one type.

    Attributes:
        without_effect: Paths that are left out, each with the values that mean nothing; an empty set for any value.
        truths: Names under ``properties`` whose ``"true"`` and ``"false"`` are truth values.
    """

    without_effect: Mapping[str, frozenset[Any]]
    truths: frozenset[str] = frozenset()


_ANY: Final[frozenset[Any]] = frozenset()
_NO: Final[frozenset[Any]] = frozenset({"false", "False", False})
_YES_AND_NO: Final[frozenset[Any]] = _NO | {"true", "True", True}
"""The service assigns roles to the workspace's identity or does not; the sandbox refuses nothing for want of a role."""
OF_TYPE: Final[Mapping[str, Tolerated]] = {
    "microsoft.operationalinsights/workspaces": Tolerated({"kind": _ANY, "properties.Application_Type": _ANY}),
    "microsoft.machinelearningservices/workspaces": Tolerated(
        {
            "properties.softDeleteEnabled": _NO,
            "properties.allowRecoverSoftDeletedWorkspace": _NO,
            "properties.featureStoreSettings.computeruntime": _ANY,
            "properties.existingWorkspaces": _ANY,
            "properties.allowRoleAssignmentOnRG": _YES_AND_NO,
            "properties.provisionNetworkNow": _NO,
            "properties.encryption.status": frozenset({"Disabled"}),
        },
        frozenset(
            {
                "hbiWorkspace",
                "enableDataIsolation",
                "provisionNetworkNow",
                "enableSoftwareBillOfMaterials",
            }
        ),
    ),
}


def read(kind: str, body: dict[str, Any]) -> dict[str, Any]:
    """A body of a template as a request of today has it: without nulls, empty texts, and what has no effect."""
    row = OF_TYPE.get(kind.lower(), Tolerated({}))
    result: dict[str, Any] = _without_nothing(body)
    for path, values in row.without_effect.items():
        *above, last = path.split(".")
        place: Any = result
        for name in above:
            place = place.get(name, {}) if isinstance(place, dict) else {}
        if isinstance(place, dict) and last in place and (not values or place[last] in values):
            del place[last]
    properties = result.get("properties")
    if isinstance(properties, dict):
        for name in row.truths & properties.keys():
            if str(properties[name]).lower() in ("true", "false"):
                properties[name] = str(properties[name]).lower() == "true"
    return dict(_without_empty(result)) if row.without_effect else result


def _without_nothing(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _without_nothing(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each is not None and each != ""}
    return [_without_nothing(each) for each in value] if isinstance(value, list) else value


def _without_empty(value: Any) -> Any:
    """Without objects that hold nothing, from the inside out; tags and maps of ids may be empty."""
    if not isinstance(value, dict):
        return value
    kept = {key: _without_empty(each) for key, each in value.items()}
    return {key: each for key, each in kept.items() if each not in ({}, [])}
