"""The steps of a pipeline as the nodes of its body, each kind in its own way."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeGuard

from amlstack.base.spelling import snake
from jobs.model.component import NO_ENVIRONMENT, Component
from jobs.model.job import Job
from jobs.model.passthrough import PassthroughStep
from jobs.model.resources import RESOURCE_FIELDS
from jobs.model.step import BareOutput, Step, SweepStep
from jobs.model.values import Input, Output
from jobs.wire import automl
from jobs.wire.command import INPUT_MODES, body, input_body, output_body
from jobs.wire.keys import JOB
from jobs.wire.passthrough import builtin, own_keys
from jobs.wire.pipeline_ports import BOUND
from jobs.wire.references import PREFIX, Refs
from jobs.wire.sweep import sweep_node_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jobs.model.component import Port
    from jobs.model.pipeline import AnyStep
    from jobs.model.values import Scalar

_NOT_OF_A_NODE = frozenset({
    "name", "display_name", "description", "experiment_name", "tags", "properties", "parent_job_name",
    "command", "code", "environment", "inputs", "outputs", *RESOURCE_FIELDS,
})  # fmt: skip
"""What a step's component or its pipeline has, and what its node has in other words than a command body."""
OF_A_NODE = tuple(sorted(key.wire for key in JOB if key.field not in _NOT_OF_A_NODE))
NOT_CLUSTERS = ("local", "serverless")
_RAW = ("environmentVariables", "computeId")
_VERSIONED = re.compile(r"azureml:(?P<name>[^/:@]+):(?P<version>.+)")


def node(step: AnyStep, name: str, component: str | None, refs: Refs) -> dict[str, Any]:
    """A step as the node of a pipeline's body.

    Args:
        step: The step, its launcher lowered.
        name: Its name in the pipeline.
        component: The id of the component that is registered for it; None where it names a registered one, or has none.
        refs: What its references point to.
    """
    return _NODES[type(step)](step, name, component, refs)


def _inline(step: Job, name: str, component: str | None, refs: Refs) -> dict[str, Any]:
    command = _command(step, step.inputs, step.outputs, {}, refs)
    return _filled({**command, **_named(name, "command", step, "YAML.JOB"), "componentId": component})


def _step(step: Step, name: str, component: str | None, refs: Refs) -> dict[str, Any]:
    source, component, rendered = _of_a_component(step, component, refs)
    return _filled({**rendered, **_named(name, "command", step, source), "componentId": component, **step.extra})


def _sweep_step(step: SweepStep, name: str, component: str | None, refs: Refs) -> dict[str, Any]:
    source, component, rendered = _of_a_component(step, component, refs)
    kept: dict[str, Any] = {key: rendered[key] for key in ("computeId", "inputs", "outputs") if key in rendered}
    return _filled({**kept, **sweep_node_keys(step), **_named(name, "sweep", step, source),
                    "trial": {"componentId": component}}, keep=_SWEEP)  # fmt: skip


def _passthrough(step: PassthroughStep, name: str, component: str | None, refs: Refs) -> dict[str, Any]:
    """The node of a parallel or spark step, or of a pipeline in the pipeline."""
    named, ports = step.component, {}
    if step.kind == "automl":
        outputs = {key: _output(value) for key, value in step.outputs.items() if _is_sent(value)}
        return {"name": name, **automl.own_keys(step, outputs, refs)}
    if named is None:
        source, component = "BUILTIN", builtin(step)
    elif isinstance(named, str):
        source, component = _remote(named), registered(named, refs)
    else:
        source, ports = "YAML.JOB" if named.inline else "YAML.COMPONENT", named.inputs
    compute = step.compute
    return _filled({
        **own_keys(step, refs),
        **_named(name, step.kind, step, source),
        "computeId": compute if compute is None or compute in NOT_CLUSTERS else refs.compute_id(compute),
        "inputs": {key: _input(value, ports.get(key), refs) for key, value in step.inputs.items()},
        "outputs": {key: _output(value) for key, value in step.outputs.items() if _is_sent(value)},
        "componentId": component,
    })  # fmt: skip


_NODES: Mapping[type, Callable[..., dict[str, Any]]] = {
    Job: _inline,
    Step: _step,
    SweepStep: _sweep_step,
    PassthroughStep: _passthrough,
}
"""The kinds of steps, one row each."""


def _of_a_component(
    step: Step | SweepStep, component: str | None, refs: Refs
) -> tuple[str, str | None, dict[str, Any]]:
    """Where a step's component was declared, its id, and what the node takes of the command."""
    named = step.runs
    if isinstance(named, str):
        source, ports, component = _remote(named), {}, registered(named, refs)
        job = step.job_of(Component(command="", environment=NO_ENVIRONMENT))
    else:
        source, ports, job = "YAML.JOB" if named.inline else "YAML.COMPONENT", named.inputs, step.job_of(named)
    return source, component, _command(job, step.inputs, step.outputs, ports, refs)


def _remote(named: str) -> str:
    return "REMOTE.REGISTRY" if named.startswith("azureml://registries/") else "REMOTE.WORKSPACE.COMPONENT"


def _named(name: str, kind: str, step: AnyStep, source: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": kind,
        "display_name": step.display_name,
        "tags": dict(step.tags),
        "properties": dict(step.properties),
        "comment": getattr(step, "comment", None),
        "_source": source,
    }


def registered(named: str, refs: Refs) -> str:
    """The id of a component that is registered already."""
    if named.startswith("azureml://"):
        return named
    match = _VERSIONED.fullmatch(named)
    if refs.workspace is not None and match:
        return f"{refs.workspace}/components/{match['name']}/versions/{match['version']}"
    return named if refs.workspace is not None and "@" in named else named.removeprefix(PREFIX)


def _command(
    job: Job,
    inputs: Mapping[str, Input | Scalar],
    outputs: Mapping[str, Output | None],
    ports: Mapping[str, Port],
    refs: Refs,
) -> dict[str, Any]:
    """What a step's node takes of its command body, in the spelling of nodes."""
    local = job.compute if job.compute in NOT_CLUSTERS else None
    rendered = body(job.model_copy(update={"compute": None}) if local else job, refs)["properties"]
    node: dict[str, Any] = {}
    for key in OF_A_NODE:
        if key in rendered:
            value = rendered[key]
            node[key if key == "computeId" else snake(key)] = value if key in _RAW else _snaked(value)
    if "services" in rendered:  # under the names that a person gave them
        node["services"] = {name: _snaked(service) for name, service in rendered["services"].items()}
    if node.get("distribution", {}).get("distribution_type") == "Ray":
        # azure-ai-ml has no model of Ray, so that its keys keep the spelling of the wire.
        rest = {key: value for key, value in rendered["distribution"].items() if key != "distributionType"}
        node["distribution"] = {"distribution_type": "Ray", **rest}
    if local:
        node["computeId"] = local
    if "resources" in rendered:
        properties = rendered["resources"].get("properties")
        node["resources"] = {**_snaked(rendered["resources"]), "properties": properties}
    node["inputs"] = {name: _input(value, ports.get(name), refs) for name, value in inputs.items()}
    node["outputs"] = {name: _output(value) for name, value in outputs.items() if _is_sent(value)}
    return node


def _input(value: Input | Scalar, port: Port | None, refs: Refs) -> dict[str, Any]:
    if isinstance(value, str) and not BOUND.search(value) and port is not None and not port.literal:
        uri = refs.data_uri(value, port.type) if refs.workspace is not None else value
        return {"uri": uri, "job_input_type": "uri_folder" if port.type == "path" else port.type}
    rendered: dict[str, Any] = _snaked(input_body(value, refs))
    if isinstance(value, Input) and value.path is not None and BOUND.search(value.path) and value.mode is not None:
        rendered["mode"] = INPUT_MODES[value.mode]
    return rendered


def _is_sent(value: Output | None) -> TypeGuard[Output]:
    return value is not None and not isinstance(value, BareOutput)


def _output(value: Output) -> dict[str, Any]:
    rendered = output_body(value)
    mode = {"mode": rendered["mode"]} if "mode" in rendered else {}
    if value.path is not None and BOUND.search(value.path):
        return {"value": value.path, "type": "literal", **mode}
    named = {"assetName": "name", "assetVersion": "version"}
    return {named.get(key, snake(key)): inner for key, inner in rendered.items()}


_SWEEP = frozenset({"search_space", "limits", "objective"})


def _snaked(value: Any) -> Any:
    """A piece of a body in the spelling of nodes; what a person named, ``properties``, stays."""
    if isinstance(value, dict):
        return {snake(key): inner if key == "properties" else _snaked(inner) for key, inner in value.items()}
    return value


def _filled(node: dict[str, Any], keep: frozenset[str] = frozenset()) -> dict[str, Any]:
    """A node without what is empty, as azure-ai-ml leaves it out."""
    result = {key: _without_empty(value) if key not in keep else value for key, value in node.items()}
    return {key: value for key, value in result.items() if value is not None and (value != {} or key in keep)}


def _without_empty(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    inner = {key: _without_empty(each) for key, each in value.items()}
    return {key: each for key, each in inner.items() if each is not None and each != {}}
