"""The function ``amlstack:azure:lookUp``: what Azure says of one resource, as an answer and never as an error.

A program asks before it registers anything whether what it builds on exists. azure-native's functions end the program
where they do not find a resource, and know one subscription only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from amlstack.provider.arm.answers import ArmError

if TYPE_CHECKING:
    from amlstack.provider.arm import ArmClient
    from amlstack.provider.resource import Values

FUNCTION: Final = "amlstack:azure:lookUp"


def look_up(arm: ArmClient, asked: Values) -> dict[str, Any]:
    """Ask for a resource.

    Args:
        arm: Azure Resource Manager.
        asked: ``{"id": ARM id, "apiVersion": …, "properties": [names]}``; nothing but the named properties is given
            back, as some hold keys.

    Returns:
        ``{"status": 200, "location", "properties": {…}}``, or ``{"status", "code", "message"}`` with the service's own
        words; status 0 when it could not be asked.
    """
    try:
        body = arm.get(str(asked["id"]), str(asked["apiVersion"])).body
    except ArmError as error:
        return {"status": error.status, "code": error.code, "message": error.message}
    properties = body.get("properties") or {}
    wanted = asked.get("properties") or ()
    found = {name: properties[name] for name in wanted if properties.get(name) is not None}
    return {"status": 200, "location": str(body.get("location") or ""), "properties": found}
