"""The guard of a stack's runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from amlstack.resources.base import OnEdit, ProviderResource

if TYPE_CHECKING:
    import pulumi


class RunsGuard(ProviderResource):
    """Refuses, or announces, what would end active runs of the stack; `JobResource` judges the edits of a job itself.

    Args:
        resource_name: Name in the stack.
        jobs: ``on_edit`` of every job, by name.
        clusters: Ids, as outputs, of every cluster, by name.
        opts: Pulumi's own options.
        inputs: ``workspace``, ``stack_id`` and ``reached_by`` of the schema.
    """

    kind = "amlstack:runs:Guard"

    def __init__(
        self,
        resource_name: str,
        *,
        jobs: Mapping[str, OnEdit],
        clusters: Mapping[str, pulumi.Input[str]],
        opts: pulumi.ResourceOptions | None = None,
        **inputs: Any,
    ) -> None:
        # Each cluster is a property of its own: which one is being replaced is known by the property alone.
        places = {f"cluster:{name}": cluster_id for name, cluster_id in clusters.items()}
        super().__init__(resource_name, opts=opts, jobs=dict(jobs), **inputs, **places)
