"""The JSON Schema of components, in today's words and in the older dialect, from the tables by which they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.azureml.read import component, distributed_component, passthrough, port, runtime
from jobs.azureml.schema_parts import DIGITS, NUMBER, Schema, any_case, chosen, closed, ref
from jobs.azureml.schema_readers import keys
from jobs.model.component import PRIMITIVES, Component, Port
from jobs.model.passthrough import PassthroughComponent

if TYPE_CHECKING:
    from collections.abc import Mapping

LITERAL: Schema = {"type": ["string", "number", "boolean"]}
_WANTED = {"parallel": ("type", "task"), "spark": ("entry",), "pipeline": ()}


def definitions(job: Mapping[str, Schema]) -> Schema:
    """The definitions of components, by name.

    Args:
        job: Key to schema of a command job.
    """
    parts: Schema = {
        "component": {
            "description": "A component: `azureml:NAME:VERSION`, `azureml://registries/…`, a file, or one inline.",
            "anyOf": [{"type": "string", "minLength": 1}, ref("command_component")],
        },
        "command_component": closed(
            command_component_keys(),
            "A command with declared inputs and outputs.",
            required=("command", "environment"),
            more=True,
        ),
        "component_inputs": _named("component_input", "What it reads, by name."),
        "component_outputs": _named("component_output", "What it writes, by name."),
        "component_input": input_port(),
        "component_output": closed(keys(port.OUTPUT, Port), required=("type",)),
        "component_resources": closed(
            {key: job["resources"]["properties"][key] for key in runtime.RESOURCES}, "Nodes and their size.", more=True
        ),
        "dialect": {
            **closed(dialect_keys(), "A component in the older dialect, which is translated."),
            "required": ["environment"],
            "anyOf": [{"required": ["launcher"]}, {"required": ["command"]}],
        },
        "dialect_input": closed(keys(distributed_component.PORT, Port, own={"enum": {"type": ["array", "null"]}})),
        "launcher": closed(keys(distributed_component.LAUNCHER), required=("type", "additional_arguments")),
    }
    for kind in passthrough.KINDS:
        parts[f"{kind}_component"] = closed(other_component_keys(kind), required=_WANTED[kind], more=True)
    return parts


def command_component_keys() -> Schema:
    """Key to schema of a command component."""
    own = {"code": {"type": "string"}}
    made = keys(component.KEYS, Component, own=own, ignored=component.SKIPPED)
    return {**made, "intellectual_property": REFUSED}


def other_component_keys(kind: str) -> Schema:
    """Key to schema of a parallel, spark or pipeline component."""
    own = {"type": any_case((kind,))}
    return keys(passthrough.component_keys(kind), PassthroughComponent, own=own, ignored=passthrough.SKIPPED)


def input_port() -> Schema:
    """An input that a component declares, with a default and bounds of its type."""
    made = closed(keys(port.INPUT, Port, own=dict.fromkeys(("default", "min", "max"), LITERAL)), required=("type",))
    number: Schema = {"type": ["number", "string"], "pattern": NUMBER}
    integer: Schema = {"type": ["number", "string"], "pattern": DIGITS}
    data = [kind for kind in port.TYPES if kind not in PRIMITIVES]
    rules = (
        (data, dict.fromkeys(("default", "min", "max", "enum"), False)),
        (["string", "boolean"], dict.fromkeys(("min", "max"), False)),
        (["number"], _fitting(number)),
        (["integer"], _fitting(integer)),
        (["boolean"], {"default": {"anyOf": [{"type": "boolean"}, any_case(("true", "false"))]}}),
    )
    return {
        **made,
        "allOf": [
            {"if": {"properties": {"type": {"enum": kinds}}, "required": ["type"]}, "then": {"properties": told}}
            for kinds, told in rules
        ],
    }


def dialect_keys() -> Schema:
    """Key to schema of a component in the older dialect."""
    ports: Schema = {"type": "object", "additionalProperties": ref("dialect_input")}
    older: Schema = {"type": "object", "anyOf": [{"required": [key]} for key in ("docker", "conda", "os")]}
    own = {
        "inputs": ports,
        "outputs": ports,
        "launcher": ref("launcher"),
        "environment": {"anyOf": [ref("environment"), older]},
        "code": {"type": "string"},
    }
    return keys(distributed_component.KEYS, Component, own=own)


def is_component() -> Schema:
    """The condition that a file is a component: by what only components have, or by an input of a literal's type."""
    literal: Schema = {"type": "object", "properties": {"type": {"enum": [*PRIMITIVES]}}, "required": ["type"]}
    return {
        "anyOf": [
            {"properties": {"$schema": {"type": "string", "pattern": "[cC]omponent"}}, "required": ["$schema"]},
            {"required": ["is_deterministic"]},
            {"required": ["name", "version"]},
            {
                "properties": {"inputs": {"not": {"additionalProperties": {"not": literal}}}},
                "required": ["inputs"],
            },
        ]
    }


def is_dialect() -> Schema:
    """The condition that a file is written in the older dialect."""
    return {
        "anyOf": [
            {"required": ["launcher"]},
            {"properties": {"type": any_case(tuple(distributed_component.KINDS))}, "required": ["type"]},
        ]
    }


def of_file() -> Schema:
    """The schema of a component file that says its type, or of one of commands."""
    return chosen(
        *(
            ({"properties": {"type": any_case((kind,))}, "required": ["type"]}, ref(f"{kind}_component"))
            for kind in passthrough.KINDS
        ),
        otherwise=ref("command_component"),
    )


REFUSED: Schema = {"description": "azure-ai-ml cannot send it.", "enum": [None, False, 0, "", {}, []]}
"""Of a key that only stands here without a value."""


def _named(name: str, about: str) -> Schema:
    return {"type": "object", "description": about, "additionalProperties": ref(name)}


def _fitting(number: Schema) -> Schema:
    default = {"anyOf": [number, {"type": "boolean"}]}
    return {"default": default, "min": number, "max": number}
