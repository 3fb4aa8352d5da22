"""Shapes of bodies, taken from azure-native's generated classes and kept in the user's cache.

To import the classes takes a second of CPU and a hundred megabytes; to read what a sandbox before has kept, hundredths.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib
import inspect
import json
import re
import sys
import threading
import types
import typing
from collections.abc import Awaitable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from importlib import metadata
from pathlib import Path
from typing import Any

from amlstack.base import paths
from amlstack.base.files import Kept
from amlstack.sandbox.protocol import allowances
from amlstack.sandbox.protocol.addresses import GROUPS

_TYPES = Path(__file__).parents[1] / "azure_native" / "types.json"
_MOST_BYTES = 1 << 24
_PARAMETER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class AllowedValues:
    """An annotation, taken apart: what a value may be.

    Attributes:
        anything: No rule.
        scalars: Of ``str``, ``int``, ``float``, ``bool``.
        words: The values of an enum; empty when it is none.
        objects: Objects, by what `member_shape` finds them by (several for a discriminated union).
        item: What a list's items may be; None where no list is allowed.
        entry: What a map's values may be; None where no map is allowed.
    """

    anything: bool
    scalars: Collection[str]
    words: Collection[str]
    objects: Collection[str]
    item: AllowedValues | None
    entry: AllowedValues | None


@dataclass(frozen=True, slots=True)
class Field:
    """One property.

    Attributes:
        values: What it may be.
        required: It must be given.
        versions: The api-versions that know it; None for all.
    """

    values: AllowedValues
    required: bool
    versions: Collection[str] | None = None


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
    versions: Collection[str] | None
    answered: Collection[str]

    def read_only(self, taken: Iterable[str]) -> frozenset[str]:
        """The properties that only answers have, in small letters: ARM ignores them in a request.

        Args:
            taken: Names that a request may have.
        """
        return frozenset(self.answered) - {name.lower() for name in taken}


@dataclass(frozen=True, slots=True)
class Schema:
    """The place of a type's properties in azure-native's input class, by the row of the stand-in of azure-native.

    Attributes:
        token: ``machinelearningservices:Job``.
        envelope: Names at the top of the body; everything else stands under ``properties``.
        path: Inputs that are part of the request's address, not of the body.
        wire: Wire name under ``properties`` by azure-native's own name, where the two differ.
        nested: Lists under ``properties`` whose items have ``properties`` of their own, which the class has beside
            ``id`` and ``name``.
        wrapped: The class has one input ``properties`` that is the wire's ``properties``.
    """

    token: str
    envelope: frozenset[str]
    path: frozenset[str]
    wire: Mapping[str, str]
    nested: tuple[str, ...]
    wrapped: bool


def schema_of(kind: str) -> Schema | None:
    """The schema of a type, in any letter case; None for one that the stand-in does not know."""
    return _schemas().get(kind.lower())


@functools.cache
def _schemas() -> dict[str, Schema]:
    rows: dict[str, dict[str, Any]] = json.loads(_TYPES.read_text("utf-8"))["types"]
    return {_type_of(row["path"]): _schema(token, row) for token, row in rows.items()}


def _type_of(path: str) -> str:
    """The type at the end of a path, in small letters."""
    namespace, *parts = path.rpartition("/providers/")[2].split("/")
    if not namespace:
        return GROUPS.lower()
    return "/".join((namespace, *parts[::2])).lower()


def _schema(token: str, row: Mapping[str, Any]) -> Schema:
    top, wrapped = frozenset(row["top"]), "properties" in row["top"]
    renamed = {name: wire for name, wire in row.get("renamed", {}).items() if name in row["flat"]}
    envelope = top - {"properties"} if wrapped else top | {"id"}
    path = frozenset({*_PARAMETER.findall(row["path"]), *row.get("put_query", ())})
    nested = tuple(row.get("wrapped", ()))
    return Schema(token, envelope=envelope, path=path, wire=renamed, nested=nested, wrapped=wrapped)


_LOADING = threading.Lock()
"""azure-native imports its modules lazily, which two threads at once (the warm-up, a request) find half done."""
_SHAPES: dict[str, BodyShape] = {}
"""By token or by the full name of a generated class."""


def body_shape(schema: Schema) -> BodyShape:
    """The shape of a type's body, its path and all."""
    if schema.token not in _SHAPES:
        with _LOADING:
            _SHAPES.update(_of_module(schema.token.partition(":")[0]))
    return _SHAPES[schema.token]


def member_shape(name: str) -> BodyShape:
    """The shape of an object in a body whose shape was asked for before.

    Args:
        name: One of `AllowedValues.objects`.
    """
    return _SHAPES[name]


def _of_module(module: str) -> dict[str, BodyShape]:
    """All shapes of the types in one of azure-native's modules, from the cache where it has them."""
    kept = Kept(paths.cache() / "shapes", _version(), _MOST_BYTES)
    try:
        return {name: _read(row) for name, row in kept.read(module).items()}
    except (AttributeError, KeyError, TypeError):  # nothing is kept, or nothing that this version wrote
        made = dict(_made(module))
        kept.write(module, {name: dataclasses.asdict(shape) for name, shape in made.items()})
        return made


@functools.cache
def _version() -> str:
    """Changes with everything that shapes are made from: azure-native, Pulumi's SDK, Python, and our own files."""
    ours = b"".join(Path(file).read_bytes() for file in (__file__, allowances.__file__, _TYPES))
    theirs = (metadata.version("pulumi-azure-native"), metadata.version("pulumi"), sys.version)
    return hashlib.sha256(ours + repr(theirs).encode()).hexdigest()


def _read(row: dict[str, Any]) -> BodyShape:
    fields = {
        name: Field(**{**field, "values": _read_values(field["values"])}) for name, field in row["fields"].items()
    }
    return BodyShape(**{**row, "fields": fields})


def _read_values(row: dict[str, Any]) -> AllowedValues:
    return AllowedValues(**{**row, **{name: row[name] and _read_values(row[name]) for name in ("item", "entry")}})


def _made(module: str) -> Iterator[tuple[str, BodyShape]]:
    found = importlib.import_module(f"pulumi_azure_native.{module}")
    tokens = [schema.token for schema in _schemas().values() if schema.token.partition(":")[0] == module]
    # A class of that name that is no resource's leaves it the name with `Init`.
    names = {token: token.partition(":")[2] for token in tokens}
    left: dict[str, Any] = {
        token: getattr(found, f"{name}InitArgs", None) or getattr(found, f"{name}Args") for token, name in names.items()
    }
    done: set[str] = set()
    while left:
        name, cls = left.popitem()
        done.add(name)
        met: dict[str, Any] = {}
        yield name, _shape(cls, met)
        left |= {other: one for other, one in met.items() if other not in done}


def _shape(cls: Any, met: dict[str, Any]) -> BodyShape:
    """The shape of a generated input class, or of what stands beside some; ``met`` gets what its properties may be."""
    if isinstance(cls, allowances.Variant):
        fields = {name: Field(_values(hint, met), required=False) for name, hint in cls.fields}
        tag = Field(_values(str, met), required=True)
        return BodyShape(cls.value, {cls.tag: tag, **fields}, {cls.tag: cls.value}, _sorted(cls.versions), [])
    import pulumi  # noqa: PLC0415 - half a second, paid where nothing is kept
    from pulumi import _types  # noqa: PLC0415

    ours = _types.input_type_py_to_pulumi_names(cls)
    wire = {name: allowances.WIRE_NAMES.get((cls.__name__, given), given) for name, given in ours.items()}
    # The alias pulumi.Input names "Output[T]" by a forward reference that only this namespace resolves.
    known = {"Output": pulumi.Output, "T": Any}
    hints = typing.get_type_hints(cls.__init__, vars(sys.modules[cls.__module__]), known)
    parameters = inspect.signature(cls.__init__).parameters
    fields = {
        wire[name]: Field(_values(hints[name], met), required=parameter.default is inspect.Parameter.empty)
        for name, parameter in parameters.items()
        if name in wire
    }
    more = [row for row in allowances.PROPERTIES if row.owner == cls.__name__]
    extra = {row.name: Field(_values(row.hint, met), required=False, versions=_sorted(row.versions)) for row in more}
    renamed = {given.lower() for name, given in ours.items() if wire[name] != given}
    name = cls.__name__.removesuffix("Args")
    return BodyShape(name, {**fields, **extra}, _tags(cls, wire), None, sorted(_answered(cls) - renamed))


def _sorted(versions: Iterable[str] | None) -> list[str] | None:
    return None if versions is None else sorted(versions)


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
    found = frozenset(found.lower() for found in names) - beside
    return found | {one.lower() for one in allowances.ANSWERED_ONLY.get(cls.__name__, ())}


def _tags(cls: Any, wire: dict[str, str]) -> dict[str, str]:
    found = {}
    for name, on_wire in wire.items():
        getter = getattr(getattr(cls, name, None), "fget", None)
        constant = re.search(r"Expected value is '(.+?)'", getattr(getter, "__doc__", None) or "")
        if constant:
            found[on_wire] = constant[1]
    return found


def _values(hint: Any, met: dict[str, Any]) -> AllowedValues:
    """Takes an annotation apart; ``met`` gets its objects by their names."""
    parts = list(_flat(hint))
    origins = {part: typing.get_origin(part) for part in parts if typing.get_origin(part) is not None}
    enums = [part for part in parts if isinstance(part, type) and issubclass(part, Enum)]
    inputs = [part for part in parts if _is_input(part)]
    names = {part.__name__ for part in inputs}
    objects = {f"{part.__module__}.{part.__name__}": part for part in inputs}
    objects |= {f"{row.beside}: {row.value}": row for row in allowances.VARIANTS if row.beside in names}
    met.update(objects)
    item = next((typing.get_args(part)[0] for part, origin in origins.items() if _is(origin, "Sequence")), None)
    entry = next((typing.get_args(part)[1] for part, origin in origins.items() if _is(origin, "Mapping")), None)
    return AllowedValues(
        anything=Any in parts or not parts,
        scalars=[part.__name__ for part in parts if part in {str, int, float, bool}],
        words=[str(member.value) for each in enums for member in each],
        objects=list(objects),
        item=None if item is None else _values(item, met),
        entry=None if entry is None else _values(entry, met),
    )


def _flat(hint: Any) -> Iterator[Any]:
    origin = typing.get_origin(hint)
    if origin in {typing.Union, types.UnionType}:
        for part in typing.get_args(hint):
            yield from _flat(part)
    elif hint is not type(None) and origin is not Awaitable and not _is(origin, "Output"):
        yield hint


def _is(origin: Any, name: str) -> bool:
    return getattr(origin, "__name__", "") == name


def _is_input(part: Any) -> bool:
    from pulumi import _types  # noqa: PLC0415

    return isinstance(part, type) and bool(_types.is_input_type(part))
