"""Advances a pipeline: a step starts when all that it reads has been written.

Named outputs of a job: their paths, and their ids in run history.

Azure ML registers each output as a data asset ``azureml_<job>_output_data_<name>:1`` (seen in its own documentation:
learn.microsoft.com/azure/machine-learning/how-to-train-distributed-gpu); the ids here have that form.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.contract.spec import RefusedError
from amlstack.sandbox.files import artifacts
from amlstack.sandbox.files.datastores import MODELS, output_uri
from amlstack.sandbox.files.storage import Storage
from amlstack.sandbox.orchestration import pipeline_body, step_body, sweep
from amlstack.sandbox.orchestration.pipeline_body import BindingValues
from amlstack.sandbox.store.store import JobError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from amlstack.sandbox.orchestration.parent import Parent
    from amlstack.sandbox.orchestration.pipeline_body import PipelineStep
    from amlstack.sandbox.store.store import JobRow, Store


def drafts(store: Store, name: str, properties: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The bodies that a pipeline's steps would have, to be checked before it is taken; outputs of steps are made up.

    Raises:
        Refused: The pipeline does not hold together.
    """
    properties = pipeline_body.complete_body(store, properties)
    bound = BindingValues(properties, draft=True)
    for node in pipeline_body.read(store, properties).values():
        yield node.where, step_body.body(node, bound, parent=name, name=node.name)


def advance(parent: Parent) -> None:
    """Starts the steps that can start, ends the pipeline when nothing is left to do."""
    properties = pipeline_body.complete_body(parent.store, parent.job.properties)
    wanted = pipeline_body.read(parent.store, properties)
    settings = properties.get("settings") or {}
    goes_on = str(settings.get("continue_on_step_failure", True)).lower() != "false"
    failed = {place: row for place, row in parent.children.items() if row.status in ("Failed", "Canceled")}
    if failed and not goes_on:
        if parent.active:
            parent.cancel_all()
            return
    else:
        for node in wanted.values():
            if node.name not in parent.children and all(_done(parent, needed) for needed in node.needs):
                _start(parent, node, properties)
    if parent.active:
        return
    left = [name for name in wanted if name not in parent.children]
    if failed or left:
        parent.end("Failed", _error(parent, failed, left))
        return
    _collect(parent)
    parent.note("all steps completed")
    parent.end("Completed")


def outputs(store: Store, parent: JobRow, children: Mapping[str, JobRow]) -> dict[str, str]:
    """The locations of a pipeline's outputs, as far as the steps that write them were made: output → URI."""
    found = {}
    for name, step in (pipeline_body.complete_body(store, parent.properties).get("jobs") or {}).items():
        if name not in children or not isinstance(step, dict):
            continue
        for port, output in (step.get("outputs") or {}).items():
            source = pipeline_body.whole(str(output.get("value") or "")) if isinstance(output, dict) else None
            wire = _written(store, children[name]).get(port)
            if source is not None and wire is not None:
                found[source.name] = str(wire.get("uri") or "")
    return found


def _done(parent: Parent, step: str) -> bool:
    return step in parent.children and parent.children[step].status == "Completed"


def _start(parent: Parent, node: PipelineStep, properties: Mapping[str, Any]) -> None:
    made = {place: {**row.properties, "outputs": _written(parent.store, row)} for place, row in parent.children.items()}
    name = step_body.child_name(parent.job.arm_id.lower(), node.name)
    body = step_body.body(node, BindingValues(properties, made), parent=parent.job.name, name=name)
    parent.make(node.name, name, body)
    parent.note(f"step {node.name} is job {name}")


def _written(store: Store, child: JobRow) -> dict[str, Any]:
    """A child's outputs; a sweep's are its best trial's."""
    if child.properties.get("jobType") == "Sweep":
        trial = sweep.trial(store, child)
        child = child if trial is None else trial
    found: dict[str, Any] = child.properties.get("outputs") or {}
    return found


def _error(parent: Parent, failed: Mapping[str, JobRow], left: list[str]) -> JobError:
    if not failed:  # pragma: no cover - what is left waits for something that did not complete
        return JobError("SandboxError", f"The pipeline stopped before these steps: {', '.join(left)}.")
    # A step that was cancelled because another failed is no cause.
    place, row = min(failed.items(), key=lambda item: (item[1].status != "Failed", item[1].ended or 0.0))
    reason = row.error.message if row.error is not None else f"it was {row.status.lower()}"
    rest = f" Not run: {', '.join(left)}." if left else ""
    more = [other for other in failed if other != place]
    also = f" Also failed or cancelled: {', '.join(more)}." if more else ""
    parent.note(f"step {place} {row.status.lower()}")
    return JobError("UserError", f"Step {place!r} (job {row.name}) {row.status.lower()}: {reason}{also}{rest}")


def _collect(parent: Parent) -> None:
    """Put what the pipeline's outputs hold into its folder under ``outputs/<name>``."""
    storage = Storage(parent.store, parent.job.workspace)
    for name, uri in outputs(parent.store, parent.job, parent.children).items():
        target = parent.folder / "outputs" / name
        try:
            storage.fetch(storage.locate(uri, f"The output {name!r}"), target, f"The output {name!r}", link=True)
        except (RefusedError, FileExistsError) as error:
            parent.note(f"output {name}: {error}")


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
        places = outputs(store, job, made)
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
