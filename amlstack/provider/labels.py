"""Environment labels: resolved once, when a run is submitted, so that its record says what it ran in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amlstack.provider.arm import ArmError
from amlstack.provider.runs import WorkspaceMissingError
from amlstack.rpc import ProviderError

if TYPE_CHECKING:
    from amlstack.provider.arm import ArmClient
    from amlstack.provider.resource import Values

_LATEST = re.compile(
    r"(?P<container>/subscriptions/.+/workspaces/[^/]+/environments/[^/]+)/labels/latest", re.IGNORECASE
)


def environment_of(arm: ArmClient, workspace: str, body: Values) -> str | None:
    """The environment id to submit: ``…/environments/x/labels/latest`` of a workspace becomes its newest version's id.

    A registry's labels are answered by the registry only; they are left to the service.

    Raises:
        ProviderError: The workspace has no version of that environment, or could not be asked.
        WorkspaceMissingError: There is no such workspace.
    """
    given = (body.get("properties") or {}).get("environmentId")
    match = _LATEST.fullmatch(given) if isinstance(given, str) else None
    if match is None:
        return given if isinstance(given, str) else None
    container = match["container"]
    query = {"$orderBy": "createdtime desc", "$top": "1"}
    try:
        found = arm.get(f"{container}/versions", query=query, allow=(404,)).body.get("value") or []
    except ArmError as error:
        raise ProviderError(f"the label latest of {container} could not be resolved: {error}") from None
    if not found:
        if arm.get(workspace, allow=(404,)).status == 404:
            raise WorkspaceMissingError(workspace)
        name = container.rsplit("/", 1)[-1]
        raise ProviderError(f"the workspace {workspace.rsplit('/', 1)[-1]} has no version of an environment {name}")
    return str(found[0]["id"])
