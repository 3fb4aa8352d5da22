"""MLflow's tracking service, as far as a training run asks for it: its own run, its metrics, parameters and tags.

Its address is in every job's ``MLFLOW_TRACKING_URI``. Runs are jobs: they are made by submitting one, never here.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.kinds.base import Context, Reply
from amlstack.sandbox.refusals import near
from amlstack.sandbox.runner import contract
from amlstack.sandbox.store import job_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from amlstack.sandbox.store import JobRow

ROUTE = re.compile(
    r"/mlflow/v\d\.0(?P<workspace>/subscriptions/.+?/workspaces/[^/]+)/api/2\.0/(preview/)?mlflow/(?P<call>.+?)/?"
)
STATUSES = {"Completed": "FINISHED", "Failed": "FAILED", "Canceled": "KILLED"}
"""MLflow's words for ends; all else is RUNNING."""
SAID = "mlflow.status"
"""The record's property that keeps what the run said of itself: ``FINISHED`` a moment before its processes end."""
PARAMETER = "mlflow.param."
"""Prefix of the record's properties that keep what was logged as a parameter."""


class MlflowRefused(Exception):  # noqa: N818 - an answer, as `Refused` is
    """MLflow's way to say no: a status, a code and a message."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.reply = Reply(status, {"error_code": code, "message": message})


def answer(context: Context, method: str, path: str, query: Mapping[str, str], body: Any) -> Reply:
    """Answers one call of an MLflow client."""
    found = ROUTE.fullmatch(path)
    call = None if found is None else CALLS.get((method, found["call"]))
    if found is None or call is None:
        known = near("" if found is None else found["call"], (name for _, name in CALLS))
        message = f"The sandbox does not emulate {method} {path.rpartition('/mlflow/')[2]} of MLflow.{known}"
        return MlflowRefused(501, "NOT_IMPLEMENTED", message).reply
    try:
        return Reply(200, call(context, found["workspace"], {**query, **(body if isinstance(body, dict) else {})}))
    except MlflowRefused as refused:
        return refused.reply


def _get_run(context: Context, workspace: str, told: Mapping[str, Any]) -> Any:
    return {"run": _run(context, _job(context, workspace, told))}


def _update(context: Context, workspace: str, told: Mapping[str, Any]) -> Any:
    """A run that says that it goes on or has ended: noted, but the job's own end decides its status."""
    job = _job(context, workspace, told)
    _keep(context, job, {SAID: told["status"]} if told.get("status") else {})
    return {"run_info": _run(context, job)["info"]}


def _log_metric(context: Context, workspace: str, told: Mapping[str, Any]) -> Any:
    job = _job(context, workspace, told)
    _take(context, job, told)
    _wake(context, job)
    return {}


def _wake(context: Context, job: JobRow) -> None:
    """A sweep may want to do something about what its trial logged."""
    if context.store.family.place(job.id) is not None:
        context.wake.set()


def _log_batch(context: Context, workspace: str, told: Mapping[str, Any]) -> Any:
    job = _job(context, workspace, told)
    with context.store.transaction():
        for metric in told.get("metrics") or ():
            _take(context, job, metric)
        _keep(context, job, {f"{PARAMETER}{each['key']}": each["value"] for each in told.get("params") or ()})
        _tag(context, job, {each["key"]: each["value"] for each in told.get("tags") or ()})
    _wake(context, job)
    return {}


def _log_parameter(context: Context, workspace: str, told: Mapping[str, Any]) -> Any:
    _keep(context, _job(context, workspace, told), {f"{PARAMETER}{told['key']}": told["value"]})
    return {}


def _set_tag(context: Context, workspace: str, told: Mapping[str, Any]) -> Any:
    _tag(context, _job(context, workspace, told), {str(told["key"]): told["value"]})
    return {}


def _history(context: Context, workspace: str, told: Mapping[str, Any]) -> Any:
    job = _job(context, workspace, told)
    name = str(told.get("metric_key") or "")
    return {"metrics": [_metric(each) for each in context.store.metrics.of(job.id, name)]}


def _experiment(context: Context, workspace: str, told: Mapping[str, Any]) -> Any:
    """Any experiment is there: jobs make theirs by naming it. Its id is the one that its runs show."""
    name, wanted = told.get("experiment_name"), told.get("experiment_id")
    if name is None:
        used = {_experiment_of(job) for job in context.store.jobs.list(workspace)}
        name = next((each for each in used if contract.experiment_id(workspace, each) == wanted), wanted)
    key = contract.experiment_id(workspace, str(name)) if wanted is None else wanted
    known = {"experiment_id": str(key), "name": str(name), "lifecycle_stage": "active"}
    return {"experiment": {**known, "artifact_location": ""}}


def _experiment_of(job: JobRow) -> str:
    return str(job.properties.get("experimentName") or "Default")


CALLS: dict[tuple[str, str], Callable[[Context, str, Mapping[str, Any]], Any]] = {
    ("GET", "runs/get"): _get_run,
    ("POST", "runs/update"): _update,
    ("POST", "runs/log-metric"): _log_metric,
    ("POST", "runs/log-batch"): _log_batch,
    ("POST", "runs/log-parameter"): _log_parameter,
    ("POST", "runs/set-tag"): _set_tag,
    ("GET", "metrics/get-history"): _history,
    ("GET", "experiments/get"): _experiment,
    ("GET", "experiments/get-by-name"): _experiment,
}


def _job(context: Context, workspace: str, told: Mapping[str, Any]) -> JobRow:
    name = str(told.get("run_id") or told.get("run_uuid") or "")
    job = context.store.jobs.find(workspace, name)
    if job is None:
        raise MlflowRefused(404, "RESOURCE_DOES_NOT_EXIST", f"Run '{name}' not found.")
    return job


def _take(context: Context, job: JobRow, told: Mapping[str, Any]) -> None:
    """One value; what is no number is written as a word by MLflow's clients."""
    try:
        name, value = str(told["key"]), float(told["value"])
        step, at = int(told.get("step") or 0), int(told.get("timestamp") or 0) / 1000
    except (KeyError, TypeError, ValueError) as error:
        raise MlflowRefused(400, "INVALID_PARAMETER_VALUE", f"A metric has a key and a value: {error}.") from None
    context.store.metrics.log(job.id, name, value, step, at or None)


def _keep(context: Context, job: JobRow, properties: Mapping[str, Any]) -> None:
    _merge(context, job, "properties", properties)


def _tag(context: Context, job: JobRow, tags: Mapping[str, Any]) -> None:
    # MLflow's own bookkeeping (mlflow.user, mlflow.source.name) is no tag that anybody gave.
    _merge(context, job, "tags", {name: value for name, value in tags.items() if not name.startswith("mlflow.")})


def _merge(context: Context, job: JobRow, key: str, values: Mapping[str, Any]) -> None:
    if not values:
        return
    with context.store.transaction():
        row = context.store.jobs[job.id]
        merged = {**(row.properties.get(key) or {}), **{name: str(value) for name, value in values.items()}}
        context.store.jobs.set_body(job.id, {"properties": {**row.properties, key: merged}})


def _run(context: Context, job: JobRow) -> Any:
    properties: Mapping[str, Any] = job.properties.get("properties") or {}
    last = {each.name: each for each in context.store.metrics.of(job.id)}
    parameters = {
        name.removeprefix(PARAMETER): value for name, value in properties.items() if name.startswith(PARAMETER)
    }
    info = {
        "run_id": job.name,
        "run_uuid": job.name,
        "run_name": job.properties.get("displayName") or job.name,
        "experiment_id": contract.experiment_id(job.workspace, _experiment_of(job)),
        "status": STATUSES.get(job.status, "RUNNING"),
        "start_time": int((job.started or job.created) * 1000),
        "end_time": None if job.ended is None else int(job.ended * 1000),
        "lifecycle_stage": "active",
        # A folder of this machine, to which MLflow's client writes by itself, as it would to the run's storage.
        "artifact_uri": (job_folder(context.store.home, job.id) / "artifacts").as_uri(),
    }
    data = {
        "metrics": [_metric(each) for each in last.values()],
        "params": [{"key": name, "value": value} for name, value in parameters.items()],
        "tags": [{"key": name, "value": value} for name, value in (job.properties.get("tags") or {}).items()],
    }
    return {"info": info, "data": data, "inputs": {}}


def _metric(each: Any) -> Any:
    value: float | str = each.value
    if not math.isfinite(each.value):
        value = {math.inf: "Infinity", -math.inf: "-Infinity"}.get(each.value, "NaN")
    return {"key": each.name, "value": value, "step": each.step, "timestamp": int(each.at * 1000)}
