"""Subjects of the rules: what a resource asks for, where it lies, and what is remembered of the stack."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import unquote

from policies.evaluation.facts import AT_RUN, GAP, Gapped, Undecided, Unknown, is_expression, open_part

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping
    from datetime import date

    from amlstack.catalog.images import Registered
    from policies.evaluation.facts import Facts

_BEFORE = re.compile(r"\s*azureml:(?:/*(?=/subscriptions|subscriptions))?", re.IGNORECASE)
_UNWRITTEN = "-"
"""Stands for a name that a declaration does not know yet."""


@lru_cache(maxsize=4096)
def segments(text: str) -> tuple[str, ...]:
    """The parts of an id or a path between its slashes, decoded, in small letters.

    Args:
        text: The id, in any spelling that a server takes for it.
    """
    for _ in range(3):  # a server decodes once
        text = unquote(text) if "%" in text else text
    found: list[str] = []
    for part in re.split(r"[?#]", text, maxsplit=1)[0].replace("\\", "/").split("/"):
        one = part.strip().lower()
        if one == "..":
            del found[-1:]
        elif one and one != ".":
            found.append(one)
    return tuple(found)


def resource_type(parts: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    """Type and names of what an id's parts name, such as ``microsoft.x/outer/inner`` and both names.

    Args:
        parts: Of the whole id, or from its provider on. A name at the end may be missing.
    """
    inner = list(parts)
    while "providers" in inner:
        del inner[: inner.index("providers") + 1]
    return "/".join(inner[:1] + inner[1::2]), tuple(inner[2::2])


class Address(NamedTuple):
    """The place of something in a workspace; a part that is not known is None.

    Attributes:
        subscription: Its subscription.
        group: Its resource group.
        workspace: Its workspace.
        name: Its own name.
        unknown: Why its own name is not known.
    """

    subscription: str | None = None
    group: str | None = None
    workspace: str | None = None
    name: str | None = None
    unknown: Unknown | None = None

    def may_be(self, other: Address) -> bool:
        """True where both may be one resource as far as their places are known; names are compared by the caller."""
        for one, two in zip(self._around, other._around, strict=True):
            if one is not None and two is not None and one != two:
                return False
        return True

    def agrees(self, other: Address) -> int:
        """In how many parts of their places both are known to be equal."""
        return sum(one is not None and one == two for one, two in zip(self._around, other._around, strict=True))

    def within(self, around: Address | None) -> Address:
        """The same; what it does not say of itself is that of what names it."""
        if around is None or self.workspace is not None:
            return self
        return Address(around.subscription, around.group, around.workspace, self.name, self.unknown)

    @property
    def _around(self) -> tuple[str | None, str | None, str | None]:
        return self.subscription, self.group, self.workspace


@lru_cache(maxsize=4096)
def address_of(reference: str) -> Address:
    """The address that a reference names: an id of any length, a name, or a child's full name.

    Args:
        reference: As it was written; parts may be gaps.
    """
    parts = segments(_BEFORE.sub("", reference, count=1))
    name = parts[-1] if parts else ""
    if "computes" in parts[:-1]:
        name = parts[parts.index("computes") + 1]
    workspace = _after(parts, "workspaces")
    if workspace is None and len(parts) == 2:
        workspace = _known(parts[0])
    return Address(_after(parts, "subscriptions"), _after(parts, "resourcegroups"), workspace, name)


def name_of(reference: str) -> str:
    """The name at the end of a reference, in small letters."""
    return address_of(reference).name or ""


def _after(parts: tuple[str, ...], word: str) -> str | None:
    return _known(parts[parts.index(word) + 1]) if word in parts[:-1] else None


def _known(part: str) -> str | None:
    return None if GAP in part or part == _UNWRITTEN else part


Kind = Literal["cluster", "job", "environment", "resource", "text", "network", "group", "machine"]


class KnownCluster(NamedTuple):
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


class Subject(NamedTuple):
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
        same = self.named(place.name or "")
        if len(same) == 1:  # as almost always
            ((one, known),) = same.values()
            if one.may_be(place):
                return [known]
        found = [(one.agrees(place), known) for one, known in same.values() if one.may_be(place)]
        if not found:
            for one, known in self._nameless.values() if place.name else ():
                if one.unknown is not None and one.may_be(place) and known.single_node_jobs is not False:
                    raise Undecided(one.unknown)
        best = max((agrees for agrees, _ in found), default=0)
        return [known for agrees, known in found if agrees == best]


class Early(NamedTuple):
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
