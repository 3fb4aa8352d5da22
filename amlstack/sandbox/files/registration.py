"""Outputs of a completed job that become data assets and models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from amlstack.sandbox.files.datastores import MODELS, output_uri

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.store.store import JobRow, Store

_ML: Final = "Microsoft.MachineLearningServices/workspaces"


def register(store: Store, job: JobRow, places: Mapping[str, str] | None = None) -> None:
    """Registers each output that has an ``assetName``, under its ``assetVersion`` or the next number.

    A version that is there already stays as it is: assets never change.

    Args:
        store: All state.
        job: It has completed.
        places: Where the outputs lie that its steps have written; of a job without steps they lie where it says.
    """
    for name, port in (job.properties.get("outputs") or {}).items():
        if not isinstance(port, dict) or not port.get("assetName"):
            continue
        kind = str(port.get("jobOutputType") or "uri_folder")
        uri = (places or {}).get(name) or output_uri(job.name, name, port.get("uri"))
        common: dict[str, Any] = {"isAnonymous": False, "isArchived": False, "tags": {}, "properties": {}}
        if kind in MODELS:
            own = {"modelUri": uri, "modelType": kind, "jobName": job.name, "flavors": {}}
            _put(store, job.workspace, "models", port, {**common, **own})
        else:
            _put(store, job.workspace, "data", port, {**common, "dataUri": uri, "dataType": kind})


def _put(store: Store, workspace: str, word: str, port: dict[str, Any], properties: dict[str, Any]) -> None:
    container, kind = f"{workspace}/{word}/{port['assetName']}", f"{_ML}/{word}"
    numbers = [int(row.name) for row in store.resources.under(container, f"{kind}/versions") if row.name.isdecimal()]
    version = str(port.get("assetVersion") or max(numbers, default=0) + 1)
    if store.resources.get(container) is None:
        store.resources.put(container, kind, workspace, {"properties": {}})
    if store.resources.get(f"{container}/versions/{version}") is None:
        store.resources.put(
            f"{container}/versions/{version}", f"{kind}/versions", container, {"properties": properties}
        )
