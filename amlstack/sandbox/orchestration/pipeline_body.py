"""The body of a pipeline: its components, steps, inputs and outputs."""

from __future__ import annotations

import graphlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.orchestration import parallel_step
from amlstack.sandbox.protocol.refusals import Refused, invalid, near, not_emulated

if TYPE_CHECKING:
    from amlstack.sandbox.store.store import ResourceRow, Store

TYPE = "Microsoft.MachineLearningServices/workspaces/components/versions"
KINDS = ("command", "pipeline", "parallel")
"""Kinds of components that the sandbox runs."""
LITERALS = frozenset({"string", "number", "integer", "boolean"})
"""Types of inputs that are values; all others are data."""
MODES = {
    "ro_mount": "ReadOnlyMount",
    "rw_mount": "ReadWriteMount",
    "mount": "ReadOnlyMount",
    "download": "Download",
    "direct": "Direct",
    "upload": "Upload",
    "eval_mount": "EvalMount",
    "eval_download": "EvalDownload",
}
"""A component's words for modes, and the wire's."""


_VERSION = re.compile(r"/components/(?P<name>[^/]+)/versions/(?P<version>[^/]+)$", re.IGNORECASE)
_DEFAULT = re.compile(
    r"(?P<component>/subscriptions/.+/components/[^/]+)/(?:labels/(?:default|latest)|versions/azureml_default)",
    re.IGNORECASE,
)
"""The newest version of a component, as azure-ai-ml and the service name it."""


@dataclass(frozen=True, slots=True)
class ComponentPort:
    """An input or an output as the component declares it; the mode in the wire's words."""

    type: str
    mode: str | None
    default: str | None
    optional: bool

    @property
    def literal(self) -> bool:
        """It is a value, not data."""
        return self.type.lower() in LITERALS


@dataclass(frozen=True, slots=True)
class StepComponent:
    """A component that a step of the pipeline runs: a command, a parallel task, or a pipeline of its own.

    Attributes:
        id: ARM id of its version.
        spec: ``componentSpec`` as it was registered: the words of a component's file.
        inputs, outputs: By name.
    """

    id: str
    spec: Mapping[str, Any]
    inputs: Mapping[str, ComponentPort]
    outputs: Mapping[str, ComponentPort]


def find(store: Store, component_id: str, where: str) -> StepComponent:
    """The component that a step names.

    Raises:
        Refused: It is not registered, or of a type that the sandbox does not run.
    """
    if component_id.startswith("azureml://registries/"):
        raise not_emulated(f"components of a registry ({component_id})")
    if (labelled := _DEFAULT.fullmatch(component_id)) is not None:
        active = [row for row in store.resources.under(labelled["component"], TYPE) if not _archived(row)]
        component_id = active[-1].id if active else component_id
    found = store.resources.get(component_id)
    if found is None or found.type.lower() != TYPE.lower():
        hint = near(component_id, [row.id for row in store.resources.of_type(TYPE)])
        if (named := _VERSION.search(component_id)) is not None:
            # test_pipeline_job_validation_remote of azure-ai-ml, 2023-01-05; Azure has no hint
            missing = f"Not found component {named['name']} (version: {named['version']}).{hint}"
            raise Refused(404, "NotFound", f"key: {component_id}, Message: {missing}")
        raise invalid(where, f"the component '{component_id}' was not found in the workspace.{hint}")
    spec: Mapping[str, Any] = found.body["properties"]["componentSpec"]
    check(spec, where)
    return StepComponent(
        found.id,
        spec,
        {name: _port(port) for name, port in (spec.get("inputs") or {}).items()},
        {name: _port(port) for name, port in (spec.get("outputs") or {}).items()},
    )


def _archived(row: ResourceRow) -> bool:
    return bool(row.body["properties"].get("isArchived"))


def check(spec: Any, where: str) -> None:
    """Refuses a specification that is no component that the sandbox runs."""
    if not isinstance(spec, dict):
        raise invalid(where, "a component specification is an object.")
    kind = kind_of(spec)
    if kind not in KINDS:
        raise not_emulated(f"components of the type '{kind}', only {', '.join(KINDS)}")
    if kind == "pipeline" and not isinstance(spec.get("jobs"), dict):
        raise invalid(f"{where}.jobs", "the required property 'jobs' of a pipeline component is missing.")
    if kind == "parallel":
        parallel_step.check_task(spec.get("task"), f"{where}.task")
    for name in ("command", "environment") if kind == "command" else ():
        if not isinstance(spec.get(name), str) or not spec[name]:
            raise invalid(f"{where}.{name}", f"the required property '{name}' of a command component is missing.")
    for side in ("inputs", "outputs"):
        for name, port in (spec.get(side) or {}).items():
            if not isinstance(port, dict) or not isinstance(port.get("type"), str):
                raise invalid(f"{where}.{side}.{name}", "an input or output is an object with a 'type'.")


def kind_of(spec: Mapping[str, Any]) -> str:
    """The kind of a component, by its specification."""
    return str(spec.get("type") or "command").lower()


def asset(reference: str) -> str:
    """The id in a component's reference: ``azureml:/subscriptions/…`` is that ARM id, all else stays."""
    return reference.removeprefix("azureml:") if reference.startswith("azureml:/subscriptions/") else reference


def wire_mode(word: Any) -> str | None:
    """A mode in the wire's words; None for none."""
    return MODES.get(str(word), str(word)) if word else None


def _port(declared: Mapping[str, Any]) -> ComponentPort:
    default = declared.get("default")
    return ComponentPort(
        str(declared["type"]),
        wire_mode(declared.get("mode")),
        None if default is None else str(default),
        str(declared.get("optional", False)).lower() == "true",
    )


NAME = "name"
"""``${{parent.name}}`` is the name of the pipeline's job."""
_BOUND = re.compile(r"\$\{\{\s*parent\.(?P<path>[^}]+?)\s*\}\}")


@dataclass(frozen=True, slots=True)
class BindingSource:
    """The target of a binding.

    Attributes:
        text: The binding as it was written.
        step: Name of a step; None for the pipeline itself.
        side: ``inputs`` or ``outputs``; what else was written there, which binds nothing.
        name: Of the input or output.
    """

    text: str
    step: str | None
    side: str
    name: str


def sources(text: str) -> tuple[BindingSource, ...]:
    """All bindings in a text, in order."""
    return tuple(_source(found) for found in _BOUND.finditer(text))


def sole_binding(text: str) -> BindingSource | None:
    """The binding that a text is, and nothing else."""
    found = _BOUND.fullmatch(text.strip())
    return None if found is None else _source(found)


def replaced(text: str, value: Callable[[BindingSource], str]) -> str:
    """The text with every binding in it replaced."""
    return _BOUND.sub(lambda found: value(_source(found)), text)


def _source(found: re.Match[str]) -> BindingSource:
    words = found["path"].split(".")
    step = None
    if words[0] == "jobs" and len(words) > 2:
        step, words = words[1], words[2:]
    side, name = words[0], ".".join(words[1:]).removesuffix(".path")
    return BindingSource(found[0], step, side, name)


STEP_TYPES = ("command", "sweep", "pipeline", "parallel")
"""The types of steps that the sandbox runs."""


@dataclass(frozen=True, slots=True)
class PipelineStep:
    """One step.

    Attributes:
        name: Its name in the pipeline.
        kind: One of `STEP_TYPES`.
        body: The step as the pipeline's body has it.
        inputs: The values that it is given, by input.
        outputs: The declarations of its outputs, by output.
        component: What it runs.
        needs: Steps whose outputs it reads.
        where: Its place in the body.
    """

    name: str
    kind: str
    body: Mapping[str, Any]
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    component: StepComponent
    needs: frozenset[str]
    where: str


def complete_body(store: Store, properties: Mapping[str, Any]) -> Mapping[str, Any]:
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
    component = find(store, str(named), "properties.componentId")
    if kind_of(component.spec) != "pipeline":
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
        properties: ``body["properties"]`` of the pipeline, as `complete_body` completes it.

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
        for source in sources(text)
        if source.step is not None and source.side == "outputs"
    }
    runs = find(store, component, where)
    of = kind_of(runs.spec)
    if of != ("command" if kind == "sweep" else kind):
        raise invalid(where, f"a step of the type '{kind}' names a component of the type '{of}' ('{component}').")
    inputs, outputs = step.get("inputs") or {}, step.get("outputs") or {}
    return PipelineStep(name, kind, step, inputs, outputs, runs, frozenset(needs), where)


def _texts(value: Any) -> Iterator[str]:
    """All texts in a step, wherever a binding may stand."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def _check(node: PipelineStep, nodes: Mapping[str, PipelineStep], properties: Mapping[str, Any]) -> None:
    component = node.component
    for side, given, known in (("inputs", node.inputs, component.inputs), ("outputs", node.outputs, component.outputs)):
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
        for source in sources(text):
            _check_source(node, source, nodes, properties)


def _check_source(
    node: PipelineStep, source: BindingSource, nodes: Mapping[str, PipelineStep], properties: Mapping[str, Any]
) -> None:
    if (source.step, source.side, source.name) == (None, NAME, ""):
        return
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


Wire = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BindingValues:
    """The scope in which a step's bindings are looked up.

    Attributes:
        name: The name of the pipeline's job.
        properties: ``body["properties"]`` of the pipeline.
        steps: By step the ``properties`` of its child's body; a sweep's outputs are those of its best trial.
        draft: The steps are not there yet, since the pipeline is only being checked: their ports are made up.
    """

    name: str
    properties: Mapping[str, Any]
    steps: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    draft: bool = False

    def input(self, node: PipelineStep, name: str) -> Wire | None:
        """A step's input as a job's body says it; None when it is optional and not given.

        Raises:
            Refused: A piece of text binds data.
        """
        port, given = node.component.inputs[name], node.inputs.get(name)
        if given is None:
            return None if port.default is None else _literal(port.default)
        if not isinstance(given, dict):
            return _literal(self.text(str(given), node.where))
        if "value" not in given or given["value"] is None:
            uri = self.text(str(given.get("uri") or ""), node.where)
            return _with_mode(_data(str(given.get("job_input_type") or port.type), uri), given, port)
        text = str(given["value"])
        source = sole_binding(text)
        if source is not None:
            wire = self._port(source, port)
            return wire if wire is None or wire["jobInputType"] == "literal" else _with_mode(wire, given, port)
        text = self.text(text, node.where, paths=not port.literal)
        return _literal(text) if port.literal else _with_mode(_data(port.type, text), given, port)

    def text(self, text: str, where: str, *, paths: bool = False) -> str:
        """A text with the literals put in that it binds; with ``paths`` the addresses of data too."""

        def value(source: BindingSource) -> str:
            wire = self._port(source, None)
            if paths and wire is not None and wire["jobInputType"] != "literal":
                return str(wire["uri"]).rstrip("/")
            if wire is None or wire["jobInputType"] != "literal":
                raise invalid(where, f"'{source.text}' is data, and stands in a text where only a value can stand.")
            return str(wire["value"])

        return replaced(text, value)

    def deep(self, value: Any, where: str) -> Any:
        """The same for every text in an object."""
        if isinstance(value, str):
            return self.text(value, where)
        if isinstance(value, dict):
            return {key: self.deep(each, where) for key, each in value.items()}
        return [self.deep(each, where) for each in value] if isinstance(value, list) else value

    def _port(self, source: BindingSource, port: ComponentPort | None) -> Wire | None:
        """The target of a binding, as an input."""
        if source.side == NAME:
            return _literal(self.name)
        if source.step is None and source.side == "inputs":
            wire: Wire | None = (self.properties.get("inputs") or {}).get(source.name)
            return None if wire is None else dict(wire)
        if self.draft or source.step is None:
            return _literal("1") if port is None or port.literal else _data(port.type, "")
        step = self.steps.get(source.step) or {}
        found = (step.get(source.side) or {}).get(source.name)
        if found is None or source.side == "inputs":
            return found
        return _data(str(found.get("jobOutputType") or "uri_folder"), str(found.get("uri") or ""))


def _literal(text: str) -> Wire:
    return {"jobInputType": "literal", "value": text}


def _data(kind: str, uri: str) -> Wire:
    return {"jobInputType": "uri_folder" if kind in ("path", "literal") else kind, "uri": uri}


def _with_mode(wire: Wire, given: Mapping[str, Any], port: ComponentPort) -> Wire:
    """The step's mode wins over its component's, and that over the mode of where the data come from."""
    mode = wire_mode(given.get("mode")) or port.mode or wire.get("mode")
    return wire if mode is None else {**wire, "mode": mode}
