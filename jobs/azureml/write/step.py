"""A step of a pipeline as its file has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.azureml.read.passthrough.steps import scaled
from jobs.azureml.write.command import command_file
from jobs.azureml.write.sweep import sweep_keys
from jobs.launchers import Custom
from jobs.model.component import NO_ENVIRONMENT, Component
from jobs.model.job import Job
from jobs.model.passthrough import PassthroughComponent, PassthroughStep
from jobs.model.step import BareOutput, Step, SweepStep
from jobs.model.values import Environment, Input
from jobs.wire.component import resources_file
from jobs.wire.pipeline_ports import BOUND

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from jobs.model.pipeline import AnyStep
    from jobs.model.values import Output


def _other(step: PassthroughStep) -> dict[str, Any]:
    """A parallel or spark step, or a pipeline in the pipeline, which names its file."""
    named = step.component
    result = {"type": step.kind, **_names(step)}
    bare = Job.model_validate({"command": "", "environment": NO_ENVIRONMENT, "inputs": step.inputs})
    result |= {key: each for key, each in _given(command_file(bare), step).items() if key == "inputs"}
    result |= _outputs(step.outputs) | {"compute": step.compute}
    result["identity"] = None if step.identity is None else step.identity.model_dump(exclude_none=True)
    if named is None:
        result |= step.spec
    elif isinstance(named, str):
        result |= {"component": named, **step.spec}
    elif named.kind == "pipeline":
        result |= {"component": named.source and named.source.file, **step.spec}
    elif named.inline and not named.inputs and not named.outputs and _same_inline(named):
        result |= {**_other_component(named), **step.spec}
    else:
        result |= {"component": {"type": step.kind, **_other_component(named)}, **step.spec}
    return {key: value for key, value in result.items() if value is not None}


def _same_inline(component: PassthroughComponent) -> bool:
    """Whether a component would be read as the same from the step itself."""
    conf = component.spec.get("conf") or {}
    return component.kind != "spark" or scaled(conf) == conf


def _other_component(component: PassthroughComponent) -> dict[str, Any]:
    environment = component.environment
    source = {
        "code": component.code.path if component.code else None,
        "environment": environment.model_dump(exclude_none=True)
        if isinstance(environment, Environment)
        else environment,
    }
    given = {key: value for key, value in source.items() if value is not None}
    result = {
        **{name: getattr(component, name) for name in ("display_name", "description", "tags", "properties")},
        "is_deterministic": component.is_deterministic,
        "inputs": {name: _port(port) for name, port in component.inputs.items()},
        "outputs": {name: _port(port) for name, port in component.outputs.items()},
        **component.spec,
        "$schema": component.schema_uri,
    }
    result |= {"task": {**component.spec.get("task", {}), **given}} if component.kind == "parallel" else given
    return {key: value for key, value in result.items() if value is not None and value not in ({}, [])}


def _names(step: Step | SweepStep | PassthroughStep) -> dict[str, Any]:
    return {name: getattr(step, name) for name in ("display_name", "tags", "properties", "comment") if
            getattr(step, name)}  # fmt: skip


def step_keys(step: AnyStep) -> dict[str, Any]:
    """A step of a pipeline."""
    return _WRITERS[type(step)](step)


def _inline(step: Job) -> dict[str, Any]:
    result = _given(command_file(step), step)
    del result["$schema"]
    if "resources" in result:
        result["resources"] = {key: value for key, value in (resources_file(step) or {}).items() if value != {}}
    return result | _outputs(step.outputs)


def _step(step: Step) -> dict[str, Any]:
    kept = ["environment_variables", "limits", "services"]
    kept += ["distribution"] if step.launcher is not None else []
    kept += ["resources"] if resources_file(step) is not None else []
    return {**_of_component(step, kept), **step.extra}


def _sweep_step(step: SweepStep) -> dict[str, Any]:
    return {**_of_component(step), **sweep_keys(step), **step.extra}


def _of_component(step: Step | SweepStep, kept: Sequence[str] = ()) -> dict[str, Any]:
    """What steps of a component have in common, and further keys of a command that their kind has."""
    named = step.runs
    whole = Component(command="", environment=NO_ENVIRONMENT) if isinstance(named, str) else named
    result = _given(command_file(step.job_of(whole.model_copy(update={"inputs": {}, "outputs": {}}))), step)
    file = {"type": step.kind, **_names(step), step.RUNS: named if isinstance(named, str) else _component(named)}
    keys = ("inputs", "compute", "identity", "queue_settings", *kept)
    return {**file, **{key: result[key] for key in keys if key in result}, **_outputs(step.outputs)}


_WRITERS: Mapping[type, Callable[..., dict[str, Any]]] = {
    Job: _inline,
    Step: _step,
    SweepStep: _sweep_step,
    PassthroughStep: _other,
}
"""The kinds of steps, one row each."""


def _given(result: dict[str, Any], step: AnyStep) -> dict[str, Any]:
    """The same with the modes of bound inputs, which a job on its own does not send."""
    for name, value in step.inputs.items():
        if isinstance(value, Input) and value.mode is not None:
            result["inputs"][name]["mode"] = value.mode
    return result


def _outputs(outputs: Mapping[str, Output | None]) -> dict[str, Any]:
    """Outputs of a step: bound with a text, named alone, or described."""
    if not outputs:
        return {}
    described = Job.model_validate(
        {
            "command": "",
            "environment": NO_ENVIRONMENT,
            "outputs": {name: value for name, value in outputs.items() if value is not None},
        }
    )
    result = command_file(described).get("outputs", {})
    for name, value in outputs.items():
        if value is None or isinstance(value, BareOutput):
            result[name] = None
        elif value.path is not None and BOUND.fullmatch(value.path) and not {"type", "mode"} & value.model_fields_set:
            result[name] = value.path
    return {"outputs": result}


def _component(component: Component) -> dict[str, Any]:
    if not isinstance(component.launcher, Custom):
        message = f"the {component.launcher.type} launcher is not lowered yet"
        raise TypeError(message)
    result = {
        "type": "command",
        **{name: getattr(component, name) for name in ("display_name", "description", "tags", "properties")},
        "inputs": {name: _port(port) for name, port in component.inputs.items()},
        "outputs": {name: _port(port) for name, port in component.outputs.items()},
        "command": component.command,
        "code": component.code.path if component.code else None,
        "environment": component.environment.model_dump(exclude_none=True)
        if isinstance(component.environment, Environment)
        else component.environment,
        "distribution": component.launcher.distribution.model_dump(exclude_none=True)
        if component.launcher.distribution
        else None,
        "resources": resources_file(component),
        "is_deterministic": None if component.is_deterministic else False,
        "additional_includes": list(component.additional_includes),
        **component.extra,
        "$schema": component.schema_uri,
    }
    return {key: value for key, value in result.items() if value is not None and value not in ({}, [])}


def _port(port: Any) -> dict[str, Any]:
    result = port.model_dump(exclude_none=True)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in result.items()}
