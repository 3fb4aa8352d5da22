"""Checks bodies against azure-native's generated classes: names, required properties, enums, basic types.

The service ignores some of what is refused here (an unknown property, mostly). A sandbox that ignored it too would
let a typo train for hours on the wrong settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.sandbox.protocol import allowances, shapes
from amlstack.sandbox.protocol.refusals import invalid, near

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amlstack.sandbox.protocol.kind import Body, ResourceKind, Schema

READ_BACK = frozenset({"id", "name", "type", "etag", "systemData"})
"""Properties of every answer that a client sends back with a PUT; ARM ignores them.

`shapes.BodyShape.read_only` has the rest: what azure-native's output classes have and its input classes lack."""

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
    if kind.schema is None:
        return {"properties": {}, **body}
    given = {key: value for key, value in body.items() if key not in READ_BACK and value is not None}
    if isinstance(given.get("properties"), dict):
        given["properties"] = {key: value for key, value in given["properties"].items() if key not in kind.assigned}
    envelope, inner = _fields(kind.schema)
    shape = shapes.of(shapes.load(kind.schema.module, kind.schema.args))
    ignored = shape.read_only((shape.fields.keys() - kind.schema.path) | envelope.keys() | inner.keys())
    if kind.schema.wrapped:
        known = {**envelope, "properties": inner["properties"]}
        if isinstance(given.get("properties"), dict):
            given["properties"] = _without(ignored, given["properties"], inner["properties"].hint)
        return {"properties": {}, **_object(kind.noun, known, given, "", version)}
    properties = given.pop("properties", {})
    if not isinstance(properties, dict):
        raise _wrong("properties", "an object", properties)
    properties = {name: _flat(value) if name in kind.schema.nested else value for name, value in properties.items()}
    hint = _misplaced(properties, envelope)
    checked = _object(kind.noun, inner, properties, "properties", version, hint=hint, ignored=ignored)
    checked |= {name: _nested(checked[name]) for name in kind.schema.nested & checked.keys()}
    top = _object(kind.noun, envelope, given, "", version, inner=inner, ignored=ignored)
    return {**top, "properties": checked}


def _without(ignored: frozenset[str], properties: Body, hint: Any) -> Body:
    """The properties of a class that azure-native flattens in its answers only, without what only those have."""
    taken = {name for each in shapes.choice(hint).objects for name in shapes.of(each).fields}
    return {name: value for name, value in properties.items() if name in taken or name.lower() not in ignored}


_ON_TOP = ("id", "name", "type")
"""What an item with ``properties`` of its own has beside them, and takes as an input."""


def _flat(items: Any) -> Any:
    """A list of items as azure-native's classes have them: their ``properties`` beside their name."""
    if not isinstance(items, list):
        return items
    return [_flat_item(item) if isinstance(item, dict) else item for item in items]


def _flat_item(item: Body) -> Body:
    inner = item.get("properties")
    outer = {name: value for name, value in item.items() if name not in ("properties", "etag", "type", "systemData")}
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
        if kind.schema is not None and kind.schema.module not in _SELDOM:
            shapes.of(shapes.load(kind.schema.module, kind.schema.args))


def _fields(schema: Schema) -> tuple[dict[str, shapes.Field], dict[str, shapes.Field]]:
    """The fields at the top of the body, and those under ``properties``, by wire name."""
    fields = shapes.of(shapes.load(schema.module, schema.args)).fields
    body = {name: field for name, field in fields.items() if name not in schema.path}
    # azure-native fills in the group's location, so its classes call it optional; the service checks it elsewhere.
    top = {name: field for name, field in body.items() if name in schema.envelope}
    return top, {schema.wire.get(name, name): field for name, field in body.items() if name not in schema.envelope}


def _misplaced(properties: Body, envelope: dict[str, Any]) -> str:
    wrong = next((name for name in properties if name in envelope), None)
    return f" '{wrong}' belongs at the top of the body, beside 'properties'." if wrong else ""


def _object(
    noun: str,
    fields: dict[str, shapes.Field],
    value: Body,
    path: str,
    version: str,
    *,
    inner: dict[str, shapes.Field] | None = None,
    hint: str = "",
    ignored: frozenset[str] = frozenset(),
) -> Body:
    result = {}
    for name, entry in value.items():
        if name not in fields and name.lower() in ignored:
            continue
        where = f"{path}.{name}" if path else name
        if name not in fields:
            moved = " It belongs under 'properties'." if inner and name in inner else ""
            message = f"{noun} has no property '{name}'.{moved or hint or near(name, fields)}"
            raise invalid(where, message)
        if entry is not None:
            if not _known(fields[name].versions, version):
                raise invalid(
                    where,
                    f"{noun} has no property '{name}' in the api-version '{version}'. {_those(fields[name].versions)}",
                )
            result[name] = _value(fields[name].hint, entry, where, version)
    for name, field in fields.items():
        if field.required and name not in result:
            raise invalid(f"{path}.{name}" if path else name, f"the required property '{name}' of {noun} is missing.")
    return result


def _known(versions: frozenset[str] | None, version: str) -> bool:
    return versions is None or not version or version.lower() in versions


def _those(versions: frozenset[str] | None) -> str:
    return f"These have it: {', '.join(sorted(versions or (), reverse=True))}."


def _value(hint: Any, value: Any, path: str, version: str) -> Any:
    choice = shapes.choice(hint)
    if choice.anything:
        return value
    if isinstance(value, dict):
        return _mapping(choice, value, path, version)
    if isinstance(value, list):
        if choice.item is None:
            raise _wrong(path, _expected(choice), value)
        return [_value(choice.item, entry, f"{path}[{number}]", version) for number, entry in enumerate(value)]
    return _scalar(choice, value, path)


def _mapping(choice: shapes.AllowedValues, value: Body, path: str, version: str) -> Body:
    if choice.item is not None and path.rsplit(".", 1)[-1] in allowances.ID_MAPS:
        return {name: {} for name in value}
    if choice.objects:
        shape = _member(choice, value, path)
        if not _known(shape.versions, version):
            raise invalid(path, f"'{shape.name}' is not known to the api-version '{version}'. {_those(shape.versions)}")
        checked = _object(f"'{shape.name}'", shape.fields, value, path, version, ignored=shape.read_only(shape.fields))
        for tag, word in shape.tags.items():
            if checked.get(tag) != word:
                raise invalid(
                    f"{path}.{tag}", f"'{checked.get(tag)}' is not allowed.{near(str(checked.get(tag)), [word])}"
                )
        return checked
    if choice.entry is not None:
        loose = path.rsplit(".", 1)[-1] in allowances.LOOSE_MAPS
        # A null entry of a map removes it in a merge and means nothing in a PUT.
        return {
            name: _value(choice.entry, str(entry) if loose and type(entry) is int else entry, f"{path}.{name}", version)
            for name, entry in value.items()
            if entry is not None
        }
    raise _wrong(path, _expected(choice), value)


def _member(choice: shapes.AllowedValues, value: Body, path: str) -> shapes.BodyShape:
    members = [shapes.of(each) for each in choice.objects]
    if len(members) == 1:
        return members[0]
    tag = next(iter(members[0].tags))
    word = value.get(tag)
    if word is None:
        raise invalid(f"{path}.{tag}", f"the required property '{tag}' is missing.")
    by_word = {member.tags[tag]: member for member in members}
    if not isinstance(word, str) or word not in by_word:
        raise invalid(f"{path}.{tag}", f"'{word}' is not allowed.{near(str(word), by_word) or _listed(by_word)}")
    return by_word[word]


def _scalar(choice: shapes.AllowedValues, value: Any, path: str) -> Any:
    if isinstance(value, str) and choice.words:
        any_case = path.rsplit(".", 1)[-1].partition("[")[0] in allowances.ANY_CASE
        if value not in choice.words and not (any_case and value.capitalize() in choice.words):
            raise invalid(path, f"'{value}' is not allowed.{near(value, choice.words) or _listed(choice.words)}")
        return value
    for kind in choice.scalars:
        if kind is int and isinstance(value, float) and value.is_integer():
            return int(value)
        if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
            return value
        if type(value) is kind:
            return value
    raise _wrong(path, _expected(choice), value)


def _expected(choice: shapes.AllowedValues) -> str:
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
