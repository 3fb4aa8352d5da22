"""MLflow's model registry: registered models and their versions, which are the workspace's models in ARM."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.kinds.machine_learning import assets
from amlstack.sandbox.planes.mlflow import runs
from amlstack.sandbox.planes.mlflow.runs import MlflowRefused, pairs
from amlstack.sandbox.protocol.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from amlstack.sandbox.protocol.kind import KindContext
    from amlstack.sandbox.store.store import ResourceRow

if TYPE_CHECKING:
    Fields = Mapping[str, Any]

STAGES = ("None", "Staging", "Production", "Archived")


def _create(context: KindContext, workspace: str, fields: Fields) -> Any:
    name = _named(fields)
    if context.store.resources.get(f"{workspace}/models/{name}") is not None:
        raise MlflowRefused(400, "RESOURCE_ALREADY_EXISTS", f"Registered Model (name={name}) already exists.")
    return {"registered_model": _model(context, _make(context, workspace, name, fields))}


def _get(context: KindContext, workspace: str, fields: Fields) -> Any:
    return {"registered_model": _model(context, _found(context, workspace, fields))}


def _search(context: KindContext, workspace: str, fields: Fields) -> Any:
    rows = context.store.resources.under(workspace, assets.MODELS_CONTAINERS.type)
    text = str(fields.get("filter") or "")
    kept = [row for row in rows if runs.matches(text, {"attributes": {"name": row.name}, "tags": _tags(row)})]
    some, more = runs.page(kept, fields, 100)
    return {"registered_models": [_model(context, row) for row in some], **more}


def _update(context: KindContext, workspace: str, fields: Fields) -> Any:
    row = _edited(context, _found(context, workspace, fields), {"description": fields.get("description")})
    return {"registered_model": _model(context, row)}


def _tag(context: KindContext, workspace: str, fields: Fields) -> Any:
    row = _found(context, workspace, fields)
    _edited(context, row, {"tags": {**_tags(row), str(fields["key"]): str(fields["value"])}})
    return {}


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
    return {
        "model_version": _version(context.store.resources.put(identity, assets.MODELS_VERSIONS.type, model.id, body))
    }


def _get_version(context: KindContext, workspace: str, fields: Fields) -> Any:
    return {"model_version": _version(_found_version(context, workspace, fields))}


def _search_versions(context: KindContext, workspace: str, fields: Fields) -> Any:
    text, kept = str(fields.get("filter") or ""), []
    for row in context.store.resources.of_type(assets.MODELS_VERSIONS.type):
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


def _tag_version(context: KindContext, workspace: str, fields: Fields) -> Any:
    row = _found_version(context, workspace, fields)
    _edited(context, row, {"tags": {**_tags(row), str(fields["key"]): str(fields["value"])}})
    return {}


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
}


def _named(fields: Fields) -> str:
    name = str(fields.get("name") or "")
    try:
        assets.MODELS_CONTAINERS.names.check(name, assets.MODELS_CONTAINERS.noun)
    except Refused as refused:
        raise MlflowRefused(400, "INVALID_PARAMETER_VALUE", refused.message) from None
    return name


def _make(context: KindContext, workspace: str, name: str, fields: Fields) -> ResourceRow:
    tags = {str(each["key"]): str(each["value"]) for each in fields.get("tags") or ()}
    labels = {"description": fields.get("description"), "tags": tags, "properties": {}, "isArchived": False}
    body = {"properties": labels}
    return context.store.resources.put(f"{workspace}/models/{name}", assets.MODELS_CONTAINERS.type, workspace, body)


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
    return context.store.resources.under(model.key, assets.MODELS_VERSIONS.type)


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
