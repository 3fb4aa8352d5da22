"""The shapes of request bodies, read from azure-native's generated input classes."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import sys
import threading
import types
import typing
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from amlstack.sandbox.protocol import allowances

_IMPORTS = threading.Lock()


@dataclass(frozen=True, slots=True)
class Field:
    """One property.

    Attributes:
        hint: Its annotation, unions with ``pulumi.Output`` and all.
        required: It must be given.
        versions: The api-versions that know it; None for all.
    """

    hint: Any
    required: bool
    versions: frozenset[str] | None = None


@dataclass(frozen=True)
class BodyShape:
    """An object on the wire.

    Attributes:
        name: The generated class's name without ``Args``.
        fields: By wire name.
        tags: Properties with one possible value (``distributionType: PyTorch``), which tell a union's members apart.
        versions: The api-versions that know the object; None for all.
        answered: Names, in small letters, of what a GET answers: the properties of the generated output class.
    """

    name: str
    fields: dict[str, Field]
    tags: dict[str, str]
    versions: frozenset[str] | None = None
    answered: frozenset[str] = frozenset()

    def read_only(self, taken: Iterable[str]) -> frozenset[str]:
        """The properties that only answers have, in small letters: ARM ignores them in a request.

        Args:
            taken: Names that a request may have.
        """
        return self.answered - {name.lower() for name in taken}


def load(module: str, name: str) -> Any:
    """A generated class, e.g. ``("machinelearningservices", "JobArgs")``."""
    # azure-native imports its modules lazily, which two threads at once (the warm-up, a request) find half done.
    with _IMPORTS:
        return getattr(importlib.import_module(f"pulumi_azure_native.{module}"), name)


@functools.cache
def of(cls: Any) -> BodyShape:
    """The shape of a generated input class."""
    if isinstance(cls, allowances.Variant):
        fields = {name: Field(hint, required=False) for name, hint in cls.fields}
        return BodyShape(cls.value, {cls.tag: Field(str, required=True), **fields}, {cls.tag: cls.value}, cls.versions)
    import pulumi  # noqa: PLC0415 - half a second, paid by the server only
    from pulumi import _types  # noqa: PLC0415

    ours = _types.input_type_py_to_pulumi_names(cls)
    wire = {name: allowances.WIRE_NAMES.get((cls.__name__, given), given) for name, given in ours.items()}
    # The alias pulumi.Input names "Output[T]" by a forward reference that only this namespace resolves.
    known = {"Output": pulumi.Output, "T": Any}
    hints = typing.get_type_hints(cls.__init__, vars(sys.modules[cls.__module__]), known)
    parameters = inspect.signature(cls.__init__).parameters
    fields = {
        wire[name]: Field(hints[name], required=parameter.default is inspect.Parameter.empty)
        for name, parameter in parameters.items()
        if name in wire
    }
    more = [row for row in allowances.PROPERTIES if row.owner == cls.__name__]
    extra = {row.name: Field(row.hint, required=False, versions=row.versions) for row in more}
    renamed = {given.lower() for name, given in ours.items() if wire[name] != given}
    name = cls.__name__.removesuffix("Args")
    return BodyShape(name, {**fields, **extra}, _tags(cls, wire), answered=_answered(cls) - renamed)


_ABOUT_A_RESOURCE = frozenset({"azureapiversion", "etag", "name", "systemdata", "type"})
"""Outputs of azure-native's resources that stand beside ``properties``, or nowhere on the wire."""


def _answered(cls: Any) -> frozenset[str]:
    """The output properties for a generated input class, in small letters: of its resource, or of its ``Response``."""
    from pulumi import _types  # noqa: PLC0415

    package = importlib.import_module(cls.__module__.rpartition(".")[0])
    name = cls.__name__.removesuffix("Args")
    resource = getattr(sys.modules[cls.__module__], name.removesuffix("Init"), None)
    answer = resource or getattr(package.outputs, f"{name}Response", None)
    names = _types.resource_py_to_pulumi_names(answer).values() if answer is not None else ()
    beside = _ABOUT_A_RESOURCE if resource is not None else frozenset()
    return frozenset(found.lower() for found in names) - beside


def _tags(cls: Any, wire: dict[str, str]) -> dict[str, str]:
    found = {}
    for name, on_wire in wire.items():
        getter = getattr(getattr(cls, name, None), "fget", None)
        constant = re.search(r"Expected value is '(.+?)'", getattr(getter, "__doc__", None) or "")
        if constant:
            found[on_wire] = constant[1]
    return found


@dataclass(frozen=True)
class AllowedValues:
    """An annotation, taken apart: what a value may be.

    Attributes:
        anything: No rule.
        scalars: Of ``str``, ``int``, ``float``, ``bool``.
        words: The values of an enum; empty when it is none.
        objects: Generated classes (several for a discriminated union).
        item: Annotation of a list's items, else None.
        entry: Annotation of a map's values, else None.
    """

    anything: bool
    scalars: tuple[type, ...]
    words: tuple[str, ...]
    objects: tuple[Any, ...]
    item: Any
    entry: Any


def choice(hint: Any) -> AllowedValues:
    """Takes an annotation apart."""
    parts = list(_flat(hint))
    origins = {part: typing.get_origin(part) for part in parts if typing.get_origin(part) is not None}
    words = [str(member.value) for part in parts if _is_enum(part) for member in part]
    objects = [part for part in parts if _is_input(part)]
    names = {part.__name__ for part in objects}
    item = next((typing.get_args(part)[0] for part, origin in origins.items() if _is(origin, "Sequence")), None)
    entry = next((typing.get_args(part)[1] for part, origin in origins.items() if _is(origin, "Mapping")), None)
    return AllowedValues(
        anything=Any in parts or not parts,
        scalars=tuple(part for part in parts if part in {str, int, float, bool}),
        words=tuple(words),
        objects=(*objects, *(row for row in allowances.VARIANTS if row.beside in names)),
        item=item,
        entry=entry,
    )


def _flat(hint: Any) -> typing.Iterator[Any]:
    origin = typing.get_origin(hint)
    if origin in {typing.Union, types.UnionType}:
        for part in typing.get_args(hint):
            yield from _flat(part)
    elif hint is not type(None) and origin is not Awaitable and not _is(origin, "Output"):
        yield hint


def _is(origin: Any, name: str) -> bool:
    return getattr(origin, "__name__", "") == name


def _is_enum(part: Any) -> bool:
    return isinstance(part, type) and issubclass(part, Enum)


def _is_input(part: Any) -> bool:
    from pulumi import _types  # noqa: PLC0415

    return isinstance(part, type) and bool(_types.is_input_type(part))
