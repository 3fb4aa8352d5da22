"""Rules on what a team governs: budgets and cost, regions, tags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from amlstack.base.findings import Finding, Level, stated
from amlstack.base.pulumi_wire import UNKNOWN

if TYPE_CHECKING:
    from amlstack.catalog.sizes import Size


def check_cluster_budget(
    size: Size, *, nodes: int, gpus: int | None = None, vcpus: int | None = None, where: str = "nodes.max"
) -> Finding | None:
    """Judge what a cluster may grow to.

    Args:
        size: Its size as the catalogue knows it.
        nodes: Its maximum number of nodes.
        gpus: Most GPUs; None for no bound.
        vcpus: Most vCPUs; None for no bound. A size whose vCPUs are unknown is not judged by them.
        where: Path of the maximum in the declaration.
    """
    for name, each, most in (("GPUs", size.gpus, gpus), ("vCPUs", size.vcpus or 0, vcpus)):
        if most is not None and nodes * each > most:
            seen = f"{nodes} nodes of {size.name} have {nodes * each} {name}"
            rule = f"One cluster may have {most} {name}"
            remedy = f"Write {most // each} nodes or less, or ask for an exception"
            return Finding("cluster-budget", where, seen=seen, rule=rule, remedy=remedy)
    return None


class GrowsTo(NamedTuple):
    """The nodes of a cluster or serverless job at their maximum, the region where it is known, the priority."""

    size: Size
    nodes: int
    region: str | None = None
    low_priority: bool = False


def check_stack_budget(
    asked: Sequence[GrowsTo],
    *,
    nodes: int | None = None,
    gpus: int | None = None,
    vcpus: int | None = None,
    usd_per_hour: float | None = None,
    where: str = "",
) -> tuple[Finding, ...]:
    """Judge what a stack may grow to.

    Args:
        asked: What each cluster and serverless job may grow to.
        nodes: Most nodes; None for no bound, as for the others.
        gpus: Most GPUs.
        vcpus: Most vCPUs.
        usd_per_hour: Most US dollars per hour.
        where: What the findings are about.
    """
    return tuple(_over(asked, {"nodes": nodes, "GPUs": gpus, "vCPUs": vcpus, "USD per hour": usd_per_hour}, where))


def _over(asked: Sequence[GrowsTo], budget: dict[str, float | None], where: str) -> Iterator[Finding]:
    prices = [one.size.node_price(one.region, low_priority=one.low_priority) for one in asked]
    unpriced = sorted({one.size.name for one, price in zip(asked, prices, strict=True) if price is None})
    totals: dict[str, float] = {
        "nodes": sum(one.nodes for one in asked),
        "GPUs": sum(one.size.gpus * one.nodes for one in asked),
        "vCPUs": sum((one.size.vcpus or 0) * one.nodes for one in asked),
        "USD per hour": sum(price.usd * one.nodes for one, price in zip(asked, prices, strict=True) if price),
    }
    for name, most in budget.items():
        if most is not None and totals[name] > most:
            yield stated("stack-budget/over", where, totals=totals[name], name=name, most=most)
    if budget["USD per hour"] is not None and unpriced:
        yield stated("stack-budget", where, Level.INFO, unpriced=", ".join(unpriced))


def check_hourly_cost(
    size: Size,
    *,
    nodes: int,
    usd: float | None,
    region: str | None = None,
    low_priority: bool = False,
    where: str = "nodes.max",
) -> Finding | None:
    """Judge what a cluster costs per hour.

    Args:
        size: Its size as the catalogue knows it.
        nodes: Its maximum number of nodes.
        usd: Most US dollars per hour; None for no bound.
        region: Region of its nodes; None where it is not known.
        low_priority: Whether they are of low priority.
        where: Path of the maximum in the declaration.
    """
    if usd is None:
        return None
    price = size.node_price(region, low_priority=low_priority)
    if price is None:
        return unpriced("cost-per-hour", size, where)
    if nodes * price.usd <= usd:
        return None
    seen = f"{nodes} nodes of {size.name} cost {nodes * price.usd:,.2f} USD per hour ({price.basis})"
    rule = f"At most {usd:,.2f} USD per hour are allowed"
    remedy = f"Write {int(usd // price.usd)} nodes or less, or ask for an exception"
    return Finding("cost-per-hour", where, seen=seen, rule=rule, remedy=remedy)


def unpriced(code: str, size: Size, where: str) -> Finding:
    """A note that a budget could not be judged."""
    rule = "A budget in dollars is judged only where the price is known"
    return Finding(code, where, seen=f"The catalogue has no price of {size.name}", rule=rule, level=Level.INFO)


def check_job_cost(
    size: Size,
    *,
    nodes: int,
    timeout: int | None,
    usd: float | None,
    region: str | None = None,
    low_priority: bool = False,
    where: str = "limits.timeout",
) -> Finding | None:
    """Judge what a run can cost.

    Args:
        size: The size of its nodes as the catalogue knows it.
        nodes: Its number of nodes.
        timeout: Seconds after which it is ended; None for never.
        usd: Most US dollars; None for no bound.
        region: Region of its nodes; None where it is not known.
        low_priority: Whether they are of low priority.
        where: Path of the timeout in the declaration.
    """
    if usd is None:
        return None
    price = size.node_price(region, low_priority=low_priority)
    if price is None:
        return unpriced("cost-per-job", size, where)
    per_hour = nodes * price.usd
    hours = usd / per_hour if per_hour else 0
    remedy = f"Write a timeout of {int(hours * 60)} minutes or less, or ask for an exception"
    if timeout is None:
        seen = (
            f"{nodes} nodes of {size.name} cost {per_hour:,.2f} USD per hour ({price.basis}), and nothing ends the job"
        )
    elif per_hour * timeout / 3600 > usd:
        seen = (
            f"{nodes} nodes of {size.name} cost {per_hour * timeout / 3600:,.2f} USD until the timeout ({price.basis})"
        )
    else:
        return None
    return Finding("cost-per-job", where, seen=seen, rule=f"One run may cost {usd:,.2f} USD", remedy=remedy)


def check_region(location: str, *, regions: Sequence[str] | None, where: str = "location") -> Finding | None:
    """Judge where a resource lies.

    Args:
        location: Its region, as a name or a code; `global` is none.
        regions: Approved regions; None or none at all for no bound.
        where: Path of the location in the declaration.
    """
    if not regions or _code(location) in {"global", *map(_code, regions)}:
        return None
    return stated("region-approved", where, location=location, regions=", ".join(regions))


def _code(region: str) -> str:
    return "".join(region.lower().split())


def written_tags(tags: Mapping[str, object]) -> set[str]:
    """The tags that have a value, in lower case; one that is known only once something else exists has one."""
    return {name.lower() for name, value in tags.items() if value is UNKNOWN or str(value or "").strip()}


def check_required_tags(
    tags: Mapping[str, object],
    *,
    required: Sequence[str] | None,
    values: Mapping[str, str] | None = None,
    where: str = "tags",
) -> Finding | None:
    """Judge the tags of a resource; Azure takes their names in any letter case.

    Args:
        tags: Its tags.
        required: Names that must be there with a value; None or none at all for no bound.
        values: What the team writes where one is missing, for the remedy.
        where: Path of the tags in the declaration.
    """
    there = written_tags(tags)
    wanted = tuple(required or ())
    missing = [name for name in wanted if name.lower() not in there]
    if not missing:
        return None
    known = [f"{name}: {values[name]}" for name in missing if values and name in values]
    seen = f"Missing: {', '.join(missing)}"
    remedy = f"Write {', '.join(known)}" if known else "Write them, with a value"
    return Finding("tags-required", where, seen=seen, rule=f"Resources carry {', '.join(wanted)}", remedy=remedy)
