"""Runs as MLflow's clients see them: jobs, and those that a training makes itself (``start_run(nested=True)``).

A run that is no job is a row of the resources table that the resource manager does not know: it goes with its job.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.kinds.base import Reply
from amlstack.sandbox.runner.contract import launch
from amlstack.sandbox.store.store import folder, job_folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from amlstack.sandbox.kinds.base import KindContext
    from amlstack.sandbox.store.store import JobRow, ResourceRow, Store

TYPE = "mlflow/runs"
EXPERIMENT = "mlflow/experiments"
"""The type of the rows that keep names of experiments in which nothing ran yet."""
INPUTS = "mlflow/inputs"
"""The type of the rows that keep which datasets a run read."""
STATUSES = {"Completed": "FINISHED", "Failed": "FAILED", "Canceled": "KILLED"}
"""MLflow's words for ends; all else is RUNNING."""
REPORTED = "mlflow.status"
"""The record's property for the status that the run itself reported: ``FINISHED`` a moment before its processes end."""
PARAMETER = "mlflow.param."
"""Prefix of a job's properties that keep what was logged as a parameter."""
PARENT = "mlflow.parentRunId"
NAME = "mlflow.runName"


class MlflowRefused(Exception):  # noqa: N818 - an answer, as `Refused` is
    """MLflow's way to say no: a status, a code and a message."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.reply = Reply(status, {"error_code": code, "message": message})


@dataclass(frozen=True, slots=True)
class MlflowRun:
    """One run.

    Attributes:
        key: What its metrics are kept under.
        id: Its id for clients; a job's is its name.
        job: The job that it is, or the one that it was made in; None for a run made outside of any.
        row: Where it is kept when it is no job.
        experiment: Name of its experiment.
        name: As it is shown.
        status: In MLflow's words.
        started, ended: Seconds since the epoch.
        parameters, tags: As they were logged.
        stage: ``active`` or ``deleted``.
        artifacts: The folder for its files.
    """

    key: str
    id: str
    job: JobRow | None
    row: ResourceRow | None
    experiment: str
    name: str
    status: str
    started: float
    ended: float | None
    parameters: dict[str, str]
    tags: dict[str, str]
    stage: str
    artifacts: Path


def find(context: KindContext, workspace: str, fields: Mapping[str, Any]) -> MlflowRun:
    """The run that a call is about.

    Raises:
        MlflowRefused: There is none.
    """
    name = str(fields.get("run_id") or fields.get("run_uuid") or "")
    job = context.store.jobs.find(workspace, name)
    if job is not None:
        return of_job(context.store, job)
    for row in _made(context.store, workspace):
        if row.name == name:
            return of_row(context.store, row)
    raise MlflowRefused(404, "RESOURCE_DOES_NOT_EXIST", f"Run '{name}' not found.")


def everyone(context: KindContext, workspace: str) -> list[MlflowRun]:
    """All runs of a workspace, the oldest first."""
    runs = [of_job(context.store, job) for job in context.store.jobs.list(workspace)]
    runs += [of_row(context.store, row) for row in _made(context.store, workspace)]
    return sorted(runs, key=lambda run: run.started)


def show(context: KindContext, workspace: str, run: MlflowRun) -> Any:
    """A run as MLflow's REST interface has it."""
    last = {each.name: each for each in context.store.metrics.of(run.key)}
    info = {
        "run_id": run.id,
        "run_uuid": run.id,
        "run_name": run.name,
        "experiment_id": launch.experiment_id(workspace if run.job is None else run.job.workspace, run.experiment),
        "status": run.status,
        "start_time": int(run.started * 1000),
        "end_time": None if run.ended is None else int(run.ended * 1000),
        "lifecycle_stage": run.stage,
        # A folder of this machine, to which MLflow's client writes by itself, as it would to the run's storage.
        "artifact_uri": run.artifacts.as_uri(),
    }
    data = {
        "metrics": [metric(each) for each in last.values()],
        "params": pairs(run.parameters),
        "tags": pairs(run.tags),
    }
    kept = context.store.resources.get(inputs_key(workspace, run))
    return {"info": info, "data": data, "inputs": {} if kept is None else {"dataset_inputs": kept.body["datasets"]}}


def pairs(values: Mapping[str, str]) -> list[dict[str, str]]:
    """Names and values as MLflow lists them."""
    return [{"key": name, "value": value} for name, value in values.items()]


def metric(each: Any) -> Any:
    """One value of a metric; what is no finite number is a word."""
    value: float | str = each.value
    if not math.isfinite(each.value):
        value = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(each.value, "NaN")
    return {"key": each.name, "value": value, "step": each.step, "timestamp": int(each.at * 1000)}


def experiment_of(job: JobRow) -> str:
    """Name of a job's experiment."""
    return str(job.properties.get("experimentName") or "Default")


def of_job(store: Store, job: JobRow) -> MlflowRun:
    """A job as a run."""
    properties: Mapping[str, str] = job.properties.get("properties") or {}
    above = store.family.above(job.id)
    tags = {str(name): str(value) for name, value in (job.properties.get("tags") or {}).items()}
    if above and (parent := store.jobs.get(above[0])) is not None:
        tags[PARENT] = parent.name
    return MlflowRun(
        key=job.id,
        id=job.name,
        job=job,
        row=None,
        experiment=experiment_of(job),
        name=str(job.properties.get("displayName") or job.name),
        status=STATUSES.get(job.status, "RUNNING"),
        started=job.started or job.created,
        ended=job.ended,
        parameters={
            name.removeprefix(PARAMETER): value for name, value in properties.items() if name.startswith(PARAMETER)
        },
        tags=tags,
        stage="deleted" if job.properties.get("isArchived") else "active",
        artifacts=job_folder(store.home, job.id) / "artifacts",
    )


def of_row(store: Store, row: ResourceRow) -> MlflowRun:
    """A run that is no job, from its row."""
    body = row.body
    job = None if body["job"] is None else store.jobs.get(body["job"])
    root = folder(store.home) if job is None else job_folder(store.home, job.id)
    status, ended = body.get("status", "RUNNING"), body.get("ended")
    made = MlflowRun(
        key=row.key,
        id=row.name,
        job=job,
        row=row,
        experiment=body["experiment"],
        name=body["name"],
        status=status,
        started=body["started"],
        ended=ended,
        parameters=body.get("parameters", {}),
        tags={**body["tags"], NAME: body["name"]},
        stage=body.get("stage", "active"),
        artifacts=root / "runs" / row.name / "artifacts",
    )
    if job is not None and not job.active and status not in STATUSES.values():
        # No process is left that could end it.
        return replace(made, status=STATUSES[job.status], ended=job.ended)
    return made


def _made(store: Store, workspace: str) -> list[ResourceRow]:
    return [row for row in store.resources.of_type(TYPE) if row.body["workspace"] == workspace.lower()]


def experiments(context: KindContext, workspace: str) -> list[str]:
    """Names of the experiments that runs of a workspace have."""
    return sorted({run.experiment for run in everyone(context, workspace)})


def inputs_key(workspace: str, run: MlflowRun) -> str:
    """Key of the row that keeps which datasets a run read."""
    return f"{workspace if run.job is None else run.job.arm_id}/runinputs/{run.id}"
