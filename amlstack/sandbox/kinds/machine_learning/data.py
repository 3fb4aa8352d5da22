"""Data assets with their versions: a name for a place where data lie."""

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


class DataContainers(Containers):
    """The container of a data asset; it knows the type of its versions."""

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The type is that of its newest version, unless a request has given another."""
        versions = context.store.resources.under(resource.key, f"{self.type}/versions")
        kinds = [row.body["properties"]["dataType"] for row in versions]
        data_type = resource.body["properties"].get("dataType") or (kinds[-1] if kinds else None)
        return {**super().show(context, resource), **({"dataType": data_type} if data_type else {})}


class DataVersions(Versions):
    """Data versions: where the data lie, and whether they are a file, a folder or a table."""

    type = f"{ML}/workspaces/data/versions"
    noun = "a data version"
    schema = Schema(
        "machinelearningservices", "DataVersionArgs", PLACE | {"version"}, envelope=frozenset(), wrapped=True
    )

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """It has an address; one among a job's files is that of the files themselves."""
        self.take_address(context, path, body, "dataUri")
        if before is not None:
            self.check_same(body, before, "data", f"{path.names[-2]}:{path.name}")
        elif not body["properties"]["dataUri"]:
            raise invalid("properties.dataUri", "the required property is empty.")

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """Nothing more: a data version has no provisioning state."""
        del context, resource
        return {}


CONTAINERS = DataContainers("data", "a data asset", "DataContainerArgs")
VERSIONS = DataVersions()
