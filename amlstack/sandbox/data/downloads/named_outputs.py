"""Named outputs of a job: their paths, and their ids in run history.

Azure ML registers each output as a data asset ``azureml_<job>_output_data_<name>:1`` (seen in its own documentation:
learn.microsoft.com/azure/machine-learning/how-to-train-distributed-gpu); the ids here have that form.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amlstack.sandbox.data.datastore_places import MODELS, output_uri
from amlstack.sandbox.data.downloads import artifacts
from amlstack.sandbox.parents import pipeline

if TYPE_CHECKING:
    from amlstack.sandbox.store.store import JobRow, Store

_ASSET = re.compile(
    r"azureml://locations/[^/]+/workspaces/[^/]+/(?:data|models)/azureml_(?P<job>.+)_output_(?:data|model)_(?P<name>.+)/versions/1"
)
_OF_JOB = re.compile(
    r"azureml://jobs/(?P<job>[^/]+)/outputs/(?P<output>[^/]+)(?:/paths)?(?:/(?P<path>.*))?", re.IGNORECASE
)
_OF_RUN = re.compile(r"runs:/(?P<job>[^/]+)/(?P<path>.*)")
ARTIFACTS = "artifacts"
"""What `azureml://jobs/…/outputs/` calls the files that a run keeps by itself."""
_SHORT = re.compile(r"azureml://datastores/(?P<store>[^/]+)/paths/(?P<path>.*)")


def of(store: Store, job: JobRow) -> dict[str, tuple[str, str]]:
    """The outputs of a job that have a place: name → (type as in a body, URI in its long form)."""
    declared = job.properties.get("outputs") or {}
    if job.properties.get("jobType") == "Pipeline":
        rows = {place: store.jobs.get(key) for place, key in store.family.children(job.id).items()}
        made = {place: row for place, row in rows.items() if row is not None}
        places = pipeline.outputs(store, job, made)
    else:
        places = {
            name: output_uri(job.name, name, (port or {}).get("uri"), kind=(port or {}).get("jobOutputType"))
            for name, port in declared.items()
        }
    return {
        name: (str((declared.get(name) or {}).get("jobOutputType") or "uri_folder"), _long(job, uri))
        for name, uri in places.items()
    }


def asset_id(job: JobRow, workspace_id: str, location: str, name: str, kind: str) -> str:
    """The id by which run history names an output."""
    noun, folder = ("model", "models") if kind in MODELS else ("data", "data")
    place = f"azureml://locations/{location}/workspaces/{workspace_id}"
    return f"{place}/{folder}/azureml_{job.name}_output_{noun}_{name}/versions/1"


def resolve(store: Store, workspace: str, asset: str) -> tuple[str, str] | None:
    """Type and URI of the output that an id names; None for an id of something else."""
    found = _ASSET.fullmatch(asset)
    job = None if found is None else store.jobs.find(workspace, found["job"])
    return None if found is None or job is None else of(store, job).get(found["name"])


def registered(store: Store, workspace: str, uri: str) -> str:
    """The address that an asset gets which is registered from a job's files: where they lie, in its long form.

    Args:
        store: All state.
        workspace: Id of the workspace.
        uri: ``azureml://jobs/{job}/outputs/{output}[/paths/{path}]``, ``runs:/{job}/{path}``; anything else, and what
            names no job or no output, stays as it is.
    """
    found = _OF_JOB.fullmatch(uri) or _OF_RUN.fullmatch(uri)
    job = None if found is None else store.jobs.find(workspace, found["job"])
    if found is None or job is None:
        return uri
    output = found.groupdict().get("output", ARTIFACTS)
    path = found["path"] or ""
    if output == ARTIFACTS:
        return _long(job, f"azureml://datastores/{artifacts.DATASTORE}/paths/{artifacts.prefix(job.name)}{path}")
    known = of(store, job).get(output)
    return uri if known is None else f"{known[1].rstrip('/')}/{path}"


def _long(job: JobRow, uri: str) -> str:
    """``azureml://datastores/…`` with its workspace, as the service answers it."""
    found = _SHORT.fullmatch(uri)
    if found is None:
        return uri
    words = job.workspace.split("/")
    place = f"subscriptions/{words[2]}/resourcegroups/{words[4]}/workspaces/{words[8]}"
    return f"azureml://{place}/datastores/{found['store']}/paths/{found['path']}"
