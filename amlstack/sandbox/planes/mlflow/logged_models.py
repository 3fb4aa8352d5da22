"""MLflow 3's logged models: what `log_model` makes before it writes a model's files, among those of their run."""

from __future__ import annotations

import re
import secrets
import time
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.planes.mlflow import runs
from amlstack.sandbox.planes.mlflow.runs import MlflowRefused
from amlstack.sandbox.store.folders import folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from amlstack.sandbox.protocol.kind import KindContext

if TYPE_CHECKING:
    Fields = Mapping[str, Any]

TYPE = "mlflow/logged-models"
_CALL = re.compile(r"logged-models/(?P<id>(?!search$)[^/]+)(?P<rest>/params|/tags)?(?:(?<=tags)/(?P<key>.+))?")


def routed(call: str) -> tuple[str, dict[str, str]]:
    """A call's name with ``ID`` and ``KEY`` for what stands in its path, and these as fields."""
    found = _CALL.fullmatch(call)
    if found is None:
        return call, {}
    fields = {"model_id": found["id"], **({"tag_key": found["key"]} if found["key"] else {})}
    return f"logged-models/ID{found['rest'] or ''}{'/KEY' if found['key'] else ''}", fields


def _create(context: KindContext, workspace: str, fields: Fields) -> Any:
    model_id = f"m-{secrets.token_hex(16)}"
    name = str(fields.get("name") or model_id)
    run = str(fields.get("source_run_id") or "")
    root = runs.find(context, workspace, {"run_id": run}).artifacts if run else _root(context, workspace, fields)
    # A later model of the same name, as of each epoch, has files of its own.
    place = root / (re.sub(r"[^\w.-]+", "_", name).strip("._") or "model")
    now = int(time.time() * 1000)
    info = {
        "model_id": model_id,
        "experiment_id": str(fields.get("experiment_id") or ""),
        "name": name,
        "creation_timestamp_ms": now,
        "last_updated_timestamp_ms": now,
        "artifact_uri": (place / model_id if place.exists() else place).as_uri(),
        "status": "LOGGED_MODEL_PENDING",
        "model_type": fields.get("model_type") or "",
        "source_run_id": run,
        "tags": list(fields.get("tags") or ()),
    }
    data = {"params": list(fields.get("params") or ()), "metrics": []}
    return _kept(context, workspace, {"info": info, "data": data})


def _root(context: KindContext, workspace: str, fields: Fields) -> Path:
    """The folder of a model without a run: with the one job of its experiment that runs, else with none."""
    running = []
    for run in runs.everyone(context, workspace):
        info = runs.show(context, workspace, run)["info"]
        of_job = run.row is None and not context.store.family.children(run.key)
        if of_job and (info["status"], info["experiment_id"]) == ("RUNNING", str(fields.get("experiment_id") or "")):
            running.append(run)
    return running[0].artifacts if len(running) == 1 else folder(context.store.home) / "models"


def _get(context: KindContext, workspace: str, fields: Fields) -> Any:
    return {"model": _found(context, workspace, fields)}


def _finalize(context: KindContext, workspace: str, fields: Fields) -> Any:
    model = _found(context, workspace, fields)
    return _kept(context, workspace, {**model, "info": {**model["info"], "status": fields["status"]}})


def _params(context: KindContext, workspace: str, fields: Fields) -> Any:
    model = _found(context, workspace, fields)
    params = _merged(model["data"]["params"], fields.get("params") or ())
    _kept(context, workspace, {**model, "data": {**model["data"], "params": params}})
    return {}


def _tags(context: KindContext, workspace: str, fields: Fields) -> Any:
    model = _found(context, workspace, fields)
    tags = _merged(model["info"]["tags"], fields.get("tags") or ())
    return _kept(context, workspace, {**model, "info": {**model["info"], "tags": tags}})


def _untag(context: KindContext, workspace: str, fields: Fields) -> Any:
    model = _found(context, workspace, fields)
    tags = [each for each in model["info"]["tags"] if each["key"] != fields["tag_key"]]
    _kept(context, workspace, {**model, "info": {**model["info"], "tags": tags}})
    return {}


def _delete(context: KindContext, workspace: str, fields: Fields) -> Any:
    model = _found(context, workspace, fields)
    context.store.resources.delete(f"{workspace}/loggedModels/{model['info']['model_id']}")
    return {}


def _search(context: KindContext, workspace: str, fields: Fields) -> Any:
    wanted = {str(each) for each in fields.get("experiment_ids") or ()}
    models = [row.body for row in context.store.resources.under(workspace, TYPE)]
    kept = [each for each in models if not wanted or each["info"]["experiment_id"] in wanted]
    some, more = runs.page(kept, fields, 100)
    return {"models": some, **more}


def _outputs(context: KindContext, workspace: str, fields: Fields) -> Any:
    """Accept the models that a run has written: they name their run themselves."""
    runs.find(context, workspace, fields)
    return {}


def _found(context: KindContext, workspace: str, fields: Fields) -> dict[str, Any]:
    name = str(fields.get("model_id") or "")
    row = context.store.resources.get(f"{workspace}/loggedModels/{name}")
    if row is None:
        raise MlflowRefused(404, "RESOURCE_DOES_NOT_EXIST", f"Logged model with ID '{name}' not found.")
    return dict(row.body)


def _kept(context: KindContext, workspace: str, model: dict[str, Any]) -> Any:
    model["info"]["last_updated_timestamp_ms"] = int(time.time() * 1000)
    context.store.resources.put(f"{workspace}/loggedModels/{model['info']['model_id']}", TYPE, workspace, model)
    return {"model": model}


def _merged(before: list[dict[str, str]], new: Any) -> list[dict[str, str]]:
    values = {each["key"]: each["value"] for each in (*before, *new)}
    return runs.pairs(values)


CALLS: dict[tuple[str, str], Callable[[KindContext, str, Fields], Any]] = {
    ("POST", "logged-models"): _create,
    ("POST", "logged-models/search"): _search,
    ("GET", "logged-models/ID"): _get,
    ("PATCH", "logged-models/ID"): _finalize,
    ("DELETE", "logged-models/ID"): _delete,
    ("POST", "logged-models/ID/params"): _params,
    ("PATCH", "logged-models/ID/tags"): _tags,
    ("DELETE", "logged-models/ID/tags/KEY"): _untag,
    ("POST", "runs/outputs"): _outputs,
}
