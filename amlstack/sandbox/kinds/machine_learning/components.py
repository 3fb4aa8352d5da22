"""Components with their versions: what a pipeline's steps run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.sandbox.arm.ids import ML
from amlstack.sandbox.arm.refusals import invalid
from amlstack.sandbox.kinds.base import Schema
from amlstack.sandbox.kinds.machine_learning.assets import PLACE, Containers, Versions
from amlstack.sandbox.parents import component_record

if TYPE_CHECKING:
    from amlstack.sandbox.arm.ids import ArmPath
    from amlstack.sandbox.kinds.base import Body, KindContext
    from amlstack.sandbox.store.store import ResourceRow


DEFAULT_VERSION = "azureml_default"
"""Under this name azure-ai-ml asks for a component without a version: the newest one that is not archived."""


class ComponentVersions(Versions):
    """Component versions: a command, a parallel task or a pipeline, with declared inputs and outputs."""

    type = f"{ML}/workspaces/components/versions"
    noun = "a component version"
    schema = Schema(
        "machinelearningservices", "ComponentVersionArgs", PLACE | {"version"}, envelope=frozenset(), wrapped=True
    )

    def meant(self, context: KindContext, path: ArmPath) -> str:
        """The default version's own id, where it is asked for by its other name."""
        if path.name.lower() != DEFAULT_VERSION:
            return path.text
        rows = context.store.resources.under(path.parent, self.type)
        active = [row for row in rows if not row.body["properties"].get("isArchived")]
        return active[-1].id if active else path.text

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """It has a specification; what that runs in must be there when a job is made of it."""
        if before is not None:
            self.check_same(body, before, "component", f"{path.names[-2]}:{path.name}")
            return
        where = "properties.componentSpec"
        if body["properties"].get("componentSpec") is None:
            raise invalid(where, "the required property 'componentSpec' of a component version is missing.")
        component_record.check(body["properties"]["componentSpec"], where)
        for name, step in (body["properties"]["componentSpec"].get("jobs") or {}).items():
            # They come first, so that no component can be a step of itself.
            if isinstance(step, dict) and isinstance(step.get("componentId"), str):
                component_record.find(context.store, step["componentId"], f"{where}.jobs.{name}")


CONTAINERS = Containers("components", "a component", "ComponentContainerArgs")
VERSIONS = ComponentVersions()
