"""A pipeline's body read into its steps; what does not hold together is refused by name."""

from __future__ import annotations

import graphlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.arm.refusals import invalid, near, not_emulated
from amlstack.sandbox.parents import bindings, component_record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from amlstack.sandbox.parents.component_record import StepComponent
    from amlstack.sandbox.store.store import Store

STEP_TYPES = ("command", "sweep", "pipeline", "parallel")
"""The types of steps that the sandbox runs."""


@dataclass(frozen=True, slots=True)
class PipelineStep:
    """One step.

    Attributes:
        name: Its name in the pipeline.
        kind: One of `STEP_TYPES`.
        body: The step as the pipeline's body has it.
        component: What it runs.
        needs: Steps whose outputs it reads.
        where: Its place in the body.
    """

    name: str
    kind: str
    body: Mapping[str, Any]
    component: StepComponent
    needs: frozenset[str]
    where: str

    @property
    def inputs(self) -> Mapping[str, Any]:
        """What it is given, by input."""
        found: Mapping[str, Any] = self.body.get("inputs") or {}
        return found

    @property
    def outputs(self) -> Mapping[str, Any]:
        """What it declares of its outputs, by output."""
        found: Mapping[str, Any] = self.body.get("outputs") or {}
        return found


def whole(store: Store, properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """A pipeline's body with what its component says: steps, inputs with their defaults, outputs.

    Args:
        store: Where the components are registered.
        properties: ``body["properties"]`` of the pipeline; one that names no component stays as it is.

    Returns:
        The body; an optional input that is not given is there, and None.

    Raises:
        Refused: It names a component that is not there, or none of a pipeline.
    """
    named = properties.get("componentId")
    if not named:
        return properties
    component = component_record.find(store, str(named), "properties.componentId")
    if not component.is_pipeline:
        raise invalid("properties.componentId", f"'{named}' is no pipeline component.")
    inputs = {
        name: None if port.default is None else {"jobInputType": "literal", "value": port.default}
        for name, port in component.inputs.items()
    }
    outputs = {name: {"jobOutputType": port.type} for name, port in component.outputs.items()}
    return {
        **properties,
        "jobs": properties.get("jobs") or component.spec["jobs"],
        "inputs": {**inputs, **(properties.get("inputs") or {})},
        "outputs": {**outputs, **(properties.get("outputs") or {})},
    }


def read(store: Store, properties: Mapping[str, Any]) -> dict[str, PipelineStep]:
    """The steps of a pipeline by name, each behind those that it needs.

    Args:
        store: Where the components are registered.
        properties: ``body["properties"]`` of the pipeline, as `whole` completes it.

    Raises:
        Refused: A step's type, component, binding or input is none, or the steps wait for each other in a circle.
    """
    steps = properties.get("jobs") or {}
    if not steps:
        raise invalid("properties.jobs", "a pipeline without steps; at least one is needed.")
    found = {name: _node(store, name, step) for name, step in steps.items()}
    for node in found.values():
        _check(node, found, properties)
    try:
        order = tuple(
            graphlib.TopologicalSorter({name: sorted(node.needs) for name, node in found.items()}).static_order()
        )
    except graphlib.CycleError as error:
        circle = " → ".join(reversed(error.args[1]))
        raise invalid("properties.jobs", f"the steps wait for each other in a circle: {circle}.") from None
    return {name: found[name] for name in order}


def _node(store: Store, name: str, step: Any) -> PipelineStep:
    where = f"properties.jobs.{name}"
    if not isinstance(step, dict):
        raise invalid(where, "a step is an object.")
    kind = str(step.get("type") or "command").lower()
    if kind not in STEP_TYPES:
        raise not_emulated(f"steps of the type '{kind}' ({where}), only {', '.join(STEP_TYPES)}")
    component = (step.get("trial") or {}).get("componentId") if kind == "sweep" else step.get("componentId")
    if not isinstance(component, str) or not component:
        raise invalid(where, "the step names no component (componentId).")
    needs = {
        source.step
        for text in _texts(step)
        for source in bindings.sources(text)
        if source.step is not None and source.side == "outputs"
    }
    runs = component_record.find(store, component, where)
    of = component_record.kind_of(runs.spec)
    if of != ("command" if kind == "sweep" else kind):
        raise invalid(where, f"a step of the type '{kind}' names a component of the type '{of}' ('{component}').")
    return PipelineStep(name, kind, step, runs, frozenset(needs), where)


def _texts(value: Any) -> Iterator[str]:
    """All texts in a step, wherever a binding may stand."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def _check(node: PipelineStep, nodes: Mapping[str, PipelineStep], properties: Mapping[str, Any]) -> None:
    component = node.component
    for side, given, known in (
        ("inputs", node.inputs, component.inputs),
        ("outputs", node.outputs, component.outputs),
    ):
        for name in given:
            if name not in known:
                raise invalid(
                    f"{node.where}.{side}.{name}", f"the component has no {side[:-1]} '{name}'.{near(name, known)}"
                )
    varied = node.body.get("search_space") or {}
    for name, port in component.inputs.items():
        if name not in node.inputs and name not in varied and port.default is None and not port.optional:
            raise invalid(f"{node.where}.inputs.{name}", f"the required input '{name}' of the component is not given.")
    for text in _texts(node.body):
        for source in bindings.sources(text):
            _check_source(node, source, nodes, properties)


def _check_source(
    node: PipelineStep, source: bindings.BindingSource, nodes: Mapping[str, PipelineStep], properties: Mapping[str, Any]
) -> None:
    if source.side not in ("inputs", "outputs"):
        known = "a binding is parent.inputs.NAME, parent.outputs.NAME or parent.jobs.STEP.outputs.NAME."
        raise invalid(node.where, f"'{source.text}' binds nothing: {known}")
    if source.step is None:
        names, whose = properties.get(source.side) or {}, "the pipeline"
    elif source.step not in nodes:
        raise invalid(
            node.where, f"'{source.text}' binds nothing: there is no step '{source.step}'.{near(source.step, nodes)}"
        )
    else:
        other = nodes[source.step].component
        names, whose = (other.inputs if source.side == "inputs" else other.outputs), f"the step '{source.step}'"
    if source.name not in names:
        lacks = f"{whose} has no {source.side[:-1]} '{source.name}'.{near(source.name, names)}"
        raise invalid(node.where, f"'{source.text}' binds nothing: {lacks}")
