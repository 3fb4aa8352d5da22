"""Subjects of the rules: what a resource asks for, and what is remembered of the stack."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from policies.evaluation.arm_ids import Address, address_of
from policies.evaluation.facts import AT_RUN, GAP, Gapped, Undecided, Unknown, is_expression, open_part

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from datetime import date

    from amlstack.catalog.images import Registered
    from policies.evaluation.facts import Facts


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


NO_COMPUTE = ""
"""Name under which a gate may know the size for jobs that name neither a compute nor a size."""


@dataclass(slots=True)
class Clusters:
    """The clusters of a stack seen so far.

    Attributes:
        promised: Whether one of them is, or may be, declared for jobs of one node only.
    """

    promised: bool = False
    _by_name: dict[str, dict[Hashable, tuple[Address, KnownCluster]]] = field(default_factory=dict)
    _nameless: dict[Hashable, tuple[Address, KnownCluster]] = field(default_factory=dict)

    def add(self, place: Address, known: KnownCluster, by: Hashable = "") -> None:
        """Remember a cluster; what was remembered of the same resource goes.

        Args:
            place: Where it is.
            known: What is remembered.
            by: The resource that declares it.
        """
        self.promised = self.promised or known.single_node_jobs is not False
        same = self._nameless if place.name is None else self._by_name.setdefault(place.name, {})
        same[by] = place, known

    def named(self, name: str) -> dict[Hashable, tuple[Address, KnownCluster]]:
        """All of a name, wherever they are, by what declares them."""
        return self._by_name.get(name.lower(), {})

    def at(self, place: Address) -> list[KnownCluster]:
        """Those that a place may mean: of one name, those whose places are known to agree most.

        Raises:
            Undecided: The only one that it may be has a name that is not known, and holds jobs to one node.
        """
        found = [
            (one.agrees(place), known) for one, known in self.named(place.name or "").values() if one.may_be(place)
        ]
        if not found:
            for one, known in self._nameless.values() if place.name else ():
                if one.unknown is not None and one.may_be(place) and known.single_node_jobs is not False:
                    raise Undecided(one.unknown)
        best = max((agrees for agrees, _ in found), default=0)
        return [known for agrees, known in found if agrees == best]


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
    """The facts that rules know beside the subject.

    Attributes:
        on: The day of the judgement.
        clusters: Clusters of the stack seen so far.
        networks: Address ranges of virtual networks seen so far, by name in small letters.
        groups: Locations of resource groups seen so far, by name in small letters.
        components: Specs of component versions seen so far, by name and version.
        images: Images of environments seen so far, by name and version.
        early: Jobs that name a cluster which had not been seen when they were judged.
    """

    on: date
    clusters: Clusters = field(default_factory=Clusters)
    networks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    groups: dict[str, str | None] = field(default_factory=dict)
    components: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    images: dict[str, Registered] = field(default_factory=dict)
    early: list[Early] = field(default_factory=list)


def clusters_of(subject: Subject, context: Context) -> list[KnownCluster]:
    """The clusters of the stack that a job may run on; empty where it is serverless or its cluster has not been seen.

    Raises:
        Undecided: What it runs on is not known yet.
    """
    if subject.on is not None:
        return [subject.on]
    compute = subject.compute
    if not compute:
        return context.clusters.at(Address(name=NO_COMPUTE))
    if isinstance(compute, Unknown):
        raise Undecided(compute)
    text = str(compute)
    if is_expression(text):
        raise Undecided(Unknown(subject.where, AT_RUN))
    place = address_of(text)
    if isinstance(compute, Gapped) and GAP in (place.name or "") and (missing := open_part(compute, subject.where)):
        raise Undecided(missing)
    return context.clusters.at(place.within(subject.place))
