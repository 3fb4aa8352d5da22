"""A rule bound to what it judges, and how bindings read a subject."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.base import durations
from amlstack.base.findings import Finding
from amlstack.catalog import sizes
from policies.evaluation.facts import Undecided, Unknown, is_expression, last_part

if TYPE_CHECKING:
    from amlstack.catalog.sizes import Size
    from policies.checks import Rule
    from policies.evaluation.context import Context, KnownCluster
    from policies.evaluation.subject import Subject

NO_COMPUTE = ""
"""Name under which a gate may know the size for jobs that name neither a compute nor a size."""

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
    compute = subject.compute
    return context.clusters.get(last_part(compute, subject.where).lower() if compute else NO_COMPUTE)


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
        found = durations.seconds(value.strip().upper())
        return None if found is None else int(found)
    return int(value) if isinstance(value, int | float) else None
