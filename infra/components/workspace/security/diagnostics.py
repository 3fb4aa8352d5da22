"""What happens in the workspace, sent to log analytics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pulumi

from infra.components import azure_native, tokens
from infra.components.order import behind

if TYPE_CHECKING:
    from infra.components.workspace.place import Place

NAME: Final = "amlstack"


def register_diagnostics(
    place: Place, workspace: pulumi.Resource, logs: pulumi.Resource | None
) -> pulumi.CustomResource | None:
    """Register the workspace's diagnostic setting; None where the settings want none.

    Args:
        place: Where.
        workspace: The workspace.
        logs: The log analytics workspace; None when it is none of the stack's.
    """
    if not place.security.categories:
        return None
    properties = {
        "name": NAME,
        "resourceUri": behind(place.names.workspace_id.lstrip("/"), workspace),
        "workspaceId": behind(place.names.id("logs"), *([logs] if logs else ())),
        "logs": [{"category": category, "enabled": True} for category in place.security.categories],
    }
    opts = pulumi.ResourceOptions(
        parent=place.component,
        delete_before_replace=True,
    )
    return azure_native.register(tokens.DIAGNOSTIC_SETTING, "workspace-diagnostics", properties, opts)
