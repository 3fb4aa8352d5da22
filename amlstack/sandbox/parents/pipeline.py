"""Advances a pipeline: a step starts when all that it reads has been written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.sandbox.parents import best_trial, bindings, pipeline_body, step_body
from amlstack.sandbox.parents.bindings.values import BindingValues
from amlstack.sandbox.runner.contract.spec import RefusedError
from amlstack.sandbox.runner.files.storage import Storage
from amlstack.sandbox.store.store import JobError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from amlstack.sandbox.parents.parent import Parent
    from amlstack.sandbox.parents.pipeline_body import PipelineStep
    from amlstack.sandbox.store.store import JobRow, Store


def drafts(store: Store, name: str, properties: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The bodies that a pipeline's steps would have, to be checked before it is taken; outputs of steps are made up.

    Raises:
        Refused: The pipeline does not hold together.
    """
    properties = pipeline_body.whole(store, properties)
    bound = BindingValues(properties, draft=True)
    for node in pipeline_body.read(store, properties).values():
        yield node.where, step_body.body(node, bound, parent=name, name=node.name)


def advance(parent: Parent) -> None:
    """Starts the steps that can start, ends the pipeline when nothing is left to do."""
    properties = pipeline_body.whole(parent.store, parent.job.properties)
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
    """Where the outputs of a pipeline lie, as far as the steps that write them were made: output → URI."""
    found = {}
    for name, step in (pipeline_body.whole(store, parent.properties).get("jobs") or {}).items():
        if name not in children or not isinstance(step, dict):
            continue
        for port, output in (step.get("outputs") or {}).items():
            source = bindings.whole(str(output.get("value") or "")) if isinstance(output, dict) else None
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
        trial = best_trial.trial(store, child)
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
    """What the pipeline's outputs hold, put into its folder under ``outputs/<name>``."""
    storage = Storage(parent.store, parent.job.workspace)
    for name, uri in outputs(parent.store, parent.job, parent.children).items():
        target = parent.folder / "outputs" / name
        try:
            storage.fetch(storage.locate(uri, f"The output {name!r}"), target, f"The output {name!r}", link=True)
        except (RefusedError, FileExistsError) as error:
            parent.note(f"output {name}: {error}")
