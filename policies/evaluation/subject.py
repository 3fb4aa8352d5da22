"""One thing that a resource asks for, in the rules' words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from policies.evaluation.arm_ids import Address
    from policies.evaluation.facts import Facts, Unknown

Kind = Literal["cluster", "job", "environment", "resource", "text", "network", "group", "machine"]


@dataclass(frozen=True, slots=True)
class KnownCluster:
    """Facts on a cluster of the stack, kept for the jobs on it.

    Attributes:
        size: Name of its size.
        low_priority: Whether its nodes may be taken away.
        single_node_jobs: Whether it is declared for jobs of one node only.
        nodes: Most nodes for which its size has been judged; 0 for a cluster that is declared elsewhere.
        region: Where its nodes are; None where that is not known.
    """

    size: str
    low_priority: bool
    single_node_jobs: bool | Unknown = False
    nodes: int | Unknown = 0
    region: str | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """One thing that a resource asks for.

    Attributes:
        kind: What it is to the rules.
        where: Path of the size in the resource's properties, or of the thing where it has none.
        size: The size's name as it was written; None where it names none.
        nodes: Most nodes that one job can get on it: a cluster's maximum, a job's instance count.
        single_node_jobs: Whether the cluster says that no job on it spans nodes; False for a job.
        facts: What else it says.
        compute: What a job runs on, as it was written; None for serverless and for all else.
        place: Where a cluster is; of a job, in which workspace.
        on: The cluster of the stack that a job runs on, once it is chosen among several.
    """

    kind: Kind
    where: str
    size: str | Unknown | None
    nodes: int | Unknown
    facts: Facts
    single_node_jobs: bool | Unknown = False
    compute: Any = None
    place: Address | None = None
    on: KnownCluster | None = None
