"""The cost of whatever was planned, part by part; never invented."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from jobs.planning.command import Plan
from jobs.planning.cost import Cost, cost
from jobs.resolve import parts

if TYPE_CHECKING:
    from jobs.composites import CompositePlan, Planned
    from jobs.model.sweep import SweepLimits


def costs(planned: Planned) -> dict[str, Cost]:
    """By place in the plan (``jobs.train``, ``trial``, empty for a job) what it may cost; none without a price."""
    if isinstance(planned, Plan):
        price = cost(planned)
        return {} if price is None else {"": price}
    return _of_composite(planned)


def _of_composite(planned: CompositePlan) -> dict[str, Cost]:
    from jobs.planning.schedule import SchedulePlan  # noqa: PLC0415 - most files are single jobs

    if isinstance(planned, SchedulePlan):
        return {} if planned.started is None else costs(planned.started)
    found: dict[str, Cost] = {}
    for place, part in parts(planned).items():
        price = cost(part)
        if price is None:
            continue
        limits = _trials(planned, place)
        found[place] = price if limits is None else _of_trials(price, limits)
    return found


def _trials(planned: CompositePlan, place: str) -> SweepLimits | None:
    from jobs.model.pipeline import Pipeline, SweepStep  # noqa: PLC0415
    from jobs.model.sweep import Sweep  # noqa: PLC0415

    if isinstance(planned.job, Sweep):
        return planned.job.limits
    if isinstance(planned.job, Pipeline):
        step = planned.job.jobs[place.removeprefix("jobs.")]
        return step.limits if isinstance(step, SweepStep) else None
    return None


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
