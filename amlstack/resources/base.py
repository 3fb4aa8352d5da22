"""The base of all resources of the provider: attributes in Python's spelling, properties in the schema's."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pulumi

OnEdit = Literal["refuse", "cancel", "keep"]
Wait = Literal["none", "started", "completed"]


class ProviderResource(pulumi.CustomResource):
    """A resource whose inputs and outputs are those of ``amlstack/provider/schema.json``.

    The SDK's own translation of property names goes all the way down and would rename keys inside a body or a
    declaration, which are the person's; so properties have their wire names and only attributes are translated.
    Classes have no annotations: the SDK would resolve them anew for each resource, a fourth of what a program of many
    jobs does. Type checkers read ``classes.pyi``, which ``make docs`` makes from the schema.

    Attributes:
        kind: Its type in the schema.
    """

    kind = ""

    def __init__(self, resource_name: str, *, opts: pulumi.ResourceOptions | None = None, **inputs: Any) -> None:
        given = {wire_name(name): value for name, value in inputs.items()}
        # The SDK makes an output of each property, and sends none that has no value.
        super().__init__(self.kind, resource_name, {**dict.fromkeys(_properties(self.kind)), **given}, opts)

    def __getattr__(self, name: str) -> Any:
        wire = wire_name(name)
        if wire not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return self.__dict__[wire]


def wire_name(name: str) -> str:
    """The name of a property, ``codeHash``, for its keyword, ``code_hash``; a property's own name is itself."""
    if name == "content_hash":
        return "hash"  # as a keyword it would hide Python's own
    first, *rest = name.split("_")
    return "".join((first, *map(str.capitalize, rest))) if first else name


@cache
def _properties(kind: str) -> tuple[str, ...]:
    schema = json.loads((Path(__file__).parents[1] / "provider" / "schema.json").read_bytes())
    return tuple(schema["resources"][kind]["properties"])
