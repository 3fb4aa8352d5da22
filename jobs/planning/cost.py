"""What a run may cost, said before it runs; never invented."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import date

    from jobs.planning.command import Plan


@dataclass(frozen=True, slots=True)
class Cost:
    """A bound on a run's cost.

    Attributes:
        per_hour: US dollars per hour for all nodes.
        most: US dollars at most, when the job has a timeout; None without one.
        hours: Hours of that timeout; None without one.
        region: Region of the price.
        checked: When the price was looked up.
        source: Where.
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


def cost(plan: Plan) -> Cost | None:
    """The cost of a planned job; None when the catalogue knows no price of its size."""
    size = plan.target.facts
    if size is None or size.price_per_hour is None:
        return None
    price = size.price_per_hour
    per_hour = price.usd * plan.nodes
    seconds = plan.job.limits.timeout if plan.job.limits else None
    hours = seconds / 3600 if seconds else None
    return Cost(
        per_hour=per_hour,
        most=None if hours is None else per_hour * hours,
        hours=hours,
        region=price.region,
        checked=price.checked,
        source=price.source,
    )
