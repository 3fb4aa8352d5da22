"""The best trial of a sweep: the one with the best value of the primary metric."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from amlstack.sandbox.store.store import JobRow, Store


def better(goal: str) -> Callable[[Iterable[float]], float]:
    """``min`` or ``max``, after the sweep's goal (any letter case)."""
    return max if goal.lower() == "maximize" else min


def scores(store: Store, sweep: JobRow) -> dict[str, float]:
    """The best value that each trial logged, by the trial's table key; trials that logged none are not there."""
    objective = sweep.properties.get("objective") or {}
    pick = better(str(objective.get("goal") or ""))
    found = {
        key: store.metrics.values(key, str(objective.get("primaryMetric")))
        for key in store.family.children(sweep.id).values()
    }
    return {key: pick(values) for key, values in found.items() if values}


def trial(store: Store, sweep: JobRow) -> JobRow | None:
    """The best trial: of those that completed if any did; None when none logged the primary metric.

    Of equal ones the first.
    """
    best = scores(store, sweep)
    rows = [row for key in best if (row := store.jobs.get(key)) is not None]
    completed = [row for row in rows if row.status == "Completed"]
    pick = better(str((sweep.properties.get("objective") or {}).get("goal") or ""))
    candidates = completed or rows
    if not candidates:
        return None
    top = pick(best[row.id] for row in candidates)
    return next(row for row in candidates if best[row.id] == top)
