"""A workspace's managed network as Azure has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.provider.arm import ArmClient

OFF: Final = "Disabled"
OPEN: Final = "AllowInternetOutbound"
APPROVED: Final = "AllowOnlyApprovedOutbound"
STRICTER: Final = (OFF, OPEN, APPROVED)
"""The modes, each stricter than the one before."""

USER_DEFINED: Final = "userdefined"
_READ_ONLY: Final = frozenset({"category", "status", "errorInformation", "parentRuleNames", "fqdns", "sparkStatus"})


@dataclass(frozen=True, slots=True)
class LiveNetwork:
    """The managed network of a workspace that exists.

    Attributes:
        mode: Its isolation, `OFF` where Azure says nothing.
        active: Whether it has been provisioned.
    """

    mode: str
    active: bool


def network(arm: ArmClient, workspace: str) -> LiveNetwork | None:
    """The managed network of a workspace; None where there is no such workspace.

    Raises:
        ArmError: The workspace could not be read.
    """
    answer = arm.get(workspace, allow=(404,))
    if answer.status == 404:
        return None
    found = _object(_object(answer.body.get("properties")).get("managedNetwork"))
    status = str(_object(found.get("status")).get("status") or "")
    return LiveNetwork(str(found.get("isolationMode") or OFF), status.lower() == "active")


def computes(arm: ArmClient, workspace: str) -> tuple[str, ...]:
    """Names of the computes of a workspace."""
    return tuple(str(one.get("name")) for one in _listed(arm, f"{workspace}/computes"))


def rules(arm: ArmClient, workspace: str) -> dict[str, dict[str, Any]]:
    """The outbound rules that users have made, by name: what Azure ML makes itself is left out."""
    found = {}
    for one in _listed(arm, f"{workspace}/outboundRules"):
        properties = _object(one.get("properties"))
        if str(properties.get("category") or USER_DEFINED).lower() == USER_DEFINED:
            found[str(one.get("name"))] = properties
    return found


def same(declared: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """True where a rule says what it is to say: Azure adds to it, and writes ids and tags in letters of its own."""
    return all(_same(value, found.get(name)) for name, value in declared.items() if name not in _READ_ONLY)


def _same(declared: Any, found: Any) -> bool:
    if isinstance(declared, dict):
        return isinstance(found, dict) and same(declared, found)
    if isinstance(declared, str) and isinstance(found, str):
        return declared.replace(" ", "").lower() == found.replace(" ", "").lower()
    return declared == found or (declared is False and found is None)


def _listed(arm: ArmClient, path: str) -> list[dict[str, Any]]:
    answer = arm.get(path)
    found = [*_values(answer.body)]
    while following := answer.body.get("nextLink"):
        answer = arm.request("GET", str(following), None)
        found += _values(answer.body)
    return found


def _values(body: Any) -> list[dict[str, Any]]:
    values = body.get("value") if isinstance(body, dict) else None
    return [one for one in values or () if isinstance(one, dict)]


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
