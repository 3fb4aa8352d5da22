"""What is remembered of a stack while its resources are judged one after the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from amlstack.catalog.images import Registered
    from policies.evaluation.facts import Unknown
    from policies.evaluation.subject import Subject


@dataclass(frozen=True, slots=True)
class KnownCluster:
    """What is remembered of a cluster of the stack, for the jobs on it.

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
class Early:
    """A job that was judged before its cluster was seen.

    Attributes:
        subject: The job.
        found: Code and place of what was found then.
        name: The resource's name.
        urn: Its URN, as far as it is known.
    """

    subject: Subject
    found: frozenset[tuple[str, str]]
    name: str
    urn: str


@dataclass(slots=True)
class Context:
    """What rules know beside the subject.

    Attributes:
        on: The day of the judgement.
        clusters: Clusters of the stack seen so far, by name in small letters.
        single_node: Names of those that are, or may be, declared for jobs of one node only.
        networks: Address ranges of virtual networks seen so far, by name in small letters.
        groups: Locations of resource groups seen so far, by name in small letters.
        components: Specs of component versions seen so far, by name and version.
        images: Images of environments seen so far, by name and version.
        early: Jobs that name a cluster which had not been seen when they were judged.
    """

    on: date
    clusters: dict[str, KnownCluster] = field(default_factory=dict)
    single_node: set[str] = field(default_factory=set)
    networks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    groups: dict[str, str | None] = field(default_factory=dict)
    components: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    images: dict[str, Registered] = field(default_factory=dict)
    early: list[Early] = field(default_factory=list)
