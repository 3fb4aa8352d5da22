"""A pipeline, and a schedule that starts one, as the bodies that Azure's REST API takes, with the steps' components.

A step of the wire refers to a registered component. azure-ai-ml registers what stands in a pipeline's own file, and the
component files it names, as versions of one anonymous component; so do we, under the same ids. Each kind of step is a
node of its own form. An inline step declares no inputs and outputs; they follow from what it is given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeGuard

from amlstack.base.text import snake
from jobs.model.job import NO_ENVIRONMENT, RESOURCE_FIELDS, Component, Job, Port, asset
from jobs.model.pipeline import (
    AnyStep,
    BareOutput,
    Cron,
    PassthroughComponent,
    PassthroughStep,
    Pattern,
    Pipeline,
    Recurrence,
    Schedule,
    Step,
    SweepStep,
    port_literals,
)
from jobs.values import Input, Output, Scalar
from jobs.wire import passthrough
from jobs.wire.command import (
    INPUT_MODES,
    PREFIX,
    Refs,
    Rendered,
    body,
    identity_body,
    input_body,
    output_body,
    plain,
    services_body,
    some,
)
from jobs.wire.component import component_body, component_id, sweep_node_keys
from jobs.wire.keys import JOB
from jobs.wire.passthrough import builtin, own_keys, passthrough_component_body

BOUND = re.compile(r"\$\{\{\s*parent\.(?P<path>[^}]+?)\s*\}\}")
"""``${{parent.inputs.x}}``, ``${{parent.outputs.x}}``, ``${{parent.jobs.STEP.outputs.y}}``, the whole text."""

Kind = tuple[str, str | None]
"""Type and mode of what a binding refers to."""
FOLDER: Kind = ("uri_folder", None)


def inner_pipeline(component: PassthroughComponent, compute: str | None = None) -> Pipeline:
    """A pipeline component as the pipeline that its steps see.

    Args:
        component: Of kind pipeline.
        compute: The cluster of steps that name none.
    """
    outputs: dict[str, Output | None] = {
        name: Output.model_validate({"type": asset(port)}) for name, port in component.outputs.items()
    }
    return Pipeline.model_construct(
        jobs=component.jobs, inputs=port_literals(component.inputs), outputs=outputs, compute=compute
    )


def refs_below(steps: Mapping[str, Refs], name: str) -> dict[str, Refs]:
    """The references of the steps of a pipeline that is a step itself."""
    prefix = f"{name}.jobs."
    return {key.removeprefix(prefix): each for key, each in steps.items() if key.startswith(prefix)}


def literal_type(value: Scalar) -> str:
    """The type of a literal, in a component's words."""
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case _:
            return "string"


def input_ports(pipeline: Pipeline, step: Job | PassthroughStep) -> dict[str, Port]:
    """The inputs of an inline step, as its component declares them."""
    return {name: _input_port(pipeline, value) for name, value in step.inputs.items()}


def output_ports(pipeline: Pipeline, step: Job | PassthroughStep) -> dict[str, Port]:
    """The outputs of an inline step, as its component declares them."""
    return {name: _port(*_output_kind(pipeline, value)) for name, value in step.outputs.items()}


def _input_port(pipeline: Pipeline, value: Input | Scalar) -> Port:
    if isinstance(value, Input):
        return _port(value.type, value.mode)
    if isinstance(value, str) and BOUND.fullmatch(value):
        return _port(*bound_kind(pipeline, value))
    return Port(type=literal_type(value), default=value)


def _port(kind: str, mode: str | None) -> Port:
    return Port(type=kind, mode=mode)


def bound_kind(pipeline: Pipeline, binding: str, depth: int = 0) -> Kind:
    """Type and mode of what a binding refers to; a folder where it refers to nothing, which is found elsewhere."""
    match = BOUND.fullmatch(binding)
    path = match["path"].split(".") if match and depth < 10 else []
    match path:
        case ["inputs", name]:
            value = pipeline.inputs.get(name)
            if isinstance(value, Input):
                return value.type, value.mode
            return FOLDER if value is None else (literal_type(value), None)
        case ["outputs", name]:
            output = pipeline.outputs.get(name)
            return FOLDER if output is None else (output.type, output.mode)
        case ["jobs", step, "outputs", name]:
            return _output_of_step(pipeline, step, name, depth), None
        case ["jobs", step, "inputs", name]:
            return _input_of_step(pipeline, step, name, depth), None
        case _:
            return FOLDER


def _output_of_step(pipeline: Pipeline, name: str, output: str, depth: int) -> str:
    step = pipeline.jobs.get(name)
    if step is None:
        return FOLDER[0]
    if step.kind == "automl":
        return "mltable"  # whatever automated training writes, azure-ai-ml takes it for a table
    if port := _declared(step, "outputs").get(output):
        return port.type
    return _output_kind(pipeline, step.outputs.get(output), depth)[0]


def _input_of_step(pipeline: Pipeline, name: str, of: str, depth: int) -> str:
    step = pipeline.jobs.get(name)
    if step is None:
        return FOLDER[0]
    if port := _declared(step, "inputs").get(of):
        return port.type
    value = step.inputs.get(of)
    if isinstance(value, Input):
        return value.type
    if isinstance(value, str) and BOUND.fullmatch(value):
        return bound_kind(pipeline, value, depth + 1)[0]
    return FOLDER[0] if value is None else literal_type(value)


def _declared(step: AnyStep, side: str) -> Mapping[str, Port]:
    """The inputs or outputs that a step's component declares; none for a job, and for a registered component."""
    return getattr(step.runs, side, {}) if step.RUNS else {}


def _output_kind(pipeline: Pipeline, value: Output | None, depth: int = 0) -> Kind:
    if value is None:
        return FOLDER
    bound = value.path is not None and BOUND.fullmatch(value.path)
    if bound and not {"type", "mode"} & value.model_fields_set:
        return bound_kind(pipeline, value.path or "", depth + 1)
    return value.type, value.mode


_NOT_OF_A_NODE = frozenset({
    "name", "display_name", "description", "experiment_name", "tags", "properties", "parent_job_name",
    "command", "code", "environment", "inputs", "outputs", *RESOURCE_FIELDS,
})  # fmt: skip
"""Keys that a step's component or its pipeline has, and those that its node has in other words than a command body."""
OF_A_NODE = tuple(sorted(key.wire for key in JOB if key.field not in _NOT_OF_A_NODE))
NOT_CLUSTERS = ("local", "serverless")
_RAW = ("environmentVariables", "computeId")
_VERSIONED = re.compile(r"azureml:(?P<name>[^/:@]+):(?P<version>.+)")


def _inline(step: Job, name: str, component: str | None, refs: Refs) -> dict[str, Any]:
    command = _command(step, step.inputs, step.outputs, {}, refs)
    return _filled({**command, **_named(name, "command", step, "YAML.JOB"), "componentId": component})


def _step(step: Step, name: str, component: str | None, refs: Refs) -> dict[str, Any]:
    source, component, rendered = _of_its_component(step, component, refs)
    return _filled({**rendered, **_named(name, "command", step, source), "componentId": component, **step.extra})


def _sweep_step(step: SweepStep, name: str, component: str | None, refs: Refs) -> dict[str, Any]:
    source, component, rendered = _of_its_component(step, component, refs)
    kept: dict[str, Any] = {key: rendered[key] for key in ("computeId", "inputs", "outputs") if key in rendered}
    return _filled({**kept, **sweep_node_keys(step), **_named(name, "sweep", step, source),
                    "trial": {"componentId": component}}, keep=_SWEEP)  # fmt: skip


def _passthrough(step: PassthroughStep, name: str, component: str | None, refs: Refs) -> dict[str, Any]:
    """The node of a parallel or spark step, or of a pipeline in the pipeline."""
    named, ports = step.component, {}
    if step.kind == "automl":
        outputs = {key: _output(value) for key, value in step.outputs.items() if _is_sent(value)}
        return {"name": name, **passthrough.automl_node(step, outputs, refs)}
    if named is None:
        source, component = "BUILTIN", builtin(step)
    elif isinstance(named, str):
        source, component = _remote(named), registered_id(named, refs)
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
"""Makes a step the node of a pipeline's body, by the step's kind.

It takes the step, its launcher lowered; its name; the id of the component that is registered for it, None where it
names a registered one or has none; and what its references point to.
"""


def _of_its_component(
    step: Step | SweepStep, component: str | None, refs: Refs
) -> tuple[str, str | None, dict[str, Any]]:
    """The source of a step's component, its id, and what the node takes of the command."""
    named = step.runs
    if isinstance(named, str):
        source, ports, component = _remote(named), {}, registered_id(named, refs)
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


def registered_id(named: str, refs: Refs) -> str:
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
    """The keys that a step's node takes of its command body, in the spelling of nodes."""
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


StepRefs = Mapping[str, Refs]


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
        componentId=registered_id(pipeline.component, refs) if pipeline.component else None,
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
            inner, below = (
                _nodes(inner_pipeline(component), refs, refs_below(steps, name)) if component.jobs else ({}, {})
            )
            components |= {f"{name}.jobs.{key}": each for key, each in below.items()}
            rendered = passthrough_component_body(component, own, inner)
        if rendered is not None:
            components[name] = rendered
        step, registered = pipeline.jobs[name], None if rendered is None else component_id(rendered, refs)
        nodes[name] = _NODES[type(step)](step, name, registered, own)
    return nodes, components


def component_of(pipeline: Pipeline, name: str) -> Component | PassthroughComponent | str | None:
    """The component of a step; an inline step's is made from what it is given, automated training has none."""
    step: Any = pipeline.jobs[name]
    component: Component | PassthroughComponent | str | None = step.runs
    if step.RUNS:
        if isinstance(component, str | None) or component.declares_ports or component.inputs or component.outputs:
            return component
        ports = {"inputs": input_ports(pipeline, step), "outputs": output_ports(pipeline, step)}
        return component.model_copy(update=ports)
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


def render_schedule(schedule: Schedule, started: Rendered | None) -> Rendered:
    """Render a schedule.

    Args:
        schedule: The schedule.
        started: What it starts; None for a job that ran before.
    """
    if started is None:
        ran_before = str(schedule.create_job).removeprefix(PREFIX)
        definition = {"jobType": "Pipeline", "sourceJobId": ran_before, "experimentName": "", "isArchived": False}
    else:
        source = schedule.source_job.removeprefix(PREFIX) if schedule.source_job else None
        definition = some(**started.body["properties"], sourceJobId=source)
    properties = some(
        displayName=schedule.display_name,
        description=schedule.description,
        isEnabled=schedule.is_enabled,
        tags=dict(schedule.tags),
        properties=dict(schedule.properties),
        action={"actionType": "CreateJob", "jobDefinition": definition},
        trigger=_trigger(schedule.trigger),
    )
    return Rendered({"properties": properties}, started.components if started else {})


def _trigger(trigger: Cron | Recurrence) -> dict[str, Any]:
    """A trigger as the wire has it."""
    payload: dict[str, Any] = {"timeZone": trigger.time_zone}
    for key, value in (("startTime", trigger.start_time), ("endTime", trigger.end_time)):
        if value is not None:
            payload[key] = datetime.fromisoformat(value).strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(trigger, Cron):
        return {"triggerType": "Cron", "expression": trigger.expression, **payload}
    pattern = trigger.schedule or Pattern(hours=(), minutes=())
    days = {"weekDays": pattern.week_days, "monthDays": pattern.month_days}
    return {
        "triggerType": "Recurrence",
        "frequency": trigger.frequency,
        "interval": trigger.interval,
        "schedule": {
            "hours": list(pattern.hours),
            "minutes": list(pattern.minutes),
            **{key: list(value) for key, value in days.items() if value},
        },
        **payload,
    }
