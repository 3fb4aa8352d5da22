"""From a step of a pipeline to the body of its child: a command job, a sweep, a pipeline, a parallel step's driver."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING, Any

from amlstack.base.text import camel
from amlstack.sandbox.files.datastores import DEFAULT, output_uri
from amlstack.sandbox.orchestration import parallel_step, pipeline_body
from amlstack.sandbox.orchestration.pipeline_body import MODES
from amlstack.sandbox.protocol.refusals import invalid, not_emulated

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.orchestration.pipeline_body import BindingValues, PipelineStep, Wire

DISTRIBUTIONS = {"pytorch": "PyTorch", "mpi": "Mpi", "tensorflow": "TensorFlow", "ray": "Ray"}
_TEMPLATE = re.compile(r"\$\{\{\s*(name|output_name|default_datastore)\s*\}\}")


def child_name(parent: str, step: str) -> str:
    """The name of a step's job: a GUID, as Azure ML gives one; always the same for one step of one run.

    Args:
        parent: ARM id of the pipeline's job.
        step: Name of the step.
    """
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{parent}/{step}"))


def body(node: PipelineStep, bound: BindingValues, *, parent: str, name: str) -> Wire:
    """The ``properties`` of the child that is a step.

    Args:
        node: The step.
        bound: What its bindings mean.
        parent: Name of the pipeline's job.
        name: Name of the child.

    Raises:
        Refused: The sandbox cannot run it.
    """
    if node.kind == "pipeline":
        return _pipeline(node, bound, parent=parent, name=name)
    step = bound.deep({key: value for key, value in node.body.items() if key not in ("inputs", "outputs")}, node.where)
    spec = node.component.spec
    if node.kind == "parallel":
        return _parallel(node, step, bound, parent=parent, name=name)
    resources = step.get("resources") or spec.get("resources")
    common = {
        **_of_any_kind(node, step, bound, parent=parent, name=name),
        "queueSettings": _camel(step.get("queue_settings")),
    }
    what = {
        "codeId": pipeline_body.asset(spec["code"]) if spec.get("code") else None,
        "command": spec["command"],
        "environmentId": pipeline_body.asset(spec["environment"]),
        "distribution": _distribution(step.get("distribution") or spec.get("distribution")),
        "resources": _resources(resources, node.where),
    }
    if node.kind == "sweep":
        variables = spec.get("environment_variables") or {}
        return _filled(
            {
                **common,
                "jobType": "Sweep",
                "trial": _filled({**what, "environmentVariables": variables}),
                **_sweep(step),
            }
        )
    own: Wire = {
        "jobType": "Command",
        "environmentVariables": {
            **(spec.get("environment_variables") or {}),
            **(step.get("environment_variables") or {}),
        },
        "limits": _limits(step.get("limits")),
    }
    return _filled({**common, **what, **own})


def _of_any_kind(node: PipelineStep, step: Mapping[str, Any], bound: BindingValues, *, parent: str, name: str) -> Wire:
    """The properties of a child that is a command, a sweep or a pipeline."""
    given = {key: bound.input(node, key) for key in node.component.inputs}
    return {
        "computeId": _compute(step, bound.properties, node.where),
        "inputs": {key: wire for key, wire in given.items() if wire is not None},
        "outputs": {key: _output(node, bound, key, name) for key in node.component.outputs},
        "experimentName": bound.properties.get("experimentName"),
        "displayName": step.get("display_name") or node.name,
        "description": step.get("comment"),
        "parentJobName": parent,
        "tags": {key: str(value) for key, value in (step.get("tags") or {}).items()},
        "properties": _properties(node, step, parent, name),
    }


def _pipeline(node: PipelineStep, bound: BindingValues, *, parent: str, name: str) -> Wire:
    """A step that is a pipeline: a job with steps of its own, under the settings of the pipeline around it."""
    own = ("inputs", "outputs", "jobs", "settings")
    step = bound.deep({key: value for key, value in node.body.items() if key not in own}, node.where)
    settings = {**(bound.properties.get("settings") or {}), **(node.body.get("settings") or {})}
    of_any_kind = _of_any_kind(node, step, bound, parent=parent, name=name)
    return _filled({**of_any_kind, "jobType": "Pipeline", "componentId": node.component.id, "settings": settings})


def _parallel(node: PipelineStep, step: Mapping[str, Any], bound: BindingValues, *, parent: str, name: str) -> Wire:
    """A parallel step: one process on each node drives the workers there."""
    given = parallel_step.merged(step, node.component.spec)
    task = given["task"]
    parallel_step.check_task(task, f"{node.where}.task")
    split = parallel_step.split_input(given, node.component.inputs, node.where)
    wire = _of_any_kind(node, step, bound, parent=parent, name=name)
    wire["properties"][parallel_step.PROPERTY] = "true"
    if (wire["inputs"].get(split) or {}).get("mode") == "Direct":
        # The service's driver reads such a table from storage itself; this one reads it from a mount.
        wire["inputs"][split] = {**wire["inputs"][split], "mode": "ReadOnlyMount"}
    return _filled(
        {
            **wire,
            "jobType": "Command",
            "codeId": pipeline_body.asset(task["code"]) if task.get("code") else None,
            "command": parallel_step.command(given, node.component.outputs, node.where),
            "environmentId": pipeline_body.asset(task["environment"]),
            "environmentVariables": given.get("environment_variables") or {},
            "distribution": {"distributionType": "PyTorch", "processCountPerInstance": 1},
            "resources": _resources(given.get("resources"), node.where),
            "limits": _limits(step.get("limits")),
        }
    )


def _compute(step: Mapping[str, Any], pipeline: Mapping[str, Any], where: str) -> str | None:
    settings = pipeline.get("settings") or {}
    named = step.get("computeId") or pipeline.get("computeId") or settings.get("default_compute")
    if isinstance(named, str) and named.lower() == "local":
        raise not_emulated(f"the compute 'local' ({where}): a pipeline's steps run on clusters")
    return None if named is None or str(named).lower() == "serverless" else str(named)


def _output(node: PipelineStep, bound: BindingValues, name: str, child: str) -> Wire:
    """Find where a step's output goes: where it says, where the pipeline's output says, else a folder of its own."""
    port, given = node.component.outputs[name], node.outputs.get(name) or {}
    uri, mode = given.get("uri"), given.get("mode")
    source = pipeline_body.whole(str(given.get("value") or ""))
    if source is not None:
        if source.step is not None or source.side != "outputs":
            where = f"{node.where}.outputs.{name}"
            raise invalid(where, f"an output is bound to an output of the pipeline, not to '{source.text}'.")
        outer = (bound.properties.get("outputs") or {}).get(source.name) or {}
        uri, mode = uri or outer.get("uri"), mode or outer.get("mode")
    store = str((bound.properties.get("settings") or {}).get("default_datastore") or DEFAULT).rsplit("/", 1)[-1]
    values = {"name": child, "output_name": name, "default_datastore": store}
    kind = str(given.get("job_output_type") or port.type)
    uri = output_uri(child, name, uri, store=store, kind=kind)
    uri = _TEMPLATE.sub(lambda found: values[found[1]], bound.text(uri, node.where))
    mode = MODES.get(str(mode), str(mode)) if mode else port.mode
    return _filled({"jobOutputType": "uri_folder" if kind in ("path", "literal") else kind, "uri": uri, "mode": mode})


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
