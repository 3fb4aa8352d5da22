"""The inputs and outputs that an inline step declares, worked out from what it is given."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jobs.model.component import Port, asset
from jobs.model.passthrough import literals
from jobs.model.pipeline import Pipeline
from jobs.model.values import Input, Output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobs.model.job import Job
    from jobs.model.passthrough import PassthroughComponent, PassthroughStep
    from jobs.model.pipeline import AnyStep
    from jobs.model.values import Scalar
    from jobs.wire.references import Refs

BOUND = re.compile(r"\$\{\{\s*parent\.(?P<path>[^}]+?)\s*\}\}")
"""``${{parent.inputs.x}}``, ``${{parent.outputs.x}}``, ``${{parent.jobs.STEP.outputs.y}}``, the whole text."""

Kind = tuple[str, str | None]
"""Type and mode of what a binding refers to."""
FOLDER: Kind = ("uri_folder", None)


def inside(component: PassthroughComponent, compute: str | None = None) -> Pipeline:
    """A pipeline component as the pipeline that its steps see.

    Args:
        component: Of kind pipeline.
        compute: The cluster of steps that name none.
    """
    outputs: dict[str, Output | None] = {
        name: Output.model_validate({"type": asset(port)}) for name, port in component.outputs.items()
    }
    return Pipeline.model_construct(
        jobs=component.jobs, inputs=literals(component.inputs), outputs=outputs, compute=compute
    )


def under(steps: Mapping[str, Refs], name: str) -> dict[str, Refs]:
    """What is known of the steps of a pipeline that is a step itself."""
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
    """What an inline step reads, as its component declares it."""
    return {name: _input_port(pipeline, value) for name, value in step.inputs.items()}


def output_ports(pipeline: Pipeline, step: Job | PassthroughStep) -> dict[str, Port]:
    """What an inline step writes, as its component declares it."""
    return {name: _port(*_output(pipeline, value)) for name, value in step.outputs.items()}


def _input_port(pipeline: Pipeline, value: Input | Scalar) -> Port:
    if isinstance(value, Input):
        return _port(value.type, value.mode)
    if isinstance(value, str) and BOUND.fullmatch(value):
        return _port(*source(pipeline, value))
    return Port(type=literal_type(value), default=value)


def _port(kind: str, mode: str | None) -> Port:
    return Port(type=kind, mode=mode)


def source(pipeline: Pipeline, binding: str, depth: int = 0) -> Kind:
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
            return _of_step(pipeline, step, name, depth), None
        case ["jobs", step, "inputs", name]:
            return _input_of_step(pipeline, step, name, depth), None
        case _:
            return FOLDER


def _of_step(pipeline: Pipeline, name: str, output: str, depth: int) -> str:
    step = pipeline.jobs.get(name)
    if step is None:
        return FOLDER[0]
    if step.kind == "automl":
        return "mltable"  # whatever automated training writes, azure-ai-ml takes it for a table
    if port := _declared(step, "outputs").get(output):
        return port.type
    return _output(pipeline, step.outputs.get(output), depth)[0]


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
        return source(pipeline, value, depth + 1)[0]
    return FOLDER[0] if value is None else literal_type(value)


def _declared(step: AnyStep, side: str) -> Mapping[str, Port]:
    """What a step's component declares; nothing for a job, and for a registered component."""
    return getattr(step.runs, side, {}) if step.RUNS else {}


def _output(pipeline: Pipeline, value: Output | None, depth: int = 0) -> Kind:
    if value is None:
        return FOLDER
    bound = value.path is not None and BOUND.fullmatch(value.path)
    if bound and not {"type", "mode"} & value.model_fields_set:
        return source(pipeline, value.path or "", depth + 1)
    return value.type, value.mode
