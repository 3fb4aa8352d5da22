"""Requirements of a stack's runs: its id, the workspace, the clusters, and the guard over all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pulumi

from amlstack import resources
from infra.components.order import after, behind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from infra.components.cluster import RdmaCluster
    from infra.components.identities import StackIdentity
    from infra.components.workspace import AnyWorkspace


@dataclass(frozen=True, slots=True)
class RunRequirements:
    """The resources that come before every run.

    Attributes:
        id: The stack's random id.
        workspace: The workspace, the stack's own or one that exists.
        guard: Judges what would end active runs; it comes before every job and after every cluster.
        before_jobs: The guard, as an entry of ``depends_on``.
        reached_by: The identities and the network that runs reach their data by, as far as the stack makes them.
        secrets: The stack's secrets for variables of jobs, by name, each marked as one.
    """

    id: pulumi.Output[str]
    workspace: AnyWorkspace
    guard: pulumi.Resource
    before_jobs: pulumi.Output[Any]
    reached_by: tuple[pulumi.CustomResource, ...]
    secrets: Mapping[str, pulumi.Output[str]]

    @classmethod
    def of(
        cls,
        record: resources.StackRecord,
        workspace: AnyWorkspace,
        shared: StackIdentity | None,
        clusters: Mapping[str, RdmaCluster],
        jobs: Mapping[str, resources.OnEdit],
        *,
        secrets: Mapping[str, str] | None = None,
    ) -> RunRequirements:
        """Declare the guard.

        Args:
            record: The stack's record.
            workspace: Complete.
            shared: The identity of the stack's clusters, where it has one.
            clusters: All clusters by name.
            jobs: ``on_edit`` of all jobs, sweeps and pipelines by name.
            secrets: The stack's secrets in clear text, by name.
        """
        reached_by = (*workspace.reached_by, *([shared.identity] if shared else ()))
        guard = resources.RunsGuard(
            "runs",
            workspace=workspace.settled_id,
            # What counts is what it comes from: the engine asks the guard before it replaces any of that.
            reached_by=behind("identities and network", *reached_by) if reached_by else None,
            stack_id=record.stack_id,
            jobs=jobs,
            clusters={name: cluster.compute.id for name, cluster in clusters.items()},
            shared=not workspace.part("workspace") or None,
        )
        marked = {name: pulumi.Output.secret(value) for name, value in (secrets or {}).items()}
        return cls(record.stack_id, workspace, guard, after(guard), reached_by, marked)

    def placed_on(self, clusters: Iterable[RdmaCluster]) -> list[pulumi.Output[str]]:
        """Ids of what a run on these clusters lives on."""
        where = self.workspace
        placed = (cluster.compute for cluster in clusters)
        below = (*where.part("storage"), *where.part("workspace"), *placed, *self.reached_by)
        return [each.id for each in below if isinstance(each, pulumi.CustomResource)]
