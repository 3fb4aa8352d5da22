"""Checks of bodies against azure-native's generated classes: names, required properties, enums, basic types.

The service ignores some of what is refused here (an unknown property, mostly). A sandbox that ignored it too would
let a typo train for hours on the wrong settings.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.protocol import allowances
from amlstack.sandbox.protocol.body_shapes import body_shape, member_shape, schema_of
from amlstack.sandbox.protocol.refusals import invalid, near

if TYPE_CHECKING:
    from amlstack.sandbox.protocol.body_shapes import AllowedValues, BodyShape, Field, Schema
    from amlstack.sandbox.protocol.kind import Body, ResourceKind

READ_BACK = frozenset({"id", "name", "type", "etag", "systemData"})
"""Properties of every answer that a client sends back with a PUT; ARM ignores them.

`BodyShape.read_only` has the rest: what azure-native's output classes have and its input classes lack."""

WORDS = {"str": "a string", "int": "an integer", "float": "a number", "bool": "true or false"}


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
    ignored = body_shape(schema).read_only(envelope.keys() | inner.keys() | schema.wire.keys())
    if schema.wrapped:
        if isinstance(given.get("properties"), dict):
            given["properties"] = _without(ignored, given["properties"], inner["properties"].values)
        return {"properties": {}, **_object(kind.noun, {**envelope, **inner}, given, "", version)}
    properties = given.pop("properties", {})
    if not isinstance(properties, dict):
        raise _wrong("properties", "an object", properties)
    properties = {
        name: _flat_items(value, inner[name].values) if name in schema.nested else value
        for name, value in properties.items()
    }
    wrong = next((name for name in properties if name in envelope), None)
    hint = f" '{wrong}' belongs at the top of the body, beside 'properties'." if wrong else ""
    checked = _object(kind.noun, inner, properties, "properties", version, hint=hint, ignored=ignored)
    checked |= {name: _nested(checked[name]) for name in schema.nested if name in checked}
    top = _object(kind.noun, envelope, given, "", version, inner=inner, ignored=ignored)
    return {**top, "properties": checked}


def _without(ignored: frozenset[str], properties: Body, choice: AllowedValues) -> Body:
    """The properties of a class that azure-native flattens in its answers only, without what only those have."""
    taken = {name for each in choice.objects for name in member_shape(each).fields}
    return {name: value for name, value in properties.items() if name in taken or name.lower() not in ignored}


_ON_TOP = ("id", "name", "type")
"""An item with ``properties`` takes these keys beside them."""


def _flat_items(items: Any, choice: AllowedValues) -> Any:
    """A list of items as azure-native's classes have them: their ``properties`` beside their name."""
    if not isinstance(items, list):
        return items
    members = choice.item.objects if choice.item else ()
    taken = {name for each in members for name in member_shape(each).fields}
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
    """Makes the shapes of what most stacks make, so that the first PUT does not wait for them."""
    for kind in kinds:
        schema = schema_of(kind.type)
        if schema is not None and schema.token.partition(":")[0] not in _SELDOM:
            body_shape(schema)


def fields_of_body(schema: Schema) -> tuple[dict[str, Field], dict[str, Field]]:
    """The fields at the top of the body, and those under ``properties`` (or that one itself), by wire name."""
    fields = body_shape(schema).fields
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
            result[name] = _value(fields[name].values, entry, where, version)
    for name, field in fields.items():
        if field.required and name not in result:
            raise invalid(f"{path}.{name}" if path else name, f"the required property '{name}' of {noun} is missing.")
    return result


def _check_version(versions: Collection[str] | None, version: str, path: str, seen: str) -> None:
    if versions is not None and version and version.lower() not in versions:
        these = f"These have it: {', '.join(sorted(versions, reverse=True))}."
        raise invalid(path, f"{seen} the api-version '{version}'. {these}")


def _value(choice: AllowedValues, value: Any, path: str, version: str) -> Any:
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
    members = [member_shape(each) for each in choice.objects]
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
        if kind == "int" and isinstance(value, float) and value.is_integer():
            return int(value)
        if kind == "float" and isinstance(value, int | float) and not isinstance(value, bool):
            return value
        if type(value).__name__ == kind:
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
