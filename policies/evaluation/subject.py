"""One thing that a resource asks for, in the rules' words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from policies.evaluation.facts import Facts, Unknown

Kind = Literal["cluster", "job", "environment", "resource", "text", "network", "group", "machine"]


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
    """

    kind: Kind
    where: str
    size: str | Unknown | None
    nodes: int | Unknown
    facts: Facts
    single_node_jobs: bool | Unknown = False
    compute: Any = None
