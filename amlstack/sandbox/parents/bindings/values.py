"""The values of bindings at a moment: the pipeline's own inputs and outputs, and those of the steps made so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.arm.refusals import invalid
from amlstack.sandbox.parents import bindings
from amlstack.sandbox.parents.component_record import MODES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.parents.bindings import BindingSource
    from amlstack.sandbox.parents.component_record import ComponentPort
    from amlstack.sandbox.parents.pipeline_body import PipelineStep

Wire = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BindingValues:
    """Where a step's bindings are looked up.

    Attributes:
        properties: ``body["properties"]`` of the pipeline.
        steps: By step the ``properties`` of its child's body; a sweep's outputs are those of its best trial.
        draft: The steps are not there yet, since the pipeline is only being checked: their ports are made up.
    """

    properties: Mapping[str, Any]
    steps: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    draft: bool = False

    def input(self, node: PipelineStep, name: str) -> Wire | None:
        """What a step's input is, as a job's body says it; None when it is optional and not given.

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
        source = bindings.whole(text)
        if source is not None:
            wire = self._port(source, port)
            return wire if wire is None or wire["jobInputType"] == "literal" else _with_mode(wire, given, port)
        text = self.text(text, node.where)
        return _literal(text) if port.literal else _with_mode(_data(port.type, text), given, port)

    def text(self, text: str, where: str) -> str:
        """A text with the literals put in that it binds."""

        def value(source: BindingSource) -> str:
            wire = self._port(source, None)
            if wire is None or wire["jobInputType"] != "literal":
                raise invalid(where, f"'{source.text}' is data, and stands in a text where only a value can stand.")
            return str(wire["value"])

        return bindings.replaced(text, value)

    def deep(self, value: Any, where: str) -> Any:
        """The same for every text in an object."""
        if isinstance(value, str):
            return self.text(value, where)
        if isinstance(value, dict):
            return {key: self.deep(each, where) for key, each in value.items()}
        return [self.deep(each, where) for each in value] if isinstance(value, list) else value

    def _port(self, source: BindingSource, port: ComponentPort | None) -> Wire | None:
        """What a binding refers to, as an input."""
        if source.step is None and source.side == "inputs":
            wire: Wire | None = (self.properties.get("inputs") or {}).get(source.name)
            return None if wire is None else dict(wire)
        if self.draft or source.step is None:
            return _data(port.type if port is not None else "uri_folder", "") if not _is_value(port) else _literal("1")
        step = self.steps.get(source.step) or {}
        found = (step.get(source.side) or {}).get(source.name)
        if found is None or source.side == "inputs":
            return found
        return _data(str(found.get("jobOutputType") or "uri_folder"), str(found.get("uri") or ""))


def _is_value(port: ComponentPort | None) -> bool:
    return port is None or port.literal


def _literal(text: str) -> Wire:
    return {"jobInputType": "literal", "value": text}


def _data(kind: str, uri: str) -> Wire:
    return {"jobInputType": "uri_folder" if kind in ("path", "literal") else kind, "uri": uri}


def _with_mode(wire: Wire, given: Mapping[str, Any], port: ComponentPort) -> Wire:
    """The step's mode wins over its component's, and that over the mode of where the data come from."""
    mode = given.get("mode")
    mode = (MODES.get(str(mode), str(mode)) if mode else None) or port.mode or wire.get("mode")
    return wire if mode is None else {**wire, "mode": mode}
