"""Functions of ARM template expressions that depend on nothing but their arguments.

Each takes and gives known values; what it cannot take as Azure does raises, and the expression stays unresolved.
Source: Azure Resource Manager documentation, "ARM template functions".
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, unquote

from policies.evaluation.facts import GAP, Gapped
from policies.templates.values import OpenError, alike

LONGEST = 131_072
"""Most characters of a text, and elements of a list, that are worked out here."""

_ITEM = re.compile(r"\{\{|\}\}|\{(?P<index>\d+)(?::[Dd](?P<digits>\d{0,2}))?\}|[{}]")


def _refuse(condition: bool, what: str) -> None:
    if condition:
        raise OpenError(what)


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise OpenError("a whole number is expected")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise OpenError("a text is expected")
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise OpenError("a truth value is expected")
    return value


def _written(value: Any) -> str:
    """A value inside a text; how Azure writes others is not documented well enough to rely on."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise OpenError("only texts and whole numbers are joined here")
    return str(value)


def concat(*parts: Any) -> Any:
    """Texts, or lists, one after the other; texts may have gaps."""
    if parts and all(isinstance(part, list) for part in parts):
        return [one for part in parts for one in part]
    return _joined(parts, "".join(map(_written, parts)))


def text_format(pattern: Any, *parts: Any) -> str:
    """``{0}`` and ``{0:D4}`` replaced by arguments; which may have gaps."""

    def one(found: re.Match[str]) -> str:
        if found[0] in {"{{", "}}"}:
            return found[0][0]
        _refuse(found["index"] is None or int(found["index"]) >= len(parts), "the format is not understood here")
        part = parts[int(found["index"])]
        if found["digits"] is None and ":" not in found[0]:
            return _written(part)
        value, digits = _number(part), int(found["digits"] or 1)
        return f"{'-' if value < 0 else ''}{abs(value):0{max(digits, 1)}d}"

    return _joined((pattern, *parts), _ITEM.sub(one, _text(pattern)))


def _joined(parts: tuple[Any, ...], text: str) -> str:
    _refuse(len(text) > LONGEST, "the text grows too long")
    why = next((part.why for part in parts if isinstance(part, Gapped)), "")
    return Gapped.of(text, why) if why else text


def _contains(container: Any, item: Any) -> bool:
    if isinstance(container, Mapping):
        return any(name.lower() == _text(item).lower() for name in container)
    if isinstance(container, list):
        return any(alike(one, item) for one in container)
    return _text(item) in _text(container)


def _length(value: Any) -> int:
    _refuse(not isinstance(value, str | list | Mapping), "it has no length")
    return len(value)


def _empty(value: Any) -> bool:
    return value is None or _length(value) == 0


def _first(value: Any, at: int = 0) -> Any:
    _refuse(not isinstance(value, str | list) or not value, "it has no such element")
    return value[at]


def _integer(value: Any) -> int:
    _refuse(not re.fullmatch(r"\s*-?\d{1,18}\s*", str(value)), f"`{str(value)[:40]}` is no whole number")
    return int(str(value))


def truth(value: Any) -> bool:
    """A truth value, also when written as text; raises `OpenError` for anything else."""
    if isinstance(value, bool):
        return value
    _refuse(str(value).lower() not in {"true", "false"}, f"`{str(value)[:40]}` is no truth value")
    return str(value).lower() == "true"


def _string(value: Any) -> str:
    if isinstance(value, list | Mapping):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return _written(value)


def _split(value: Any, by: Any) -> list[str]:
    marks = by if isinstance(by, list) else [by]
    return re.split("|".join(re.escape(_text(mark)) for mark in marks), _text(value))


def _replace(value: Any, old: Any, new: Any) -> str:
    text, old, new = _text(value), _text(old), _text(new)
    _refuse(text.count(old) != text.lower().count(old.lower()), "whether Azure minds the case here is not documented")
    _refuse(not old or len(text) * max(1, len(new)) > LONGEST, "the text grows too long")
    return text.replace(old, new)


def _substring(value: Any, start: Any, length: Any = None) -> str:
    text, start = _text(value), _number(start)
    end = len(text) if length is None else start + _number(length)
    _refuse(not 0 <= start <= end <= len(text), "the text is shorter")
    return text[start:end]


def _take(value: Any, count: Any) -> Any:
    _refuse(not isinstance(value, str | list), "a text or list is expected")
    return value[: max(0, _number(count))]


def _skip(value: Any, count: Any) -> Any:
    _refuse(not isinstance(value, str | list), "a text or list is expected")
    return value[max(0, _number(count)) :]


def _range(start: Any, count: Any) -> list[int]:
    _refuse(not 0 <= _number(count) <= 10_000, "the range is too long")
    return list(range(_number(start), _number(start) + count))


def _union(*values: Any) -> Any:
    if all(isinstance(value, list) for value in values):
        found: list[Any] = []
        for one in (one for value in values for one in value):
            if not any(alike(one, other) for other in found):
                found.append(one)
        return found
    _refuse(not all(isinstance(value, Mapping) for value in values), "objects or lists are expected")
    whole: dict[str, Any] = {}
    for value in values:
        for key, one in value.items():
            both = isinstance(whole.get(key), Mapping) and isinstance(one, Mapping)
            whole[key] = _union(whole[key], one) if both else one
    return whole


def _object(*pairs: Any) -> dict[str, Any]:
    _refuse(len(pairs) % 2 != 0, "names and values are expected in turn")
    return {_text(pairs[at]): pairs[at + 1] for at in range(0, len(pairs), 2)}


def _divided(left: Any, right: Any) -> int:
    left, right = _number(left), _number(right)
    _refuse(right == 0, "it is a division by zero")
    return int(abs(left) // abs(right)) * (1 if (left < 0) is (right < 0) else -1)


def _remainder(left: Any, right: Any) -> int:
    return _number(left) - _divided(left, right) * _number(right)


def _extreme(choose: Callable[[list[int]], int]) -> Callable[..., int]:
    def of(*values: Any) -> int:
        listed = values[0] if len(values) == 1 and isinstance(values[0], list) else values
        _refuse(not listed, "it is empty")
        return choose([_number(value) for value in listed])

    return of


def _compared(by: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def of(left: Any, right: Any) -> bool:
        _refuse(isinstance(left, str) or isinstance(right, str), "how Azure orders texts is not known here")
        return by(_number(left), _number(right))

    return of


def _padded(value: Any, width: Any, mark: Any = " ") -> str:
    _refuse(_number(width) > LONGEST or len(_text(mark)) != 1, "the text grows too long")
    return _written(value).rjust(width, mark)


def _join(values: Any, by: Any) -> str:
    _refuse(not isinstance(values, list), "a list is expected")
    return _text(by).join(map(_written, values))


def _flat(values: Any) -> list[Any]:
    _refuse(not isinstance(values, list) or not all(isinstance(one, list) for one in values), "lists are expected")
    return [one for part in values for one in part]


def _items(value: Any) -> list[dict[str, Any]]:
    _refuse(not isinstance(value, Mapping), "an object is expected")
    return [{"key": key, "value": value[key]} for key in sorted(value, key=str.lower)]


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "add": lambda left, right: _number(left) + _number(right),
    "array": lambda value: value if isinstance(value, list) else [value],
    "base64": lambda value: base64.b64encode(_text(value).encode()).decode(),
    "base64tojson": lambda value: json.loads(base64.b64decode(_text(value)).decode()),
    "base64tostring": lambda value: base64.b64decode(_text(value)).decode(),
    "bool": truth,
    "contains": _contains,
    "createarray": lambda *values: list(values),
    "createobject": _object,
    "div": _divided,
    "empty": _empty,
    "endswith": lambda value, end: _text(value).lower().endswith(_text(end).lower()),
    "equals": alike,
    "false": lambda: False,
    "first": _first,
    "flatten": _flat,
    "greater": _compared(lambda left, right: left > right),
    "greaterorequals": _compared(lambda left, right: left >= right),
    "indexof": lambda value, part: _text(value).lower().find(_text(part).lower()),
    "int": _integer,
    "intersection": lambda left, right: (
        [one for one in left if any(alike(one, other) for other in right)]
        if isinstance(left, list) and isinstance(right, list)
        else {key: left[key] for key in left if key in right and alike(left[key], right[key])}
    ),
    "items": _items,
    "join": _join,
    "json": lambda value: json.loads(_text(value)),
    "last": lambda value: _first(value, -1),
    "lastindexof": lambda value, part: _text(value).lower().rfind(_text(part).lower()),
    "length": _length,
    "less": _compared(lambda left, right: left < right),
    "lessorequals": _compared(lambda left, right: left <= right),
    "max": _extreme(max),
    "min": _extreme(min),
    "mod": _remainder,
    "mul": lambda left, right: _number(left) * _number(right),
    "not": lambda value: not _truth(value),
    "null": lambda: None,
    "objectkeys": lambda value: [one["key"] for one in _items(value)],
    "padleft": _padded,
    "range": _range,
    "replace": _replace,
    "shallowmerge": lambda values: {key: one for value in values for key, one in value.items()},
    "skip": _skip,
    "split": _split,
    "startswith": lambda value, start: _text(value).lower().startswith(_text(start).lower()),
    "string": _string,
    "sub": lambda left, right: _number(left) - _number(right),
    "substring": _substring,
    "take": _take,
    "tolower": lambda value: _text(value).lower(),
    "toupper": lambda value: _text(value).upper(),
    "trim": lambda value: _text(value).strip(),
    "true": lambda: True,
    "union": _union,
    "uricomponent": lambda value: quote(_text(value), safe=""),
    "uricomponenttostring": lambda value: unquote(_text(value)),
}
"""By name in small letters."""

JOINING: Mapping[str, Callable[..., Any]] = {"concat": concat, "format": text_format}
"""Those that also take texts with gaps."""


def resource_id(known: list[Any], *, scope: str, group: str, why: str) -> str:
    """The id of a resource, with gaps for what is not known of its place.

    Args:
        known: The arguments; None for one that could not be worked out, which only the leading ones may be.
        scope: ``group``, ``subscription`` or ``tenant``: what the id is relative to.
        group: The deployment's resource group; a gap where it is not known.
        why: Why the gaps are there.

    Raises:
        OpenError: The arguments do not name a resource.
    """
    at = next((index for index, one in enumerate(known) if isinstance(one, str) and "/" in one), None)
    if at is None or None in known[at:] or any(not isinstance(one, str) for one in known[at:]):
        raise OpenError("the resource's type or name is not known here")
    (provider, *types), names, before = known[at].split("/"), known[at + 1 :], known[:at]
    _refuse(len(types) != len(names) or len(before) > 2, "as many names as types are expected")
    inner = "/".join(f"{kind}/{name}" for kind, name in zip(types, names, strict=True))
    place = [GAP if one is None else _text(one) for one in before]
    prefix = ""
    if scope == "subscription":
        prefix = f"/subscriptions/{place[-1] if place else GAP}"
    elif scope == "group":
        subscription = place[0] if len(place) == 2 else GAP
        prefix = f"/subscriptions/{subscription}/resourceGroups/{place[-1] if place else group}"
    return Gapped.of(f"{prefix}/providers/{provider}/{inner}", why)
