"""MLflow's tracking service, as far as a training run asks for it: runs, metrics, parameters, tags, models.

Its address is in every job's ``MLFLOW_TRACKING_URI``. Jobs are runs; a training may make more of them within its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from amlstack.sandbox import contract
from amlstack.sandbox.planes.mlflow import models, runs
from amlstack.sandbox.planes.mlflow.runs import EXPERIMENT, MlflowRefused, MlflowRun
from amlstack.sandbox.protocol.kind import KindContext, Reply
from amlstack.sandbox.protocol.refusals import near

Call = Callable[[KindContext, str, Mapping[str, Any]], Any]

__all__ = ["CALLS", "MlflowRefused", "answer"]

ROUTE = re.compile(
    r"/mlflow/v\d\.0(?P<workspace>/subscriptions/.+?/workspaces/[^/]+)/api/2\.0/(preview/)?mlflow/(?P<call>.+?)/?"
)
HISTORY = "mlflow.log-model.history"
"""The tag under which a run lists the models that it logged."""


def answer(context: KindContext, method: str, path: str, query: Mapping[str, str], body: Any) -> Reply:
    """Answers one call of an MLflow client."""
    found = ROUTE.fullmatch(path)
    name, of_path = ("", dict[str, str]()) if found is None else models.routed(found["call"])
    call = CALLS.get((method, name))
    if found is None or call is None:
        known = near("" if found is None else found["call"], (name for _, name in CALLS))
        message = f"The sandbox does not emulate {method} {path.rpartition('/mlflow/')[2]} of MLflow.{known}"
        return MlflowRefused(501, "NOT_IMPLEMENTED", message).reply
    fields = {**query, **(body if isinstance(body, dict) else {}), **of_path}
    try:
        return Reply(200, call(context, found["workspace"], fields) or {})
    except MlflowRefused as refused:
        return refused.reply
    except (KeyError, TypeError, ValueError) as error:
        message = f"{found['call']}: a field is missing or of a wrong type: {error}."
        return MlflowRefused(400, "INVALID_PARAMETER_VALUE", message).reply


def _find_run(call: Callable[[KindContext, MlflowRun, Mapping[str, Any]], Any]) -> Call:
    """A call about one run, which is found first."""
    return lambda context, workspace, fields: call(context, runs.find(context, workspace, fields), fields)


def _get_run(context: KindContext, workspace: str, fields: Mapping[str, Any]) -> Any:
    return {"run": runs.show(context, workspace, runs.find(context, workspace, fields))}


def _create_run(context: KindContext, workspace: str, fields: Mapping[str, Any]) -> Any:
    return {"run": runs.show(context, workspace, runs.create(context, workspace, fields))}


def _update(context: KindContext, workspace: str, fields: Mapping[str, Any]) -> Any:
    runs.update(context, runs.find(context, workspace, fields), fields)
    return {"run_info": _get_run(context, workspace, fields)["run"]["info"]}


def _log_metric(context: KindContext, run: MlflowRun, fields: Mapping[str, Any]) -> None:
    _take(context, run, fields)
    _wake(context, run)


def _wake(context: KindContext, run: MlflowRun) -> None:
    """A sweep may want to do something about what its trial logged."""
    if run.row is None and context.store.family.place(run.key) is not None:
        context.wake.set()


def _log_batch(context: KindContext, run: MlflowRun, fields: Mapping[str, Any]) -> None:
    with context.store.transaction():
        for metric in fields.get("metrics") or ():
            _take(context, run, metric)
        runs.keep(context, run, {each["key"]: each["value"] for each in fields.get("params") or ()})
        runs.tag(context, run, {each["key"]: each["value"] for each in fields.get("tags") or ()})
    _wake(context, run)


def _log_parameter(context: KindContext, run: MlflowRun, fields: Mapping[str, Any]) -> None:
    runs.keep(context, run, {fields["key"]: fields["value"]})


def _set_tag(context: KindContext, run: MlflowRun, fields: Mapping[str, Any]) -> None:
    runs.tag(context, run, {str(fields["key"]): fields["value"]})


def _log_model(context: KindContext, run: MlflowRun, fields: Mapping[str, Any]) -> None:
    """A model lies among the run's files already; the run notes where."""
    before = json.loads(run.tags.get(HISTORY, "[]"))
    runs.set_tags(context, run, {HISTORY: json.dumps([*before, json.loads(fields["model_json"])])})


def _log_inputs(context: KindContext, workspace: str, fields: Mapping[str, Any]) -> None:
    runs.read_data(context, workspace, runs.find(context, workspace, fields), fields.get("datasets") or [])


def _history(context: KindContext, run: MlflowRun, fields: Mapping[str, Any]) -> Any:
    values = context.store.metrics.of(run.key, str(fields.get("metric_key") or ""))
    some, more = runs.page([runs.metric(each) for each in values], fields, 25_000)
    return {"metrics": some, **more}


def _search(context: KindContext, workspace: str, fields: Mapping[str, Any]) -> Any:
    wanted = {str(each) for each in fields.get("experiment_ids") or ()}
    view = str(fields.get("run_view_type") or "ACTIVE_ONLY")
    stages = {"ACTIVE_ONLY": ("active",), "DELETED_ONLY": ("deleted",)}.get(view, ("active", "deleted"))
    shown = [runs.show(context, workspace, run) for run in reversed(runs.everyone(context, workspace))]
    kept = [
        run
        for run in shown
        if run["info"]["experiment_id"] in wanted
        and run["info"]["lifecycle_stage"] in stages
        and runs.matches(str(fields.get("filter") or ""), _facts(run))
    ]
    some, more = runs.page(runs.ordered(kept, fields.get("order_by") or (), _facts), fields)
    return {"runs": some, **more}


def _facts(run: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    data = {kind: {each["key"]: each["value"] for each in run["data"][kind]} for kind in ("metrics", "params", "tags")}
    return {"attributes": dict(run["info"]), **data}


def _files(_: KindContext, run: MlflowRun, fields: Mapping[str, Any]) -> Any:
    """The files of a run, one folder of them."""
    root = run.artifacts.resolve()
    place = (root / str(fields.get("path") or "")).resolve()
    if not place.is_relative_to(root):
        raise MlflowRefused(400, "INVALID_PARAMETER_VALUE", f"Invalid path: {fields['path']}")
    files = [
        {"path": str(file.relative_to(root)), "is_dir": True}
        if file.is_dir()
        else {"path": str(file.relative_to(root)), "is_dir": False, "file_size": file.stat().st_size}
        for file in (sorted(place.iterdir()) if place.is_dir() else ())
    ]
    return {"root_uri": root.as_uri(), "files": files}


def _experiment(context: KindContext, workspace: str, fields: Mapping[str, Any]) -> Any:
    """Any experiment is there: jobs make theirs by naming it. Its id is the one that its runs show."""
    name, wanted = fields.get("experiment_name"), fields.get("experiment_id")
    if name is None:
        name = runs.experiment_named(context, workspace, wanted) or wanted
    else:
        _remember(context, workspace, str(name))
    key = contract.experiment_id(workspace, str(name)) if wanted is None else wanted
    return {"experiment": {**_known(str(name)), "experiment_id": str(key)}}


def _create_experiment(context: KindContext, workspace: str, fields: Mapping[str, Any]) -> Any:
    name = str(fields["name"])
    if name in runs.experiments(context, workspace):
        raise MlflowRefused(400, "RESOURCE_ALREADY_EXISTS", f"Experiment '{name}' already exists.")
    _remember(context, workspace, name)
    return {"experiment_id": contract.experiment_id(workspace, name)}


def _search_experiments(context: KindContext, workspace: str, fields: Mapping[str, Any]) -> Any:
    text = str(fields.get("filter") or "")
    names = [
        name
        for name in runs.experiments(context, workspace)
        if runs.matches(text, {"attributes": {"name": name}, "tags": {}})
    ]
    some, more = runs.page(names, fields)
    experiments = [{**_known(name), "experiment_id": contract.experiment_id(workspace, name)} for name in some]
    return {"experiments": experiments, **more}


def _known(name: str) -> dict[str, str]:
    return {"name": name, "lifecycle_stage": "active", "artifact_location": ""}


def _remember(context: KindContext, workspace: str, name: str) -> None:
    """Notes an experiment that a client will make runs in, which name it by its id alone."""
    if name not in runs.experiments(context, workspace):
        identity = f"{workspace}/experiments/{contract.experiment_id(workspace, name)}"
        context.store.resources.put(identity, EXPERIMENT, workspace, {"name": name})


CALLS: dict[tuple[str, str], Call] = {
    ("POST", "runs/create"): _create_run,
    ("GET", "runs/get"): _get_run,
    ("POST", "runs/update"): _update,
    ("POST", "runs/delete"): _find_run(lambda context, run, _: runs.stage(context, run, "deleted")),
    ("POST", "runs/restore"): _find_run(lambda context, run, _: runs.stage(context, run, "active")),
    ("POST", "runs/search"): _search,
    ("POST", "runs/log-metric"): _find_run(_log_metric),
    ("POST", "runs/log-batch"): _find_run(_log_batch),
    ("POST", "runs/log-parameter"): _find_run(_log_parameter),
    ("POST", "runs/log-model"): _find_run(_log_model),
    ("POST", "runs/log-inputs"): _log_inputs,
    ("POST", "runs/set-tag"): _find_run(_set_tag),
    ("POST", "runs/delete-tag"): _find_run(lambda context, run, fields: runs.untag(context, run, str(fields["key"]))),
    ("GET", "metrics/get-history"): _find_run(_history),
    ("GET", "artifacts/list"): _find_run(_files),
    ("GET", "experiments/get"): _experiment,
    ("GET", "experiments/get-by-name"): _experiment,
    ("POST", "experiments/create"): _create_experiment,
    ("POST", "experiments/search"): _search_experiments,
    ("GET", "experiments/search"): _search_experiments,
    **models.CALLS,
}


def _take(context: KindContext, run: MlflowRun, fields: Mapping[str, Any]) -> None:
    """One value; what is no number is written as a word by MLflow's clients."""
    try:
        name, value = str(fields["key"]), float(fields["value"])
        step, at = int(fields.get("step") or 0), int(fields.get("timestamp") or 0) / 1000
    except (KeyError, TypeError, ValueError) as error:
        raise MlflowRefused(400, "INVALID_PARAMETER_VALUE", f"A metric has a key and a value: {error}.") from None
    context.store.metrics.log(run.key, name, value, step, at or None)
