"""Models of MLflow: the registry, which is the workspace's models in ARM, and MLflow 3's logged models of runs."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.kinds.machine_learning import assets
from amlstack.sandbox.planes.mlflow import runs
from amlstack.sandbox.planes.mlflow.runs import MlflowRefused, pairs
from amlstack.sandbox.protocol.refusals import Refused
from amlstack.sandbox.store.folders import folder

if TYPE_CHECKING:
    from amlstack.sandbox.protocol.kind import KindContext
    from amlstack.sandbox.store.store import ResourceRow


Fields = Mapping[str, Any]

STAGES = ("None", "Staging", "Production", "Archived")


def _create(context: KindContext, workspace: str, fields: Fields) -> Any:
    name = _named(fields)
    if context.store.resources.get(f"{workspace}/models/{name}") is not None:
        raise MlflowRefused(400, "RESOURCE_ALREADY_EXISTS", f"Registered Model (name={name}) already exists.")
    tags = {str(each["key"]): str(each["value"]) for each in fields.get("tags") or ()}
    labels = {"description": fields.get("description"), "tags": tags, "properties": {}, "isArchived": False}
    kind, body = assets.MODELS.type, {"properties": labels}
    row = context.store.resources.put(f"{workspace}/models/{name}", kind, workspace, body)
    return {"registered_model": _model(context, row)}


def _get(context: KindContext, workspace: str, fields: Fields) -> Any:
    return {"registered_model": _model(context, _found(context, workspace, fields))}


def _search(context: KindContext, workspace: str, fields: Fields) -> Any:
    rows = context.store.resources.under(workspace, assets.MODELS.type)
    text = str(fields.get("filter") or "")
    kept = [row for row in rows if runs.matches(text, {"attributes": {"name": row.name}, "tags": _tags(row)})]
    some, more = runs.page(kept, fields, 100)
    return {"registered_models": [_model(context, row) for row in some], **more}


def _update(context: KindContext, workspace: str, fields: Fields) -> Any:
    row = _edited(context, _found(context, workspace, fields), {"description": fields.get("description")})
    return {"registered_model": _model(context, row)}


def _tag(context: KindContext, workspace: str, fields: Fields) -> None:
    row = _found(context, workspace, fields)
    _edited(context, row, {"tags": {**_tags(row), str(fields["key"]): str(fields["value"])}})


def _latest(context: KindContext, workspace: str, fields: Fields) -> Any:
    return {"model_versions": _newest(context, _found(context, workspace, fields), fields.get("stages") or ())}


def _create_version(context: KindContext, workspace: str, fields: Fields) -> Any:
    model = _found(context, workspace, fields)
    numbers = [int(row.name) for row in _versions(context, model) if row.name.isdigit()]
    identity = f"{model.id}/versions/{max(numbers, default=0) + 1}"
    body = {
        "properties": {
            "modelUri": str(fields.get("source") or ""),
            "modelType": "mlflow_model",
            "description": fields.get("description"),
            "tags": {str(each["key"]): str(each["value"]) for each in fields.get("tags") or ()},
            "properties": {},
            "isAnonymous": False,
            "isArchived": False,
            **({"jobName": str(fields["run_id"])} if fields.get("run_id") else {}),
        }
    }
    row = context.store.resources.put(identity, assets.ModelVersions.type, model.id, body)
    return {"model_version": _version(row)}


def _get_version(context: KindContext, workspace: str, fields: Fields) -> Any:
    return {"model_version": _version(_found_version(context, workspace, fields))}


def _search_versions(context: KindContext, workspace: str, fields: Fields) -> Any:
    text, kept = str(fields.get("filter") or ""), []
    for row in context.store.resources.of_type(assets.ModelVersions.type):
        if not row.key.startswith(f"{workspace.lower()}/"):
            continue
        shown = _version(row)
        known = {
            "name": shown["name"],
            "version_number": int(row.name) if row.name.isdigit() else None,
            "run_id": shown["run_id"],
            "source_path": shown["source"],
        }
        if runs.matches(text, {"attributes": known, "tags": _tags(row)}):
            kept.append(shown)
    some, more = runs.page(kept, fields)
    return {"model_versions": some, **more}


def _download(context: KindContext, workspace: str, fields: Fields) -> Any:
    return {"artifact_uri": _version(_found_version(context, workspace, fields))["source"]}


def _update_version(context: KindContext, workspace: str, fields: Fields) -> Any:
    row = _edited(context, _found_version(context, workspace, fields), {"description": fields.get("description")})
    return {"model_version": _version(row)}


def _tag_version(context: KindContext, workspace: str, fields: Fields) -> None:
    row = _found_version(context, workspace, fields)
    _edited(context, row, {"tags": {**_tags(row), str(fields["key"]): str(fields["value"])}})


def _move(context: KindContext, workspace: str, fields: Fields) -> Any:
    row = _found_version(context, workspace, fields)
    wanted = str(fields.get("stage") or "").capitalize()
    if wanted not in STAGES:
        message = f"Invalid Model Version stage {fields.get('stage')!r}. Value must be one of {', '.join(STAGES)}."
        raise MlflowRefused(400, "INVALID_PARAMETER_VALUE", message)
    if str(fields.get("archive_existing_versions")).lower() == "true":
        for other in _versions(context, _found(context, workspace, fields)):
            if other.key != row.key and _version(other)["current_stage"] == wanted:
                _edited(context, other, {"stage": "Archived"})
    return {"model_version": _version(_edited(context, row, {"stage": wanted}))}


def _named(fields: Fields) -> str:
    name = str(fields.get("name") or "")
    try:
        assets.MODELS.names.check(name, assets.MODELS.noun)
    except Refused as refused:
        raise MlflowRefused(400, "INVALID_PARAMETER_VALUE", refused.message) from None
    return name


def _found(context: KindContext, workspace: str, fields: Fields) -> ResourceRow:
    name = str(fields.get("name") or "")
    row = context.store.resources.get(f"{workspace}/models/{name}")
    if row is None:
        raise MlflowRefused(404, "RESOURCE_DOES_NOT_EXIST", f"Registered Model with name={name} not found.")
    return row


def _found_version(context: KindContext, workspace: str, fields: Fields) -> ResourceRow:
    model, number = _found(context, workspace, fields), str(fields.get("version") or "")
    row = context.store.resources.get(f"{model.id}/versions/{number}")
    if row is None:
        message = f"Model Version (name={model.name}, version={number}) not found."
        raise MlflowRefused(404, "RESOURCE_DOES_NOT_EXIST", message)
    return row


def _versions(context: KindContext, model: ResourceRow) -> tuple[ResourceRow, ...]:
    return context.store.resources.under(model.key, assets.ModelVersions.type)


def _newest(context: KindContext, model: ResourceRow, stages: Any) -> list[Any]:
    """The last version of each stage (of those asked for)."""
    newest = {shown["current_stage"]: shown for shown in map(_version, _versions(context, model))}
    wanted = [str(stages)] if isinstance(stages, str) else [str(each) for each in stages]
    return [shown for stage, shown in newest.items() if not wanted or stage in wanted]


def _edited(context: KindContext, row: ResourceRow, changed: Fields) -> ResourceRow:
    body = {**row.body, "properties": {**row.body["properties"], **changed}}
    return context.store.resources.put(row.id, row.type, row.parent, body)


def _tags(row: ResourceRow) -> dict[str, str]:
    return dict(row.body["properties"].get("tags") or {})


def _model(context: KindContext, row: ResourceRow) -> Any:
    return {**_common(row), "name": row.name, "latest_versions": _newest(context, row, ())}


def _version(row: ResourceRow) -> Any:
    properties = row.body["properties"]
    return {
        **_common(row),
        "name": row.id.rsplit("/", 3)[-3],
        "version": row.name,
        "current_stage": properties.get("stage") or "None",
        "source": properties.get("modelUri") or "",
        "run_id": properties.get("jobName") or "",
        "status": "READY",
    }


def _common(row: ResourceRow) -> dict[str, Any]:
    return {
        "creation_timestamp": int(row.created * 1000),
        "last_updated_timestamp": int((row.changed or time.time()) * 1000),
        "description": row.body["properties"].get("description") or "",
        "tags": pairs(_tags(row)),
    }


LOGGED_MODEL = "mlflow/logged-models"
_CALL = re.compile(r"logged-models/(?P<id>(?!search$)[^/]+)(?P<rest>/params|/tags)?(?:(?<=tags)/(?P<key>.+))?")


def routed(call: str) -> tuple[str, dict[str, str]]:
    """A call's name with ``ID`` and ``KEY`` for what stands in its path, and these as fields."""
    found = _CALL.fullmatch(call)
    if found is None:
        return call, {}
    fields = {"model_id": found["id"], **({"tag_key": found["key"]} if found["key"] else {})}
    return f"logged-models/ID{found['rest'] or ''}{'/KEY' if found['key'] else ''}", fields


def _create_logged(context: KindContext, workspace: str, fields: Fields) -> Any:
    model_id = f"m-{secrets.token_hex(16)}"
    name = str(fields.get("name") or model_id)
    run = str(fields.get("source_run_id") or "")
    root = (
        runs.find(context, workspace, {"run_id": run}).artifacts if run else _logged_folder(context, workspace, fields)
    )
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
    return _keep_logged(context, workspace, {"info": info, "data": data})


def _logged_folder(context: KindContext, workspace: str, fields: Fields) -> Path:
    """The folder of a model without a run: with the one job of its experiment that runs, else with none."""
    running = []
    for run in runs.everyone(context, workspace):
        info = runs.show(context, workspace, run)["info"]
        of_job = run.row is None and not context.store.family.children(run.key)
        if of_job and (info["status"], info["experiment_id"]) == ("RUNNING", str(fields.get("experiment_id") or "")):
            running.append(run)
    return running[0].artifacts if len(running) == 1 else folder(context.store.home) / "models"


def _get_logged(context: KindContext, workspace: str, fields: Fields) -> Any:
    return {"model": _find_logged(context, workspace, fields)}


def _finalize_logged(context: KindContext, workspace: str, fields: Fields) -> Any:
    model = _find_logged(context, workspace, fields)
    return _keep_logged(context, workspace, {**model, "info": {**model["info"], "status": fields["status"]}})


def _add_parameters(context: KindContext, workspace: str, fields: Fields) -> None:
    model = _find_logged(context, workspace, fields)
    given = (*model["data"]["params"], *(fields.get("params") or ()))
    params = pairs({each["key"]: each["value"] for each in given})
    _keep_logged(context, workspace, {**model, "data": {**model["data"], "params": params}})


def _tag_logged(context: KindContext, workspace: str, fields: Fields) -> Any:
    model = _find_logged(context, workspace, fields)
    given = (*model["info"]["tags"], *(fields.get("tags") or ()))
    tags = pairs({each["key"]: each["value"] for each in given})
    return _keep_logged(context, workspace, {**model, "info": {**model["info"], "tags": tags}})


def _untag_logged(context: KindContext, workspace: str, fields: Fields) -> None:
    model = _find_logged(context, workspace, fields)
    tags = [each for each in model["info"]["tags"] if each["key"] != fields["tag_key"]]
    _keep_logged(context, workspace, {**model, "info": {**model["info"], "tags": tags}})


def _delete_logged(context: KindContext, workspace: str, fields: Fields) -> None:
    model = _find_logged(context, workspace, fields)
    context.store.resources.delete(f"{workspace}/loggedModels/{model['info']['model_id']}")


def _search_logged(context: KindContext, workspace: str, fields: Fields) -> Any:
    wanted = {str(each) for each in fields.get("experiment_ids") or ()}
    models = [row.body for row in context.store.resources.under(workspace, LOGGED_MODEL)]
    kept = [each for each in models if not wanted or each["info"]["experiment_id"] in wanted]
    some, more = runs.page(kept, fields, 100)
    return {"models": some, **more}


def _accept_outputs(context: KindContext, workspace: str, fields: Fields) -> None:
    """Accept the models that a run has written: they name their run themselves."""
    runs.find(context, workspace, fields)


def _find_logged(context: KindContext, workspace: str, fields: Fields) -> dict[str, Any]:
    name = str(fields.get("model_id") or "")
    row = context.store.resources.get(f"{workspace}/loggedModels/{name}")
    if row is None:
        raise MlflowRefused(404, "RESOURCE_DOES_NOT_EXIST", f"Logged model with ID '{name}' not found.")
    return dict(row.body)


def _keep_logged(context: KindContext, workspace: str, model: dict[str, Any]) -> Any:
    model["info"]["last_updated_timestamp_ms"] = int(time.time() * 1000)
    context.store.resources.put(f"{workspace}/loggedModels/{model['info']['model_id']}", LOGGED_MODEL, workspace, model)
    return {"model": model}


CALLS: dict[tuple[str, str], Callable[[KindContext, str, Fields], Any]] = {
    ("POST", "registered-models/create"): _create,
    ("GET", "registered-models/get"): _get,
    ("GET", "registered-models/search"): _search,
    ("PATCH", "registered-models/update"): _update,
    ("POST", "registered-models/set-tag"): _tag,
    ("GET", "registered-models/get-latest-versions"): _latest,
    ("POST", "registered-models/get-latest-versions"): _latest,
    ("POST", "model-versions/create"): _create_version,
    ("GET", "model-versions/get"): _get_version,
    ("GET", "model-versions/search"): _search_versions,
    ("GET", "model-versions/get-download-uri"): _download,
    ("PATCH", "model-versions/update"): _update_version,
    ("POST", "model-versions/set-tag"): _tag_version,
    ("POST", "model-versions/transition-stage"): _move,
    ("POST", "logged-models"): _create_logged,
    ("POST", "logged-models/search"): _search_logged,
    ("GET", "logged-models/ID"): _get_logged,
    ("PATCH", "logged-models/ID"): _finalize_logged,
    ("DELETE", "logged-models/ID"): _delete_logged,
    ("POST", "logged-models/ID/params"): _add_parameters,
    ("PATCH", "logged-models/ID/tags"): _tag_logged,
    ("DELETE", "logged-models/ID/tags/KEY"): _untag_logged,
    ("POST", "runs/outputs"): _accept_outputs,
}
