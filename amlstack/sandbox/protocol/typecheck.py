"""Checks of bodies against azure-native's generated classes: names, required properties, enums, basic types.

The service ignores some of what is refused here (an unknown property, mostly). A sandbox that ignored it too would
let a typo train for hours on the wrong settings.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import re
import sys
import threading
import types
import typing
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.protocol import allowances
from amlstack.sandbox.protocol.addresses import GROUPS
from amlstack.sandbox.protocol.refusals import invalid, near

if TYPE_CHECKING:
    from amlstack.sandbox.protocol.kind import Body, ResourceKind

_IMPORTS = threading.Lock()
_PARAMETER = re.compile(r"\{(\w+)\}")


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

    @property
    def input_class(self) -> Any:
        """The generated class; one of that name that is no resource's leaves it the name with ``Init``."""
        module, name = self.token.split(":")
        # azure-native imports its modules lazily, which two threads at once (the warm-up, a request) find half done.
        with _IMPORTS:
            found = importlib.import_module(f"pulumi_azure_native.{module}")
            return getattr(found, f"{name}InitArgs", None) or getattr(found, f"{name}Args")


def schema_of(kind: str) -> Schema | None:
    """The schema of a type, in any letter case; None for one that the stand-in does not know."""
    return _schemas().get(kind.lower())


@functools.cache
def _schemas() -> dict[str, Schema]:
    file = Path(__file__).parents[1] / "azure_native" / "types.json"
    rows: dict[str, dict[str, Any]] = json.loads(file.read_text("utf-8"))["types"]
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


@functools.cache
def body_shape(cls: Any) -> BodyShape:
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


@functools.lru_cache(maxsize=4096)  # bodies have the same few parts
def allowed_values(hint: Any) -> AllowedValues:
    """Takes an annotation apart."""
    parts = list(_flat(hint))
    origins = {part: typing.get_origin(part) for part in parts if typing.get_origin(part) is not None}
    enums = [part for part in parts if isinstance(part, type) and issubclass(part, Enum)]
    words = [str(member.value) for each in enums for member in each]
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


def _is_input(part: Any) -> bool:
    from pulumi import _types  # noqa: PLC0415

    return isinstance(part, type) and bool(_types.is_input_type(part))


READ_BACK = frozenset({"id", "name", "type", "etag", "systemData"})
"""Properties of every answer that a client sends back with a PUT; ARM ignores them.

`BodyShape.read_only` has the rest: what azure-native's output classes have and its input classes lack."""

WORDS = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}


def check(kind: ResourceKind, body: Body, version: str = "") -> Body:
    """Returns the body with nulls dropped and whole numbers as integers.

    Args:
        kind: What the body is of.
        body: As it was sent.
        version: The api-version by which it was sent; empty for one that knows all that any other does.

    Raises:
        Refused: 400, naming the path of the first thing that is wrong, and near misses.
    """
    schema = schema_of(kind.type)
    if schema is None:
        return {"properties": {}, **body}
    given = {key: value for key, value in body.items() if key not in READ_BACK and value is not None}
    if isinstance(given.get("properties"), dict):
        given["properties"] = {key: value for key, value in given["properties"].items() if key not in kind.assigned}
    envelope, inner = fields_of_body(schema)
    ignored = body_shape(schema.input_class).read_only(envelope.keys() | inner.keys() | schema.wire.keys())
    if schema.wrapped:
        if isinstance(given.get("properties"), dict):
            given["properties"] = _without(ignored, given["properties"], inner["properties"].hint)
        return {"properties": {}, **_object(kind.noun, {**envelope, **inner}, given, "", version)}
    properties = given.pop("properties", {})
    if not isinstance(properties, dict):
        raise _wrong("properties", "an object", properties)
    properties = {
        name: _flat_items(value, inner[name].hint) if name in schema.nested else value
        for name, value in properties.items()
    }
    wrong = next((name for name in properties if name in envelope), None)
    hint = f" '{wrong}' belongs at the top of the body, beside 'properties'." if wrong else ""
    checked = _object(kind.noun, inner, properties, "properties", version, hint=hint, ignored=ignored)
    checked |= {name: _nested(checked[name]) for name in schema.nested if name in checked}
    top = _object(kind.noun, envelope, given, "", version, inner=inner, ignored=ignored)
    return {**top, "properties": checked}


def _without(ignored: frozenset[str], properties: Body, hint: Any) -> Body:
    """The properties of a class that azure-native flattens in its answers only, without what only those have."""
    taken = {name for each in allowed_values(hint).objects for name in body_shape(each).fields}
    return {name: value for name, value in properties.items() if name in taken or name.lower() not in ignored}


_ON_TOP = ("id", "name", "type")
"""An item with ``properties`` takes these keys beside them."""


def _flat_items(items: Any, hint: Any) -> Any:
    """A list of items as azure-native's classes have them: their ``properties`` beside their name."""
    if not isinstance(items, list):
        return items
    taken = {name for each in allowed_values(allowed_values(hint).item).objects for name in body_shape(each).fields}
    answered = {"properties", "etag", "type", "systemData", *(READ_BACK - taken)}
    return [_flat_item(item, answered) if isinstance(item, dict) else item for item in items]


def _flat_item(item: Body, answered: set[str]) -> Body:
    inner = item.get("properties")
    outer = {name: value for name, value in item.items() if name not in answered}
    shown = {name: value for name, value in inner.items() if name != "provisioningState"} if inner else {}
    return {**outer, **shown}


def _nested(items: Any) -> Any:
    """The same on the wire."""
    return [
        {
            **{name: value for name, value in item.items() if name in _ON_TOP},
            "properties": {name: value for name, value in item.items() if name not in _ON_TOP},
        }
        for item in items
    ]


_SELDOM = frozenset({"monitor", "network", "privatedns"})
"""Modules of azure-native for which a stack without networks and diagnostics has no use: half the time of them all."""


def warm(kinds: Iterable[ResourceKind]) -> None:
    """Imports the generated modules of what most stacks make, so that the first PUT does not wait for them."""
    for kind in kinds:
        schema = schema_of(kind.type)
        if schema is not None and schema.token.partition(":")[0] not in _SELDOM:
            body_shape(schema.input_class)


def fields_of_body(schema: Schema) -> tuple[dict[str, Field], dict[str, Field]]:
    """The fields at the top of the body, and those under ``properties`` (or that one itself), by wire name."""
    fields = body_shape(schema.input_class).fields
    # azure-native fills in the group's location, so its classes call it optional; the service checks it elsewhere.
    top = {name: field for name, field in fields.items() if name in schema.envelope}
    if schema.wrapped:
        return top, {"properties": fields["properties"]}
    rest = fields.keys() - top.keys() - schema.path
    return top, {schema.wire.get(name, name): field for name, field in fields.items() if name in rest}


def _object(
    noun: str,
    fields: dict[str, Field],
    value: Body,
    path: str,
    version: str,
    *,
    inner: dict[str, Field] | None = None,
    hint: str = "",
    ignored: frozenset[str] = frozenset(),
) -> Body:
    result = {}
    for name, entry in value.items():
        if name not in fields and (entry is None or name.lower() in ignored):
            continue
        where = f"{path}.{name}" if path else name
        if name not in fields:
            moved = " It belongs under 'properties'." if inner and name in inner else ""
            raise invalid(where, f"{noun} has no property '{name}'.{moved or hint or near(name, fields)}")
        if entry is not None:
            _check_version(fields[name].versions, version, where, f"{noun} has no property '{name}' in")
            result[name] = _value(fields[name].hint, entry, where, version)
    for name, field in fields.items():
        if field.required and name not in result:
            raise invalid(f"{path}.{name}" if path else name, f"the required property '{name}' of {noun} is missing.")
    return result


def _check_version(versions: frozenset[str] | None, version: str, path: str, seen: str) -> None:
    if versions is not None and version and version.lower() not in versions:
        these = f"These have it: {', '.join(sorted(versions, reverse=True))}."
        raise invalid(path, f"{seen} the api-version '{version}'. {these}")


def _value(hint: Any, value: Any, path: str, version: str) -> Any:
    choice = allowed_values(hint)
    if choice.anything:
        return value
    if isinstance(value, dict):
        return _mapping(choice, value, path, version)
    if isinstance(value, list):
        if choice.item is None:
            raise _wrong(path, _expected(choice), value)
        return [_value(choice.item, entry, f"{path}[{number}]", version) for number, entry in enumerate(value)]
    return _scalar(choice, value, path)


_NULLS_KEPT = ".jobDefinition.tags", ".jobDefinition.properties"
"""Paths of maps whose null entries a schedule answers as it got them (azure-ai-ml's test_command_job_schedule)."""


def _mapping(choice: AllowedValues, value: Body, path: str, version: str) -> Body:
    if choice.item is not None and path.rsplit(".", 1)[-1] in allowances.ID_MAPS:
        return {name: {} for name in value}
    if choice.objects:
        shape = _member(choice, value, path)
        _check_version(shape.versions, version, path, f"'{shape.name}' is not known to")
        checked = _object(f"'{shape.name}'", shape.fields, value, path, version, ignored=shape.read_only(shape.fields))
        for tag, word in shape.tags.items():
            if tag not in checked or _word(checked[tag], [word]) is None:
                raise invalid(
                    f"{path}.{tag}", f"'{checked.get(tag)}' is not allowed.{near(str(checked.get(tag)), [word])}"
                )
        return {**checked, **shape.tags}
    if choice.entry is not None:
        loose = path.rsplit(".", 1)[-1] in allowances.LOOSE_MAPS
        # A null entry of a map removes it in a merge and means nothing in a PUT.
        return {
            name: _value(choice.entry, str(entry) if loose and type(entry) is int else entry, f"{path}.{name}", version)
            for name, entry in value.items()
            if entry is not None
        } | {name: None for name, entry in value.items() if entry is None and path.endswith(_NULLS_KEPT)}
    raise _wrong(path, _expected(choice), value)


def _member(choice: AllowedValues, value: Body, path: str) -> BodyShape:
    members = [body_shape(each) for each in choice.objects]
    if len(members) == 1:
        return members[0]
    tag = next(iter(members[0].tags))
    word = value.get(tag)
    if word is None:
        raise invalid(f"{path}.{tag}", f"the required property '{tag}' is missing.")
    by_word = {member.tags[tag]: member for member in members}
    known = _word(word, by_word) if isinstance(word, str) else None
    if known is None:
        raise invalid(f"{path}.{tag}", f"'{word}' is not allowed.{near(str(word), by_word) or _listed(by_word)}")
    return by_word[known]


def _word(value: Any, words: Iterable[str]) -> str | None:
    """The word of an enum that a value means, in the service's letters; None for none.

    The service takes any letter case: azure-ai-ml 1.35 sends ``linux``, ``minimize``, ``monday``, ``Userassigned`` and
    ``Systemassigned,Userassigned``, its template ``deny``.
    """
    if value in words:
        return str(value)
    meant = str(value).replace(" ", "").casefold()
    return next((word for word in words if word.replace(" ", "").casefold() == meant), None)


def _scalar(choice: AllowedValues, value: Any, path: str) -> Any:
    if isinstance(value, str) and choice.words:
        if (word := _word(value, choice.words)) is None:
            raise invalid(path, f"'{value}' is not allowed.{near(value, choice.words) or _listed(choice.words)}")
        return word
    for kind in choice.scalars:
        if kind is int and isinstance(value, float) and value.is_integer():
            return int(value)
        if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
            return value
        if type(value) is kind:
            return value
    raise _wrong(path, _expected(choice), value)


def _expected(choice: AllowedValues) -> str:
    words = [WORDS[kind] for kind in choice.scalars]
    if choice.words:
        words = ["one of " + ", ".join(choice.words)]
    words += ["a list"] * (choice.item is not None) + ["an object"] * bool(choice.objects or choice.entry is not None)
    return " or ".join(words)


def _wrong(path: str, expected: str, value: Any) -> Exception:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", int: "an integer"}
    seen = names.get(type(value), "a number" if isinstance(value, float) else type(value).__name__)
    return invalid(path, f"expected {expected}, got {seen}.")


def _listed(words: Any) -> str:
    return f" Allowed: {', '.join(sorted(words))}."
