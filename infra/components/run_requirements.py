"""What the runs of a stack live on: its id, the workspace, the clusters, and the guard over all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pulumi

from amlstack import resources
from infra.components.order import after

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from infra.components.cluster import RdmaCluster
    from infra.components.workspace import AnyWorkspace


@dataclass(frozen=True, slots=True)
class RunRequirements:
    """What comes before every run.

    Attributes:
        id: The stack's random id.
        workspace: The workspace, the stack's own or one that exists.
        guard: Judges what would end active runs; it comes before every job and after every cluster.
        before_jobs: The guard, as an entry of ``depends_on``.
        secrets: The stack's secrets for variables of jobs, by name, each marked as one.
    """

    id: pulumi.Output[str]
    workspace: AnyWorkspace
    guard: pulumi.Resource
    before_jobs: pulumi.Output[Any]
    secrets: Mapping[str, pulumi.Output[str]]

    @classmethod
    def of(
        cls,
        record: resources.StackRecord,
        workspace: AnyWorkspace,
        clusters: Mapping[str, RdmaCluster],
        jobs: Mapping[str, resources.OnEdit],
        secrets: Mapping[str, str] | None = None,
    ) -> RunRequirements:
        """Declare the guard.

        Args:
            record: The stack's record.
            workspace: Complete.
            clusters: All clusters by name.
            jobs: ``on_edit`` of all jobs, sweeps and pipelines by name.
            secrets: The stack's secrets in clear text, by name.
        """
        guard = resources.RunsGuard(
            "runs",
            workspace=workspace.whole,
            stack_id=record.stack_id,
            jobs=jobs,
            clusters={name: cluster.compute.id for name, cluster in clusters.items()},
            shared=not workspace.part("workspace"),
        )
        marked = {name: pulumi.Output.secret(value) for name, value in (secrets or {}).items()}
        return cls(record.stack_id, workspace, guard, after(guard), marked)

    def placed_on(self, clusters: Iterable[RdmaCluster]) -> list[pulumi.Output[str]]:
        """Ids of what a run on these clusters lives on."""
        where = self.workspace
        below = (*where.part("storage"), *where.part("workspace"), *(cluster.compute for cluster in clusters))
        return [each.id for each in below if isinstance(each, pulumi.CustomResource)]
