"""A pipeline as the body that Azure's REST API takes, and the components that its steps run.

A step of the wire refers to a registered component. azure-ai-ml registers what stands in a pipeline's own file, and the
component files it names, as versions of one anonymous component; so do we, under the same ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.model.component import Component
from jobs.model.passthrough import PassthroughComponent
from jobs.model.resources import RESOURCE_FIELDS
from jobs.model.values import Output
from jobs.wire.command import Rendered, identity_body, input_body, output_body, plain, services_body, some
from jobs.wire.component import component_body, component_id
from jobs.wire.passthrough import passthrough_component_body
from jobs.wire.pipeline_nodes import NOT_CLUSTERS, node, registered
from jobs.wire.pipeline_ports import input_ports, inside, output_ports, under
from jobs.wire.references import PREFIX, Refs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobs.model.pipeline import Pipeline

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
        componentId=registered(pipeline.component, refs) if pipeline.component else None,
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
        nodes[name] = node(pipeline.jobs[name], name, None if rendered is None else component_id(rendered, refs), own)
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
