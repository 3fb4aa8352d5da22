"""Models with their versions: files that a job left or somebody brought, registered under a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.sandbox.arm.ids import ML
from amlstack.sandbox.arm.refusals import invalid
from amlstack.sandbox.kinds.base import Schema
from amlstack.sandbox.kinds.machine_learning.assets import PLACE, Containers, Versions

if TYPE_CHECKING:
    from amlstack.sandbox.arm.ids import ArmPath
    from amlstack.sandbox.kinds.base import Body, KindContext
    from amlstack.sandbox.store.store import ResourceRow


class ModelVersions(Versions):
    """Model versions: where the files lie and what wrote them."""

    type = f"{ML}/workspaces/models/versions"
    noun = "a model version"
    schema = Schema(
        "machinelearningservices", "ModelVersionArgs", PLACE | {"version"}, envelope=frozenset(), wrapped=True
    )

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """It has an address; one among a job's files is that of the files themselves."""
        self.take_address(context, path, body, "modelUri")
        if before is not None:
            self.check_same(body, before, "model", f"{path.names[-2]}:{path.name}")
        elif not body["properties"].get("modelUri"):
            raise invalid("properties.modelUri", "the required property is missing.")

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """The service's defaults; clients go through the flavors of every model."""
        filled = super().fill(context, path, body)
        return {**filled, "properties": {"flavors": {}, **filled["properties"]}}


CONTAINERS = Containers("models", "a model", "ModelContainerArgs")
VERSIONS = ModelVersions()
