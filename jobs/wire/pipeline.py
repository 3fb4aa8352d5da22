"""A pipeline as the body that Azure's REST API takes, and the components that its steps run.

A step of the wire refers to a registered component. azure-ai-ml registers what stands in a pipeline's own file, and the
component files it names, as versions of one anonymous component; so do we, under the same ids.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from amlstack.base.spelling import snake
from jobs.model.component import NO_ENVIRONMENT, Component
from jobs.model.job import Job
from jobs.model.passthrough import PassthroughComponent, PassthroughStep
from jobs.model.resources import RESOURCE_FIELDS
from jobs.model.step import BareOutput, SweepStep
from jobs.model.values import Input, Output
from jobs.wire import automl
from jobs.wire.command import (
    INPUT_MODES,
    Rendered,
    body,
    identity_body,
    input_body,
    output_body,
    plain,
    services_body,
    some,
)
from jobs.wire.component import component_body, component_id, resources_file
from jobs.wire.keys import JOB
from jobs.wire.passthrough import builtin, own_keys, passthrough_component_body
from jobs.wire.pipeline_ports import BOUND, input_ports, inside, output_ports, under
from jobs.wire.references import PREFIX, Refs
from jobs.wire.sweep import early_termination, floored

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobs.model.component import Port
    from jobs.model.pipeline import AnyStep, Pipeline
    from jobs.model.values import Scalar

    StepRefs = Mapping[str, Refs]

_NOT_OF_A_NODE = frozenset({
    "name", "display_name", "description", "experiment_name", "tags", "properties", "parent_job_name",
    "command", "code", "environment", "inputs", "outputs", *RESOURCE_FIELDS,
})  # fmt: skip
"""What a step's component or its pipeline has, and what its node has in other words than a command body."""
OF_A_NODE = tuple(sorted(key.wire for key in JOB if key.field not in _NOT_OF_A_NODE))
NOT_CLUSTERS = ("local", "serverless")
_RAW = ("environmentVariables", "computeId")
_VERSIONED = re.compile(r"azureml:(?P<name>[^/:@]+):(?P<version>.+)")


def render_pipeline(pipeline: Pipeline, refs: Refs, steps: StepRefs) -> Rendered:
    """Render a pipeline whose steps' launchers are lowered already (`PipelinePlan.enriched`).

    Args:
        pipeline: The pipeline.
        refs: What its references point to.
        steps: For each step where its code and environment are; those without one use ``refs``.
    """
    local = pipeline.compute in NOT_CLUSTERS
    nodes, components = _nodes(pipeline, refs, steps)
    properties = some(
        jobType="Pipeline",
        displayName=pipeline.display_name or None,
        description=pipeline.description,
        experimentName=pipeline.experiment_name or None,
        isArchived=False,
        tags=dict(pipeline.tags),
        properties=dict(pipeline.properties),
        componentId=_component(pipeline.component, refs) if pipeline.component else None,
        jobs=nodes,
        settings=_settings(pipeline, refs),
        inputs={name: input_body(value, refs) for name, value in pipeline.inputs.items() if value != ""},
        outputs={name: output_body(value or Output()) for name, value in pipeline.outputs.items()},
        computeId=pipeline.compute if local or pipeline.compute is None else refs.compute_id(pipeline.compute),
        identity=identity_body(pipeline.identity),
        services=services_body(pipeline.services or None),
    )
    return Rendered({"properties": properties}, components)


def _nodes(pipeline: Pipeline, refs: Refs, steps: StepRefs) -> tuple[dict[str, Any], dict[str, Any]]:
    """The steps of a pipeline as nodes, and the components that they name; each is rendered once, inner ones first."""
    nodes: dict[str, Any] = {}
    components: dict[str, Any] = {}
    for name in pipeline.jobs:
        component, own = component_of(pipeline, name), steps.get(name, refs)
        rendered = None
        if isinstance(component, Component):
            rendered = component_body(component, own)
        elif isinstance(component, PassthroughComponent):
            inner, below = _nodes(inside(component), refs, under(steps, name)) if component.jobs else ({}, {})
            components |= {f"{name}.jobs.{key}": each for key, each in below.items()}
            rendered = passthrough_component_body(component, own, inner)
        if rendered is not None:
            components[name] = rendered
        nodes[name] = _node(pipeline, name, None if rendered is None else component_id(rendered, refs), own)
    return nodes, components


def component_of(pipeline: Pipeline, name: str) -> Component | PassthroughComponent | str | None:
    """The component of a step; an inline step's is made from what it is given, automated training has none."""
    step = pipeline.jobs[name]
    if isinstance(step, PassthroughStep) and isinstance(step.component, PassthroughComponent) and step.component.inline:
        if step.component.inputs or step.component.outputs:
            return step.component
        ports = {"inputs": input_ports(pipeline, step), "outputs": output_ports(pipeline, step)}
        return step.component.model_copy(update=ports)
    if not isinstance(step, Job):
        return cast("Component | PassthroughComponent | str | None", step.runs)
    return Component(
        command=step.command,
        environment=step.environment,
        code=step.code,
        launcher=step.launcher,
        description=step.description,
        tags=step.tags,
        inputs=input_ports(pipeline, step),
        outputs=output_ports(pipeline, step),
        inline=True,
        **{field: getattr(step, field) for field in RESOURCE_FIELDS if field != "resource_properties"},
    )


def _node(pipeline: Pipeline, name: str, component: str | None, refs: Refs) -> dict[str, Any]:
    step = pipeline.jobs[name]
    source = "YAML.JOB"
    if isinstance(step, Job):
        return _filled({**_command(step, step.inputs, step.outputs, {}, refs), **_named(name, "command", step, source),
                        "componentId": component})  # fmt: skip
    if isinstance(step, PassthroughStep):
        return _other(step, name, component, refs)
    named = step.runs
    if isinstance(named, Component):
        source = "YAML.JOB" if named.inline else "YAML.COMPONENT"
        job, ports = step.job_of(named), named.inputs
    else:
        source = _remote(named)
        job, ports = step.job_of(Component(command="", environment=NO_ENVIRONMENT)), {}
        component = _component(named, refs)
    rendered = _command(job, step.inputs, step.outputs, ports, refs)
    if isinstance(step, SweepStep):
        kept: dict[str, Any] = {key: rendered[key] for key in ("computeId", "inputs", "outputs") if key in rendered}
        return _filled({**kept, **_sweep(step), **_named(name, "sweep", step, source),
                        "trial": {"componentId": component}}, keep=_SWEEP)  # fmt: skip
    return _filled({**rendered, **_named(name, "command", step, source), "componentId": component, **step.extra})


def _remote(named: str) -> str:
    return "REMOTE.REGISTRY" if named.startswith("azureml://registries/") else "REMOTE.WORKSPACE.COMPONENT"


def _other(step: PassthroughStep, name: str, component: str | None, refs: Refs) -> dict[str, Any]:
    """The node of a parallel or spark step, or of a pipeline in the pipeline."""
    named, ports = step.component, {}
    if step.kind == "automl":
        outputs = {key: _output(value) for key, value in step.outputs.items() if _is_sent(value)}
        return {"name": name, **automl.own_keys(step, outputs, refs)}
    if named is None:
        source, component = "BUILTIN", builtin(step)
    elif not isinstance(named, PassthroughComponent):
        source, component = _remote(named), _component(named, refs)
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


def _named(name: str, kind: str, step: AnyStep, source: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": kind,
        "display_name": step.display_name,
        "tags": dict(step.tags),
        "properties": dict(step.properties),
        "comment": None if isinstance(step, Job) else step.comment,
        "_source": source,
    }


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


def _sweep(step: SweepStep) -> dict[str, Any]:
    algorithm = step.sampling_algorithm
    queue = step.queue_settings
    return {
        "search_space": {name: _space(value) for name, value in step.search_space.items()} or None,
        "objective": step.objective.model_dump(exclude_none=True),
        "limits": some(
            max_total_trials=step.limits.max_total_trials,
            max_concurrent_trials=step.limits.max_concurrent_trials,
            timeout=floored(step.limits.timeout),
            trial_timeout=floored(step.limits.trial_timeout),
        ),
        "sampling_algorithm": algorithm
        if isinstance(algorithm, str | None)
        else algorithm.model_dump(exclude_none=True),
        "early_termination": _policy(early_termination(step.early_termination), step),
        "queue_settings": None if queue is None else queue.model_dump(exclude_none=True),
        "resources": None if step.resources is None else resources_file(step.resources),
        **step.extra,
    }


def _space(value: Any) -> Any:
    rendered = value.model_dump()
    return {key: list(inner) if isinstance(inner, tuple) else inner for key, inner in rendered.items()}


def _policy(rendered: dict[str, Any] | None, step: SweepStep) -> dict[str, Any] | None:
    """A policy; of a bandit's two slacks a step leaves out what a sweep job sends as zero."""
    if rendered is None:
        return None
    given = step.early_termination
    return {
        snake(key): value
        for key, value in rendered.items()
        if not (key.startswith("slack") and not getattr(given, snake(key), None))
    }


def _settings(pipeline: Pipeline, refs: Refs) -> dict[str, Any]:
    settings = pipeline.settings
    source = "REMOTE.WORKSPACE.JOB" if pipeline.component else "YAML.JOB"
    if settings is None:
        return {"_source": source}
    compute, store = settings.default_compute, settings.default_datastore
    if compute is not None and compute.lower() == "serverless":
        compute = "serverless"
    elif compute is not None:
        compute = refs.compute_id(compute)
    result = {
        "default_compute": compute,
        "default_datastore": None if store is None else _datastore(store, refs),
        "continue_on_step_failure": settings.continue_on_step_failure,
        "force_rerun": settings.force_rerun,
    }
    return some(**{**result, "_source": source, **plain(settings.extra)})


def _datastore(store: str, refs: Refs) -> str:
    name = store.removeprefix(PREFIX)
    return name if refs.workspace is None or "/" in name else f"{refs.workspace}/datastores/{name}"


def _component(named: str, refs: Refs) -> str:
    if named.startswith("azureml://"):
        return named
    match = _VERSIONED.fullmatch(named)
    if refs.workspace is not None and match:
        return f"{refs.workspace}/components/{match['name']}/versions/{match['version']}"
    return named if refs.workspace is not None and "@" in named else named.removeprefix(PREFIX)


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
