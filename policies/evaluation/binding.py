"""A rule bound to what it judges, and how bindings read a subject."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.base import text
from amlstack.base.findings import Finding
from amlstack.catalog import regions, sizes
from policies.evaluation.facts import Undecided, Unknown, is_expression
from policies.evaluation.subjects import clusters_of

if TYPE_CHECKING:
    from amlstack.catalog.sizes import Size
    from policies.checks import Rule
    from policies.evaluation.subjects import Context, KnownCluster, Subject

Found = Iterable[Finding | None]
Judge = Callable[["Subject", Mapping[str, Any], "Context"], Found]


@dataclass(frozen=True, slots=True)
class Binding:
    """A rule bound to what it judges.

    Attributes:
        rule: The rule.
        kinds: The kinds of subject that it judges.
        judge: How; raises `Undecided` where a value is missing.
        silent_without: Settings of which a team has to give one, else the rule is not asked; empty for none.
    """

    rule: Rule
    kinds: frozenset[str]
    judge: Judge
    silent_without: tuple[str, ...] = ()


def size_of(subject: Subject, context: Context) -> Size | None:
    """The catalogue's row: of the subject's own size, or of the cluster that a job names."""
    if isinstance(subject.size, Unknown):
        raise Undecided(subject.size)
    name = subject.size
    if name is None:
        cluster = cluster_of(subject, context)
        name = cluster.size if cluster else None
    return sizes.get(name) if name else None


def cluster_of(subject: Subject, context: Context) -> KnownCluster | None:
    """The cluster of the stack that a job runs on; None where it is serverless or its cluster has not been seen.

    Raises:
        Undecided: What it runs on is not known yet.
    """
    return next(iter(clusters_of(subject, context)), None)


def region_of(subject: Subject) -> str | None:
    """The region of a cluster's nodes or a serverless job's, as programs write it; None where it is not known."""
    facts = subject.facts
    try:
        given = facts.text("region") or facts.value("locations")
    except Undecided:
        return None
    first = next(iter(given), None) if isinstance(given, list) else given
    return regions.code(first) if isinstance(first, str) else None


def preemptible(subject: Subject, cluster: KnownCluster | None = None) -> bool:
    """True where nodes may be taken away: of a cluster, of a serverless job, of a job on the cluster.

    Raises:
        Undecided: Its priority or tier is not known yet.
    """
    if cluster is not None and cluster.low_priority:
        return True
    priority = subject.facts.text("priority") or subject.facts.text("tier") or ""
    return priority.lower() in {"lowpriority", "spot"}


def paid_as(subject: Subject, cluster: KnownCluster | None = None) -> tuple[str | None, bool]:
    """Region and low priority, by which nodes are paid; what is not known counts as no region, and as dedicated."""
    region = region_of(subject) if cluster is None else cluster.region
    try:
        return region, preemptible(subject, cluster)
    except Undecided:
        return region, False


def nodes_of(subject: Subject) -> int:
    """Its number of nodes; Undecided while that is not known."""
    if isinstance(subject.nodes, Unknown):
        raise Undecided(subject.nodes)
    return subject.nodes


def where_nodes(subject: Subject) -> str:
    """Path of its number of nodes."""
    return subject.facts.at("most" if subject.kind == "cluster" else "nodes")


def timeout_of(subject: Subject) -> int | None:
    """Seconds; a step of a pipeline writes them as a number, the wire as an ISO duration."""
    return seconds_of(subject.facts.value("timeout"), subject.facts.at("timeout"))


def seconds_of(value: Any, where: str) -> int | None:
    """Seconds of an ISO duration or a number; Undecided for an expression."""
    if isinstance(value, str) and is_expression(value):
        raise Undecided(Unknown(where, "is an expression that Azure resolves later"))
    if isinstance(value, str):
        found = text.seconds(value.strip().upper())
        return None if found is None else int(found)
    return int(value) if isinstance(value, int | float) else None
