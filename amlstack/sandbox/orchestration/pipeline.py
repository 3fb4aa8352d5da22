"""Pipelines: a step becomes a job when all that it reads has been written; outputs have a path and an id.

Azure ML registers each output as a data asset ``azureml_<job>_output_data_<name>:1`` (seen in its own documentation:
learn.microsoft.com/azure/machine-learning/how-to-train-distributed-gpu); the ids here have that form.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from amlstack.base.text import camel
from amlstack.sandbox.contract import RefusedError
from amlstack.sandbox.files.environments import OUTPUTS, inputs_of
from amlstack.sandbox.files.storage import (
    ARTIFACT_STORE,
    DEFAULT_STORE,
    JOB_OUTPUT,
    MODELS,
    Storage,
    artifact_prefix,
    output_uri,
    register,
)
from amlstack.sandbox.orchestration import parallel_step, pipeline_body, sweep
from amlstack.sandbox.orchestration.pipeline_body import BindingValues, PipelineStep, Wire, wire_mode
from amlstack.sandbox.protocol.refusals import invalid, not_emulated
from amlstack.sandbox.store.store import JobError, JobRow, Store

if TYPE_CHECKING:
    from amlstack.sandbox.orchestration.parent import Parent

DISTRIBUTIONS = {"pytorch": "PyTorch", "mpi": "Mpi", "tensorflow": "TensorFlow", "ray": "Ray"}
_BOUND_KEYS = frozenset(
    {
        *("computeId", "display_name", "comment", "tags", "properties", "resources", "distribution", "limits", "task"),
        *("environment_variables", "queue_settings", "sampling_algorithm", "objective", "early_termination"),
        *("search_space", *parallel_step.INHERITED),
    }
)
"""The keys of a step whose bindings are looked up, beside inputs and outputs. Others are kept, as on Azure."""
_TEMPLATE = re.compile(r"\$\{\{\s*(name|output_name|default_datastore)\s*\}\}")


def step_body(node: PipelineStep, bound: BindingValues, name: str) -> Wire:
    """The ``properties`` of the child that is a step.

    Args:
        node: The step.
        bound: What its bindings mean.
        name: Name of the child.

    Raises:
        Refused: The sandbox cannot run it.
    """
    values = [f"{key} ({port.type})" for key, port in node.component.outputs.items() if port.literal]
    if values and not bound.draft:
        raise not_emulated(f"outputs that are values ({node.where}: {', '.join(values)}), and no step runs with one")
    step = bound.deep({key: value for key, value in node.body.items() if key in _BOUND_KEYS}, node.where)
    given = {key: bound.input(node, key) for key in node.component.inputs}
    wire: Wire = {
        "computeId": _compute(step, bound.properties, node),
        "inputs": {key: value for key, value in given.items() if value is not None},
        "outputs": {key: _output(node, bound, key, name) for key in node.component.outputs},
        "experimentName": bound.properties.get("experimentName"),
        "displayName": step.get("display_name") or node.name,
        "description": step.get("comment"),
        "parentJobName": bound.name,
        "tags": {key: str(value) for key, value in (step.get("tags") or {}).items()},
        "properties": _properties(node, step, bound.name, name),
    }
    if node.kind == "pipeline":
        # It has steps of its own, under the settings of the pipeline around it.
        settings = {**(bound.properties.get("settings") or {}), **(node.body.get("settings") or {})}
        wire |= {"jobType": "Pipeline", "componentId": node.component.id, "settings": settings}
    elif node.kind == "parallel":
        wire |= _parallel(node, step, wire)
    else:
        wire |= _command(node, step)
    return _filled(wire)


def _command(node: PipelineStep, step: Mapping[str, Any]) -> Wire:
    """The part of a command's body, or of a sweep's, whose trial is a command."""
    spec = node.component.spec
    variables = spec.get("environment_variables") or {}
    queue = {"queueSettings": _camel(step.get("queue_settings"))}
    what = {
        "codeId": pipeline_body.asset(spec["code"]) if spec.get("code") else None,
        "command": spec["command"],
        "environmentId": pipeline_body.asset(spec["environment"]),
        "distribution": _distribution(step.get("distribution") or spec.get("distribution")),
        "resources": _resources(step.get("resources") or spec.get("resources"), node.where),
    }
    if node.kind == "sweep":
        trial = _filled({**what, "environmentVariables": variables})
        return {"jobType": "Sweep", **queue, "trial": trial, **_sweep(step)}
    variables = {**variables, **(step.get("environment_variables") or {})}
    limits = _limits(step.get("limits"))
    return {"jobType": "Command", **queue, **what, "environmentVariables": variables, "limits": limits}


def _parallel(node: PipelineStep, step: Mapping[str, Any], wire: Wire) -> Wire:
    """The part of a parallel step's body, by that of any kind: one process on each node drives the workers there."""
    given = parallel_step.merged(step, node.component.spec)
    task, inputs = given["task"], wire["inputs"]
    parallel_step.check_task(task, f"{node.where}.task")
    split = parallel_step.split_input(given, node.component.inputs, node.where)
    if (inputs.get(split) or {}).get("mode") == "Direct":
        # The service's driver reads such a table from storage itself; this one reads it from a mount.
        inputs = {**inputs, split: {**inputs[split], "mode": "ReadOnlyMount"}}
    return {
        "jobType": "Command",
        "inputs": inputs,
        "properties": {**wire["properties"], parallel_step.PROPERTY: "true"},
        "codeId": pipeline_body.asset(task["code"]) if task.get("code") else None,
        "command": parallel_step.command(given, node.component.outputs, node.where),
        "environmentId": pipeline_body.asset(task["environment"]),
        "environmentVariables": given.get("environment_variables") or {},
        "distribution": {"distributionType": "PyTorch", "processCountPerInstance": 1},
        "resources": _resources(given.get("resources"), node.where),
        "limits": _limits(step.get("limits")),
    }


def _compute(step: Mapping[str, Any], pipeline: Mapping[str, Any], node: PipelineStep) -> str | None:
    """The compute of a step; a plain name, which only an input can hold, is one of the workspace."""
    settings = pipeline.get("settings") or {}
    named = step.get("computeId") or pipeline.get("computeId") or settings.get("default_compute")
    if isinstance(named, str) and named.lower() == "local":
        raise not_emulated(f"the compute 'local' ({node.where}): a pipeline's steps run on clusters")
    if named is None or str(named).rpartition("/")[2].lower() == "serverless":
        return None
    return str(named) if "/" in str(named) else f"{node.component.id.partition('/components/')[0]}/computes/{named}"


def _output(node: PipelineStep, bound: BindingValues, name: str, child: str) -> Wire:
    """Find where a step's output goes: where it says, where the pipeline's output says, else a folder of its own."""
    port, given = node.component.outputs[name], node.outputs.get(name) or {}
    uri, mode = given.get("uri"), given.get("mode")
    asset = {"assetName": given.get("name"), "assetVersion": given.get("version")}
    source = pipeline_body.sole_binding(str(given.get("value") or ""))
    if source is not None:
        if source.step is not None or source.side != "outputs":
            where = f"{node.where}.outputs.{name}"
            raise invalid(where, f"an output is bound to an output of the pipeline, not to '{source.text}'.")
        outer = (bound.properties.get("outputs") or {}).get(source.name) or {}
        uri, mode = uri or outer.get("uri"), mode or outer.get("mode")
        asset = {} if outer.get("assetName") else asset  # it is registered under that name alone
    store = str((bound.properties.get("settings") or {}).get("default_datastore") or DEFAULT_STORE).rsplit("/", 1)[-1]
    values = {"name": child, "output_name": name, "default_datastore": store}
    kind = "uri_file" if port.literal else str(given.get("job_output_type") or port.type)
    uri = output_uri(child, name, uri, store=store, kind=kind)
    uri = _TEMPLATE.sub(lambda found: values[found[1]], bound.text(uri, node.where))
    mode = wire_mode(mode) or port.mode
    kind = "uri_folder" if kind in ("path", "literal") else kind
    return _filled({"jobOutputType": kind, "uri": uri, "mode": mode, **asset})


def _properties(node: PipelineStep, step: Mapping[str, Any], parent: str, name: str) -> dict[str, str]:
    """A step's properties in run history, in the service's words."""
    return {
        **{key: str(value) for key, value in (step.get("properties") or {}).items()},
        "azureml.runsource": "azureml.StepRun",
        "azureml.pipelinerunid": parent,
        "azureml.pipeline": parent,
        "azureml.nodeid": name[:8],
        "azureml.moduleName": node.name,
        "azureml.moduleid": node.component.id.rsplit("/", 1)[-1],
    }


def _distribution(given: Mapping[str, Any] | None) -> Wire | None:
    if given is None:
        return None
    kind = str(given.get("distribution_type") or given.get("type"))
    rest = {key: _number(value) for key, value in given.items() if key not in ("type", "distribution_type")}
    return {"distributionType": DISTRIBUTIONS.get(kind.lower(), kind), **_camel(rest)}


def _resources(given: Mapping[str, Any] | None, where: str) -> Wire | None:
    if given is None:
        return None
    if not isinstance(given, dict):
        raise invalid(f"{where}.resources", "resources are an object.")
    wire = {camel(key): value if key == "properties" else _camel(value) for key, value in given.items()}
    for key in ("instanceCount", "maxInstanceCount"):
        if key in wire:
            wire[key] = _number(wire[key])
    arguments = wire.get("dockerArgs")
    if isinstance(arguments, list):
        wire["dockerArgs"] = " ".join(arguments)
    return wire


def _limits(limits: Mapping[str, Any] | None) -> Wire | None:
    if not limits or limits.get("timeout") is None:
        return None
    return {"jobLimitsType": "Command", "timeout": _duration(limits["timeout"])}


def _sweep(step: Mapping[str, Any]) -> Wire:
    """A sweep step's own part, in the words of a sweep job."""
    limits = dict(step.get("limits") or {})
    algorithm = step.get("sampling_algorithm") or "random"
    algorithm = {"type": algorithm} if isinstance(algorithm, str) else dict(algorithm)
    kind = str(algorithm.pop("type", None) or algorithm.pop("sampling_algorithm_type", "random"))
    policy = step.get("early_termination")
    return {
        "searchSpace": step.get("search_space") or {},
        "samplingAlgorithm": {"samplingAlgorithmType": kind.capitalize(), **_camel(algorithm)},
        "objective": _camel(step.get("objective") or {}),
        "limits": {
            "jobLimitsType": "Sweep",
            **{camel(key): _duration(value) if "timeout" in key else _number(value) for key, value in limits.items()},
        },
        "earlyTermination": None if policy is None else _policy(policy),
    }


def _policy(policy: Mapping[str, Any]) -> Wire:
    """A policy; a file says its ``type``, azure-ai-ml the wire's ``policy_type``."""
    rest = {key: value for key, value in policy.items() if key not in ("type", "policy_type")}
    kind = str(policy.get("policy_type") or policy.get("type") or "")
    return {"policyType": kind[:1].upper() + camel(kind)[1:], **_camel(rest)}


def _duration(value: Any) -> str:
    """A time limit; a whole number counts seconds."""
    text = str(value)
    return f"PT{text}S" if re.fullmatch(r"\d+", text) else text


def _number(value: Any) -> Any:
    """A count; one that was bound comes as text."""
    return int(value) if isinstance(value, str) and re.fullmatch(r"-?\d+", value.strip()) else value


def _camel(value: Any) -> Any:
    return {camel(key): _camel(each) for key, each in value.items()} if isinstance(value, dict) else value


def _filled(wire: Wire) -> Wire:
    return {key: value for key, value in wire.items() if value is not None}


def drafts(store: Store, name: str, properties: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The bodies that a pipeline's steps would have, to be checked before it is taken; outputs of steps are made up.

    Raises:
        Refused: The pipeline does not hold together.
    """
    properties = pipeline_body.complete_body(store, properties)
    bound = BindingValues(name, properties, draft=True)
    for node in pipeline_body.read(store, properties).values():
        yield node.where, step_body(node, bound, node.name)


def advance(parent: Parent) -> None:
    """Starts the steps that can start, ends the pipeline when nothing is left to do."""
    properties = pipeline_body.complete_body(parent.store, parent.job.properties)
    wanted = pipeline_body.read(parent.store, properties)
    settings = properties.get("settings") or {}
    goes_on = str(settings.get("continue_on_step_failure", True)).lower() != "false"
    failed = {place: row for place, row in parent.children.items() if row.status in ("Failed", "Canceled")}
    if failed and not goes_on:
        for place in parent.active:
            parent.cancel(place)
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
    register(parent.store, parent.job, {name: uri for name, (_, uri) in outputs_of(parent.store, parent.job).items()})
    parent.note("all steps completed")
    parent.end("Completed")


def pipeline_outputs(store: Store, parent: JobRow, children: Mapping[str, JobRow]) -> dict[str, str]:
    """The locations of a pipeline's outputs, as far as the steps that write them were made: output → URI."""
    found = {}
    for name, step in (pipeline_body.complete_body(store, parent.properties).get("jobs") or {}).items():
        if name not in children or not isinstance(step, dict):
            continue
        for port, output in (step.get("outputs") or {}).items():
            source = pipeline_body.sole_binding(str(output.get("value") or "")) if isinstance(output, dict) else None
            wire = _written(store, children[name]).get(port)
            if source is not None and wire is not None:
                found[source.name] = str(wire.get("uri") or "")
    return found


def _done(parent: Parent, step: str) -> bool:
    return step in parent.children and parent.children[step].status == "Completed"


def _start(parent: Parent, node: PipelineStep, properties: Mapping[str, Any]) -> None:
    made = {place: {**row.properties, "outputs": _written(parent.store, row)} for place, row in parent.children.items()}
    # A GUID, as Azure ML gives one; always the same for one step of one run.
    name = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{parent.job.arm_id.lower()}/{node.name}"))
    body = step_body(node, BindingValues(parent.job.name, properties, made), name)
    parent.make(node.name, name, body)
    parent.note(f"step {node.name} is job {name}")


def _written(store: Store, child: JobRow) -> dict[str, Any]:
    """A child's outputs; a sweep's are its best trial's."""
    if child.properties.get("jobType") == "Sweep":
        best = sweep.best_trial(store, child)
        child = child if best is None else best[0]
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
    storage, here = Storage(parent.store, parent.job.workspace), inputs_of(parent.store, parent.job, OUTPUTS)
    for name, uri in pipeline_outputs(parent.store, parent.job, parent.children).items():
        if name in here:
            continue
        target = parent.folder / "outputs" / name
        try:
            storage.fetch(storage.locate(uri, f"The output {name!r}"), target, f"The output {name!r}", link=True)
        except (RefusedError, FileExistsError) as error:
            parent.note(f"output {name}: {error}")


_ASSET = re.compile(
    r"azureml://locations/[^/]+/workspaces/[^/]+/(?:data|models)/azureml_(?P<job>.+)_output_(?:data|model)_(?P<name>.+)/versions/1"
)
_OF_RUN = re.compile(r"runs:/(?P<job>[^/]+)/(?P<path>.*)")
ARTIFACTS = "artifacts"
"""The name in `azureml://jobs/…/outputs/` of the files that a run keeps by itself."""
_SHORT = re.compile(r"azureml://datastores/(?P<store>[^/]+)/paths/(?P<path>.*)")


def outputs_of(store: Store, job: JobRow) -> dict[str, tuple[str, str]]:
    """The outputs of a job that have a place: name → (type as in a body, URI in its long form)."""
    declared = job.properties.get("outputs") or {}
    if job.properties.get("jobType") == "Pipeline":
        places = pipeline_outputs(store, job, store.children(job.id))
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


def resolve_output(store: Store, workspace: str, asset: str) -> tuple[str, str] | None:
    """Type and URI of the output that an id names; None for an id of something else."""
    found = _ASSET.fullmatch(asset)
    job = None if found is None else store.jobs.find(workspace, found["job"])
    return None if found is None or job is None else outputs_of(store, job).get(found["name"])


def registered_address(store: Store, workspace: str, uri: str) -> str:
    """The address that an asset gets which is registered from a job's files: where they lie, in its long form.

    Args:
        store: All state.
        workspace: Id of the workspace.
        uri: ``azureml://jobs/{job}/outputs/{output}[/paths/{path}]``, ``runs:/{job}/{path}``; anything else, and what
            names no job or no output, stays as it is.
    """
    found = JOB_OUTPUT.fullmatch(uri) or _OF_RUN.fullmatch(uri)
    job = None if found is None else store.jobs.find(workspace, found["job"])
    if found is None or job is None:
        return uri
    output = found.groupdict().get("output", ARTIFACTS)
    path = found["path"] or ""
    if output == ARTIFACTS:
        return _long(job, f"azureml://datastores/{ARTIFACT_STORE}/paths/{artifact_prefix(job.name)}{path}")
    known = outputs_of(store, job).get(output)
    return uri if known is None else f"{known[1].rstrip('/')}/{path}"


def _long(job: JobRow, uri: str) -> str:
    """``azureml://datastores/…`` with its workspace, as the service answers it."""
    found = _SHORT.fullmatch(uri)
    if found is None:
        return uri
    words = job.workspace.split("/")
    place = f"subscriptions/{words[2]}/resourcegroups/{words[4]}/workspaces/{words[8]}"
    return f"azureml://{place}/datastores/{found['store']}/paths/{found['path']}"
