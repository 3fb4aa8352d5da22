"""A registered component, as far as a step needs it: what it runs, what it takes and gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.orchestration import parallel_step
from amlstack.sandbox.protocol.refusals import invalid, near, not_emulated

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.store.store import Store

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

    @property
    def is_pipeline(self) -> bool:
        """It has steps of its own."""
        return kind_of(self.spec) == "pipeline"


def find(store: Store, component_id: str, where: str) -> StepComponent:
    """The component that a step names.

    Raises:
        Refused: It is not registered, or of a type that the sandbox does not run.
    """
    if component_id.startswith("azureml://registries/"):
        raise not_emulated(f"components of a registry ({component_id})")
    found = store.resources.get(component_id)
    if found is None or found.type.lower() != TYPE.lower():
        known = [row.id for row in store.resources.of_type(TYPE)]
        raise invalid(
            where, f"the component '{component_id}' was not found in the workspace.{near(component_id, known)}"
        )
    spec: Mapping[str, Any] = found.body["properties"]["componentSpec"]
    check(spec, where)
    return StepComponent(
        found.id,
        spec,
        {name: _port(port) for name, port in (spec.get("inputs") or {}).items()},
        {name: _port(port) for name, port in (spec.get("outputs") or {}).items()},
    )


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


def _port(declared: Mapping[str, Any]) -> ComponentPort:
    default, mode = declared.get("default"), declared.get("mode")
    return ComponentPort(
        str(declared["type"]),
        MODES.get(str(mode), str(mode)) if mode else None,
        None if default is None else str(default),
        str(declared.get("optional", False)).lower() == "true",
    )
