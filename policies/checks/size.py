"""Rules on VM sizes: the fabric, retirement, what the catalogue knows."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding, Level, stated
from amlstack.catalog import sizes

if TYPE_CHECKING:
    from amlstack.catalog.sizes import Size

SINGLE_NODE_TAG = "amlstack:single_node_jobs"
"""Tag of a cluster resource (value ``"true"``): no job on it spans nodes. Azure ML has no property for that."""


def check_fabric(
    size: Size, *, nodes: int, on: date, single_node_jobs: bool = False, where: str = "size"
) -> Finding | None:
    """Judge one size for a number of nodes.

    Args:
        size: The size as the catalogue knows it.
        nodes: Most nodes that one job can get: a cluster's maximum, a job's instance count.
        on: The day on which the remedy must be available.
        single_node_jobs: Whether the cluster says that no job on it spans nodes. Never set for a job.
        where: Path of the size in the declaration.
    """
    if size.fabric.rdma and not size.fabric.sriov:
        return stated("sriov-fabric/check-fabric", where, size=size, remedy=_remedy(size, on))
    if size.gpus and not size.fabric.usable and nodes > 1 and not single_node_jobs:
        seen = f"{size.name} ({size.describe()}) with {nodes} nodes"
        rule = "GPU jobs across nodes need InfiniBand with SR-IOV, else they train over Ethernet"
        remedy = _remedy(size, on, "or stay on one node (a cluster may say single_node_jobs: true)")
        return Finding("sriov-fabric", where, seen=seen, rule=rule, remedy=remedy)
    return None


def check_fabric_job(nodes: int, *, cluster: str, single_node_jobs: bool, where: str = "nodes") -> Finding | None:
    """Hold a job to the promise of the cluster that it runs on.

    Args:
        nodes: The job's instance count.
        cluster: The cluster's name.
        single_node_jobs: Whether the cluster is declared for jobs of one node only.
        where: Path of the instance count in the declaration.
    """
    if not single_node_jobs or nodes < 2:
        return None
    return stated("sriov-fabric", where, nodes=nodes, cluster=cluster)


def _remedy(size: Size, on: date, otherwise: str = "") -> str:
    nearest = sizes.nearest_compliant(size, on)
    if nearest is None:
        return otherwise.removeprefix("or ").capitalize()
    return ", ".join(part for part in (f"Use {nearest.name} ({nearest.describe()})", otherwise) if part)


def check_known_size(name: str, where: str = "size") -> Finding | None:
    """Judge one name, in any letter case.

    Args:
        name: The size as it was written.
        where: Its path in the declaration.
    """
    if sizes.get(name) is not None:
        return None
    near = sizes.near(name)
    rule = "A size must be known, so that its fabric can be judged"
    remedy = f"Did you mean {_either(near)}?" if near else "`amlstack sizes` lists those that it knows"
    return Finding("size-unknown", where, seen=f"The catalogue has no size {name!r}", rule=rule, remedy=remedy)


def _either(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def check_retired_size(size: Size, *, on: date, where: str = "size") -> Finding | None:
    """Judge one size on one day.

    Args:
        size: The size as the catalogue knows it.
        on: The day of the judgement, and on which the remedy must be available.
        where: Path of the size in the declaration.
    """
    if size.retired is None or on < size.retired:
        return None
    nearest = sizes.nearest_compliant(size, on)
    seen = f"{size.name} was retired on {size.retired.isoformat()}"
    remedy = f"Use {nearest.name} ({nearest.describe()})" if nearest else ""
    return Finding("size-retired", where, seen=seen, rule="Azure gives out no nodes of a retired size", remedy=remedy)


def check_retiring_size(size: Size, *, on: date, days: int, where: str = "size") -> Finding | None:
    """Judge one size on one day.

    Args:
        size: The size as the catalogue knows it.
        on: The day of the judgement.
        days: How many days ahead to look.
        where: Path of the size in the declaration.
    """
    if size.retired is None or not on < size.retired <= on + timedelta(days=days):
        return None
    nearest = sizes.nearest_compliant(size, size.retired)
    seen = f"{size.name} will be retired on {size.retired.isoformat()}, in {(size.retired - on).days} days"
    rule = f"A size should outlive the next {days} days"
    remedy = f"Plan for {nearest.name} ({nearest.describe()})" if nearest else ""
    return Finding("size-retiring", where, seen=seen, rule=rule, remedy=remedy, level=Level.WARNING)


def check_closed_size(
    size: Size, *, on: date, subscription_created: str | None = None, where: str = "size"
) -> Finding | None:
    """Judge one size on one day.

    Args:
        size: The size as the catalogue knows it.
        on: The day of the judgement.
        subscription_created: Day on which the subscription was created, ``2026-07-01``; None where nobody says.
        where: Path of the size in the declaration.
    """
    closed = size.lifecycle.closed_since if size.lifecycle else None
    if closed is None or on < closed or size.retired_on(on):
        return None
    nearest = sizes.nearest_open(size, on)
    seen = f"{size.name} is closed to new subscriptions since {closed:%Y-%m}"
    rule, level = "Azure deploys it within quota of old subscriptions alone, and approves no more", Level.ERROR
    if subscription_created is not None:
        created = date.fromisoformat(subscription_created)
        seen += f", and the subscription was created on {created}"
        if created < closed:
            rule, level = "An older subscription deploys it within the quota that it has, and gets no more", Level.INFO
    remedy = f"Use {nearest.name} ({nearest.describe()})" if nearest else ""
    return Finding("size-closed", where, seen=seen, rule=rule, remedy=remedy, level=level)
