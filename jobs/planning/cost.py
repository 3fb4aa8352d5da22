"""What a run may cost, part by part, before it runs. Without a price in the catalogue there is no number."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date

    from jobs.model.sweep import SweepLimits
    from jobs.planning.resolved import Plan, Resolved


@dataclass(frozen=True, slots=True)
class Cost:
    """A bound on a run's cost.

    Attributes:
        per_hour: US dollars per hour for all nodes.
        most: US dollars at most, when the job has a timeout; None without one.
        hours: Hours of that timeout; None without one.
        region: Region of the price.
        checked: When the price was looked up.
        source: Where, and of low-priority nodes whether it is their price or that of dedicated ones, a bound.
    """

    per_hour: float
    most: float | None
    hours: float | None
    region: str
    checked: date
    source: str

    def __str__(self) -> str:
        until = "" if self.most is None else f", at most {self.most:,.2f} USD in {self.hours:g} h until its timeout"
        return f"{self.per_hour:,.2f} USD per hour{until} ({self.region}, {self.checked:%Y-%m}, {self.source})"


def costs(planned: Resolved) -> dict[str, Cost]:
    """By place in a plan (``jobs.train``, ``trial``, empty for a job) what the part may cost; none without a price."""
    found: dict[str, Cost] = {}
    for place, part in planned.parts.items():
        if (price := _of_job(part)) is not None:
            limits = planned.trials(place)
            found[place] = price if limits is None else _of_trials(price, limits)
    return found


def _of_job(plan: Plan) -> Cost | None:
    """The cost of one run of a job; None when the catalogue knows no price of its size."""
    size = plan.target.facts
    price = size.price_in(plan.target.region) if size is not None else None
    if price is None:
        return None
    low = plan.target.low_priority
    per_hour = price.of(low_priority=low) * plan.nodes
    which = f", {'dedicated nodes' if price.low_priority is None else 'low priority'}" if low else ""
    seconds = plan.job.limits.timeout if plan.job.limits else None
    hours = seconds / 3600 if seconds else None
    return Cost(
        per_hour=per_hour,
        most=None if hours is None else per_hour * hours,
        hours=hours,
        region=price.region,
        checked=price.checked,
        source=f"{price.source}{which}",
    )


def _of_trials(price: Cost, limits: SweepLimits) -> Cost:
    """A bound on all trials: as many at a time as may be, until all of them or the sweep time out."""
    at_once = min(limits.max_concurrent_trials or limits.max_total_trials, limits.max_total_trials)
    bounds = []
    if limits.trial_timeout:
        bounds.append(limits.max_total_trials * limits.trial_timeout / 3600 * price.per_hour)
    if limits.timeout:
        bounds.append(at_once * limits.timeout / 3600 * price.per_hour)
    hours = limits.timeout / 3600 if limits.timeout else None
    most = min(bounds) if bounds else None
    return replace(price, per_hour=price.per_hour * at_once, most=most, hours=hours)
