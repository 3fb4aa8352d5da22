"""Quota demand of a stack's clusters, and the room that the subscription has for it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.findings import Finding, Level, stated
from amlstack.catalog import sizes

if TYPE_CHECKING:
    from infra.settings import Settings


@dataclass(frozen=True, slots=True)
class Demand:
    """The nodes and vCPUs that one cluster may use.

    Attributes:
        index: Of the cluster in the settings.
        name: Of the cluster.
        location: Region of its nodes.
        size: Name of the size.
        low_priority: Whether its nodes are.
        least: Nodes that are asked for at once.
        most: Nodes at most.
    """

    index: int
    name: str
    location: str
    size: str
    low_priority: bool
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Existing:
    """The clusters that the workspace has, by name in lower case.

    Attributes:
        clusters: As ``amlstack:capacity:ofWorkspace`` answers them.
    """

    clusters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> Existing:
        """From the answer."""
        return cls({str(row["name"]).lower(): row for row in rows})

    def has(self, demand: Demand) -> bool:
        """True where a cluster is there already, with this size in this region."""
        row = self.clusters.get(demand.name.lower(), {})
        same = str(row.get("size", "")).lower() == demand.size.lower() and row.get("location") == demand.location
        return same and (row.get("priority") == "LowPriority") == demand.low_priority

    def most(self, demand: Demand) -> int:
        """The nodes that such a cluster may have now."""
        return int(self.clusters[demand.name.lower()]["max"]) if self.has(demand) else 0


def demands(settings: Settings) -> tuple[Demand, ...]:
    """The demands of a stack's clusters."""
    return tuple(
        Demand(
            index,
            cluster.name,
            cluster.location or settings.location,
            cluster.size,
            cluster.priority == "low_priority",
            cluster.nodes.min,
            cluster.nodes.max,
        )
        for index, cluster in enumerate(settings.clusters)
    )


def regions(wanted: Iterable[Demand]) -> dict[str, set[str]]:
    """The regions to ask, and the sizes that are declared there."""
    found: dict[str, set[str]] = defaultdict(set)
    for demand in wanted:
        found[demand.location].add(demand.size)
    return dict(found)


OF_REGION: Final = "Total Cluster Dedicated Regional vCPUs"
_LOW_PRIORITY: Final = "TotalLowPriorityCores"
_PORTAL: Final = "in the Azure portal under Quotas, Machine learning"


@dataclass(frozen=True, slots=True)
class Shortage:
    """A finding, and the cluster whose setting it is about.

    Attributes:
        index: Of the cluster.
        path: Of the setting in it.
        finding: Without a place.
    """

    index: int
    path: tuple[str, ...]
    finding: Finding


@dataclass(frozen=True, slots=True)
class _Use:
    """The use of one pool of vCPUs (a family, low priority, or all dedicated nodes of a region) by a stack's clusters.

    Attributes:
        region: Where it is.
        pool: Azure's name.
        members: The clusters, each with the vCPUs of a node.
        had: The clusters that the workspace has already.
    """

    region: str
    pool: str
    members: list[tuple[Demand, int]]
    had: Existing

    @property
    def requested(self) -> int:
        """The vCPUs of all nodes at most."""
        return sum(demand.most * vcpus for demand, vcpus in self.members)

    @property
    def own(self) -> int:
        """Those of the nodes that the clusters may have now."""
        return sum(self.had.most(demand) * vcpus for demand, vcpus in self.members)

    def shortage(self, seen: str, rule: str, remedy: str, level: Level = Level.ERROR) -> Shortage:
        """A finding at the largest cluster; it ends with the parts of all."""
        largest = max(self.members, key=lambda member: member[0].most * member[1])[0]
        parts = ", ".join(f"`{demand.name}` {demand.most} × {vcpus}" for demand, vcpus in self.members)
        seen = f"{seen}, and `nodes.max` asks for {self.requested}: {parts}"
        remedy = f"{remedy}, or lower `nodes.max`; `amlstack:quota: warn` shows this and refuses nothing"
        return Shortage(largest.index, ("nodes", "max"), Finding("quota-exceeded", "", seen, rule, remedy, level))


def unchecked(answers: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """One warning for each region that could not be asked."""
    for region, answer in answers.items():
        if answer["problem"]:
            yield stated("quota-unchecked", "", Level.WARNING, region=region, answer=answer["problem"])
        elif answer.get("grantedProblem"):
            yield stated("quota-unchecked/unchecked", "", Level.WARNING, region=region, answer=answer["grantedProblem"])


_IN_USE: Final = frozenset({"Registered", "Registering"})
"""States of a resource provider in which its resources can be made."""


def unregistered(states: Mapping[str, str], subscription: str, level: Level) -> Iterator[Finding]:
    """One finding for each resource provider that is not registered."""
    for name, state in states.items():
        if state not in _IN_USE:
            yield stated(
                "provider-not-registered", "", level, name=name, state=state or "unknown", subscription=subscription
            )


def not_asked(problem: str) -> Iterator[Finding]:
    """A warning where the states of resource providers could not be read."""
    if problem:
        yield stated("providers-unchecked", "", Level.WARNING, problem=problem)


def shortages(
    wanted: Iterable[Demand],
    answers: Mapping[str, Mapping[str, Any]],
    subscription: str,
    existing: Existing | None = None,
) -> tuple[Shortage, ...]:
    """The demands that a subscription has no room for, or does not offer.

    Args:
        wanted: What the clusters may use.
        answers: Of each region, as ``amlstack:capacity:ofRegions`` answers.
        subscription: Its id, for the commands.
        existing: What the workspace has already; what does not grow beyond that is no finding. None while unknown.
    """
    found: list[Shortage] = []
    had = existing or Existing()
    pools: dict[tuple[str, str], list[tuple[Demand, int]]] = defaultdict(list)
    for demand in wanted:
        answer = answers.get(demand.location)
        if answer is None or answer["problem"]:
            continue
        if (unoffered := _unoffered(demand, answer)) is not None:
            found += [] if had.has(demand) else [unoffered]
            continue
        offered = answer["sizes"].get(demand.size) or {}
        size = sizes.get(demand.size)
        vcpus = int(offered.get("vcpus") or (size.vcpus if size else 0) or 0)
        family = str(offered.get("family") or (size.family if size else "") or "")
        for pool in (_LOW_PRIORITY,) if demand.low_priority else (family, OF_REGION):
            if pool and vcpus:
                pools[demand.location, pool].append((demand, vcpus))
    for (region, pool), members in pools.items():
        use = _Use(region, pool, members, had)
        usage = usage_of(pool, answers[region]["usages"])
        if usage is not None and (short := _beyond_quota(use, usage, subscription)) is not None:
            found.append(short)
        granted = usage_of(pool, answers[region].get("granted") or ())
        # Azure names a part for every workspace and family, which is all of the family until somebody gives less.
        if granted is None or (usage is not None and int(granted["limit"]) == int(usage["limit"])):
            continue
        if short := _beyond_part(use, int(granted["limit"])):
            found.append(short)
    return tuple(found)


def _beyond_part(use: _Use, limit: int) -> Shortage | None:
    """The excess over a workspace's part of a family's quota; the use by others there is not known."""
    if limit < 0 or use.requested <= max(limit, use.own):
        return None
    return use.shortage(
        f"The workspace's own part of `{use.pool}` in `{use.region}` is {limit} vCPUs",
        "A workspace uses no more of the subscription's quota than it was given: nodes beyond that never come, and "
        "their jobs wait in the queue",
        f"Give the workspace {use.requested} {_PORTAL}, which lists workspaces under each family",
    )


def _unoffered(demand: Demand, answer: Mapping[str, Any]) -> Shortage | None:
    offered = answer["sizes"].get(demand.size)
    if offered is None and answer["listed"]:
        finding = stated("size-not-offered", "", demand=demand, answer=int(answer["listed"]))
        return Shortage(demand.index, ("size",), finding)
    if offered and demand.low_priority and not offered["lowPriority"]:
        finding = stated("size-not-low-priority", "", demand=demand)
        return Shortage(demand.index, ("priority",), finding)
    return None


def _beyond_quota(use: _Use, usage: Mapping[str, Any], subscription: str) -> Shortage | None:
    limit = int(usage["limit"])
    if limit < 0 or use.requested <= use.own:
        return None  # without a limit of its own, or asking for no more than there is
    others = max(0, int(usage["current"]) - use.own)
    at_once = sum(demand.least * vcpus for demand, vcpus in use.members)
    if use.requested <= limit - others:
        return None
    words = {OF_REGION: OF_REGION, _LOW_PRIORITY: "Low priority, all families together,"}.get(use.pool, f"`{use.pool}`")
    free = f"{limit}" if not others else f"{limit}, of which others use {others},"
    wanted, by_command = use.requested + others, ""
    if use.pool != OF_REGION:  # the names in `az quota` are documented for families and for low priority
        kind = "lowPriority" if use.pool == _LOW_PRIORITY else "dedicated"
        scope = f"/subscriptions/{subscription}/providers/Microsoft.MachineLearningServices/locations/{use.region}"
        by_command = (
            f", or with `az quota create --resource-name '{use.pool}' --resource-type {kind} "
            f"--scope {scope} --limit-object value={wanted}`"
        )
    return use.shortage(
        f"{words} in `{use.region}` has a quota of {free} vCPUs",
        "Nodes beyond the quota never come: their jobs wait in the queue",
        f"Request {wanted} {_PORTAL}{by_command}",
        Level.ERROR if use.requested > limit or at_once > limit - others else Level.WARNING,
    )


def usage_of(pool: str, usages: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The row of a pool; Azure's rows bear the family's id or its name in words."""
    for row in usages:
        for text in (row["name"], row["label"]):
            if _is(pool, str(text)):
                return row
    return None


def _is(pool: str, text: str) -> bool:
    seen, wanted = _plain(text), _plain(pool)
    if pool == _LOW_PRIORITY:
        return seen.startswith("total") and "lowpriority" in seen
    return seen == wanted or seen in {f"{wanted}clusterdedicatedvcpus", f"{wanted}dedicatedvcpus", f"{wanted}vcpus"}


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.casefold())
