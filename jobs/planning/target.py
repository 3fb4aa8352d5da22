"""What a job is planned against: a cluster or a serverless size, as plain facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from amlstack.catalog import sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from amlstack.base.findings import Finding
    from amlstack.catalog.sizes import Size
    from jobs.model.job import Job

    Find = Callable[[Job], tuple["Target", Sequence[Finding]]]


@dataclass(frozen=True, slots=True)
class Target:
    """Where a job would run.

    Attributes:
        size: VM size by name; None when it is not known.
        cluster: Name of the cluster; None for serverless.
        max_nodes: Most nodes that the cluster scales to; None for no known bound.
        single_node_jobs: Whether the cluster takes jobs of one node only.
        region: Where its nodes are, as programs write it; None where it is not known.
        low_priority: Whether its nodes are of low priority.
    """

    size: str | None = None
    cluster: str | None = None
    max_nodes: int | None = None
    single_node_jobs: bool = False
    region: str | None = None
    low_priority: bool = False

    @property
    def facts(self) -> Size | None:
        """The catalogue's row of the size, when it has one."""
        return sizes.get(self.size) if self.size else None
