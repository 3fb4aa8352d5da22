"""Advances a sweep: trials up to its limits, the hopeless ended early, the best one named."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.parents import best_trial, sweep_body
from amlstack.sandbox.store.store import JobError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from amlstack.sandbox.parents.parent import Parent
    from amlstack.sandbox.parents.sweep_body import SweepSpec
    from amlstack.sandbox.store.store import JobRow, Store

HOPE = 3
"""Failed trials after which, at the earliest, a sweep of which none completed is given up."""


def drafts(store: Store, name: str, properties: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The body of the first trial, to be checked before the sweep is taken.

    Raises:
        Refused: The sweep cannot be run by the sandbox.
    """
    del store
    sweep = sweep_body.read(name, properties)
    values = sweep.sampling.values(sweep.space, 0)
    yield "properties.trial", sweep_body.body(properties, name, 0, values or {})


def advance(parent: Parent) -> None:
    """Ends hopeless trials, starts new ones, ends the sweep when none is left."""
    job = parent.job
    sweep = sweep_body.read(job.name, job.properties)
    if sweep.sampling.kind == "bayesian" and not parent.children:
        parent.note("bayesian sampling runs as random sampling: no trial learns from another")
    _end_early(parent, sweep)
    _name_best(parent, sweep)
    while (
        len(parent.active) < sweep.concurrent and len(parent.children) < sweep.total and not _is_broken(parent, sweep)
    ):
        number = len(parent.children)
        values = sweep.sampling.values(sweep.space, number)
        if values is None:  # a grid has no more
            break
        parent.make(str(number), f"{job.name}_{number}", sweep_body.body(job.properties, job.name, number, values))
        parent.note(f"trial {number}: {shown(values)}")
    if not parent.active:
        _end(parent, sweep)


def shown(values: Mapping[str, Any]) -> str:
    """Hyperparameters in a line."""
    return ", ".join(f"{name} = {sweep_body.text(value)}" for name, value in values.items())


def _end_early(parent: Parent, sweep: SweepSpec) -> None:
    if sweep.policy is None:
        return
    curves = {place: parent.store.metrics.values(row.id, sweep.metric) for place, row in parent.children.items()}
    open_ones = {place for place, row in parent.active.items() if not row.cancel_requested and not _is_through(row)}
    for place in sweep.policy.doomed(sweep.goal, {key: values for key, values in curves.items() if values}, open_ones):
        parent.cancel(place)
        parent.note(f"trial {place}: ended early by {sweep.policy.kind} at interval {len(curves[place])}")


def _is_broken(parent: Parent, sweep: SweepSpec) -> bool:
    """As many trials as run at once have failed, and none has done better: the next ones would fail as well."""
    ends = [row.status for row in parent.children.values() if not row.active]
    return "Completed" not in ends and ends.count("Failed") >= max(sweep.concurrent, HOPE)


def _is_through(trial: JobRow) -> bool:
    """It reason to MLflow that it has finished: there is nothing left to spare."""
    return (trial.properties.get("properties") or {}).get("mlflow.status") == "FINISHED"


def _name_best(parent: Parent, sweep: SweepSpec) -> None:
    """The best trial so far goes into the sweep's record, under the service's names."""
    top = best_trial.trial(parent.store, parent.job)
    config = {"primary_metric_config": json.dumps({"name": sweep.metric, "goal": sweep.goal})}
    if top is None:
        parent.label(**config)
        return
    score = best_trial.scores(parent.store, parent.job)[top.id]
    parent.label(**config, best_child_run_id=top.name, score=str(score), best_metric_status="Succeeded")


def _end(parent: Parent, sweep: SweepSpec) -> None:
    completed = [row for row in parent.children.values() if row.status == "Completed"]
    failed = {place: row for place, row in parent.children.items() if row.status == "Failed"}
    if failed and not completed:
        place, row = next(iter(failed.items()))
        reason = row.error.message if row.error is not None else "no reason was recorded"
        message = f"None of {len(parent.children)} trial(s) completed. Trial {place} (job {row.name}) failed: {reason}"
        parent.note(f"no trial completed; trial {place} failed")
        parent.end("Failed", JobError("UserError", message))
        return
    if failed:
        parent.note(f"trial(s) {', '.join(failed)} failed")
    top = best_trial.trial(parent.store, parent.job)
    if top is None:
        parent.note(
            f"no trial logged the primary metric '{sweep.metric}', so that none is the best; "
            "log it with mlflow.log_metric"
        )
    else:
        score = best_trial.scores(parent.store, parent.job)[top.id]
        parent.note(f"best trial: {top.name} with {sweep.metric} = {score:g}")
    parent.end("Completed")
