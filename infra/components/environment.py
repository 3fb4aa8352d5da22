"""Environments: a curated one is a reference; anything else is registered under a version made from its content."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from amlstack import resources

if TYPE_CHECKING:
    from infra.components.workspace import Workspace
    from infra.registered import Registered


class Environment(pulumi.ComponentResource):
    """One environment version of the workspace; adopted when it is there already, kept when the stack goes."""

    def __init__(self, spec: Registered, workspace: Workspace) -> None:
        label = f"{spec.name}-{spec.version}"
        super().__init__("amlstack:infra:Environment", label)
        self.version = resources.EnvironmentVersion(
            label,
            workspace=workspace.workspace_id,
            name=spec.name,
            body=spec.body,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[workspace]),
        )
        self.register_outputs({"id": spec.id_in(workspace.names)})
