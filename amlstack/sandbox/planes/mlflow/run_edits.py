"""Changes of MLflow runs: made, updated, tagged, deleted and restored."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.contract import launch
from amlstack.sandbox.planes.mlflow.runs import (
    EXPERIMENT,
    INPUTS,
    NAME,
    PARAMETER,
    PARENT,
    REPORTED,
    STATUSES,
    TYPE,
    MlflowRefused,
    MlflowRun,
    experiments,
    find,
    inputs_key,
    of_row,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from amlstack.sandbox.protocol.kind import KindContext
    from amlstack.sandbox.store.store import ResourceRow


def create(context: KindContext, workspace: str, fields: Mapping[str, Any]) -> MlflowRun:
    """A new run; below a job when its tags name that, or a run within it, as the parent.

    Raises:
        MlflowRefused: The parent does not exist.
    """
    tags = {str(each["key"]): str(each["value"]) for each in fields.get("tags") or ()}
    parent = find(context, workspace, {"run_id": tags[PARENT]}) if tags.get(PARENT) else None
    job = None if parent is None else parent.job
    identity = str(uuid.uuid4())
    above = workspace if job is None else job.arm_id
    body = {
        "workspace": workspace.lower(),
        "job": None if job is None else job.id,
        "experiment": _experiment_named(context, workspace, fields, parent),
        "name": str(fields.get("run_name") or tags.get(NAME) or identity[:8]),
        "started": int(fields.get("start_time") or time.time() * 1000) / 1000,
        "tags": tags,
    }
    return of_row(context.store, context.store.resources.put(f"{above}/runs/{identity}", TYPE, above, body))


def update(context: KindContext, run: MlflowRun, fields: Mapping[str, Any]) -> None:
    """Takes the status that a run reports. A job's own end decides its status all the same."""
    status = fields.get("status")
    if run.row is None:
        keep(context, run, {REPORTED: str(status)} if status else {}, prefix="")
        return
    given = {"status": status, "name": fields.get("run_name")}
    changed: dict[str, Any] = {name: str(value) for name, value in given.items() if value}
    if status in STATUSES.values() or fields.get("end_time"):
        changed["ended"] = int(fields.get("end_time") or time.time() * 1000) / 1000
    _put(context, run.row, changed)


def keep(context: KindContext, run: MlflowRun, values: Mapping[str, Any], *, prefix: str = PARAMETER) -> None:
    """Records parameters (of a job: among its properties)."""
    if run.row is None:
        _merge(context, run, "properties", {f"{prefix}{name}": value for name, value in values.items()})
    else:
        _merge(context, run, "parameters", values)


def tag(context: KindContext, run: MlflowRun, tags: Mapping[str, Any]) -> None:
    """Sets tags; of a job not MLflow's own bookkeeping (mlflow.user, mlflow.source.name), which no person set."""
    own = run.row is not None
    set_tags(context, run, {name: value for name, value in tags.items() if own or not name.startswith("mlflow.")})


def set_tags(context: KindContext, run: MlflowRun, tags: Mapping[str, Any]) -> None:
    """Sets tags as they are."""
    _merge(context, run, "tags", tags)


def untag(context: KindContext, run: MlflowRun, name: str) -> None:
    """Takes a tag away.

    Raises:
        MlflowRefused: It has none of this name.
    """
    if name not in run.tags:
        raise MlflowRefused(404, "RESOURCE_DOES_NOT_EXIST", f"No tag with name: {name} in run with id {run.id}.")
    _edit(context, run, "tags", lambda old: {key: value for key, value in old.items() if key != name})


def stage(context: KindContext, run: MlflowRun, word: str) -> None:
    """Deletes a run for clients, or brings it back; it stays in the tables. Jobs are archived, not deleted."""
    if run.row is not None:
        _put(context, run.row, {"stage": word})
        return
    job = context.store.jobs[run.key]
    properties = {**job.properties, "isArchived": word == "deleted"}
    context.store.jobs.set_body(run.key, {"properties": properties})


def read_data(context: KindContext, workspace: str, run: MlflowRun, datasets: Iterable[Mapping[str, Any]]) -> None:
    """Notes which datasets a run reads (``mlflow.log_input``, and what autologging finds out).

    Raises:
        KeyError: One has no name, digest, source or type of source.
    """
    for one in datasets:
        for field in ("name", "digest", "source_type", "source"):
            one["dataset"][field]
    place = inputs_key(workspace, run)
    with context.store.transaction():
        before = context.store.resources.get(place)
        known = [] if before is None else before.body["datasets"]
        fresh = [dict(one) for one in datasets if one not in known]
        context.store.resources.put(place, INPUTS, place.rsplit("/", 2)[0], {"datasets": [*known, *fresh]})


def _merge(context: KindContext, run: MlflowRun, key: str, values: Mapping[str, Any]) -> None:
    if values:
        _edit(context, run, key, lambda old: {**old, **{str(name): str(value) for name, value in values.items()}})


def _edit(context: KindContext, run: MlflowRun, key: str, change: Any) -> None:
    with context.store.transaction():
        if run.row is None:
            properties = context.store.jobs[run.key].properties
            changed = {**properties, key: change(properties.get(key) or {})}
            context.store.jobs.set_body(run.key, {"properties": changed})
        else:
            row = context.store.resources.get(run.key)
            _put(context, run.row, {key: change({} if row is None else row.body.get(key) or {})})


def _put(context: KindContext, row: ResourceRow, changed: Mapping[str, Any]) -> None:
    with context.store.transaction():
        now = context.store.resources.get(row.key) or row
        context.store.resources.put(row.id, TYPE, row.parent, {**now.body, **changed})


def _experiment_named(context: KindContext, workspace: str, fields: Mapping[str, Any], parent: MlflowRun | None) -> str:
    if parent is not None:
        return parent.experiment
    wanted = str(fields.get("experiment_id") or "")
    kept = [row.body["name"] for row in context.store.resources.under(workspace, EXPERIMENT)]
    names = (*kept, *experiments(context, workspace))
    return next((name for name in names if launch.experiment_id(workspace, name) == wanted), "Default")
