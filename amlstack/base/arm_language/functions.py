"""Functions of ARM expressions that depend on their arguments alone, and the values that they take."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, unquote

LONGEST = 131_072
"""Most characters of a text, and elements of a list, that a function may give (Azure Policy, "Policy rule limits")."""


class OpenError(Exception):
    """A value cannot be worked out here; the reason is the message, as the end of a sentence.

    Attributes:
        why: The reason.
        later: Whether the value becomes known while the stack is brought up.
    """

    def __init__(self, why: str, *, later: bool = False) -> None:
        super().__init__(why)
        self.why, self.later = why, later


class FailingExpressionError(OpenError):
    """Azure cannot work the value out either: a deployment fails there, and a policy refuses the request."""


def alike(left: Any, right: Any) -> bool:
    """True where two known values are equal as Azure compares them: a truth value is no number."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(alike(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(alike, left, right))
    return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)


_ITEM = re.compile(r"\{\{|\}\}|\{(?P<index>\d+)(?::[Dd](?P<digits>\d{0,2}))?\}|[{}]")


def refuse(condition: bool, what: str) -> None:
    """Raises `FailingExpressionError` with the reason where the condition holds."""
    if condition:
        raise FailingExpressionError(what)


def _unsure(condition: bool, what: str) -> None:
    if condition:
        raise OpenError(what)


def _as_number(value: Any) -> int:
    """A whole number; anything else fails."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise FailingExpressionError("a whole number is expected")
    return value


def as_text(value: Any) -> str:
    """A text; anything else fails."""
    if not isinstance(value, str):
        raise FailingExpressionError("a text is expected")
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise FailingExpressionError("a truth value is expected")
    return value


def _written(value: Any) -> str:
    """A value inside a text; how Azure writes others: docs/reference/unproven.md#policy-language."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise OpenError("only texts and whole numbers are joined here")
    return str(value)


def _concat(*parts: Any) -> Any:
    if parts and all(isinstance(part, list) for part in parts):
        return [one for part in parts for one in part]
    return _short("".join(map(_written, parts)))


def _format(pattern: Any, *parts: Any) -> str:
    """``{0}`` and ``{0:D4}`` replaced by arguments."""

    def one(found: re.Match[str]) -> str:
        if found[0] in {"{{", "}}"}:
            return found[0][0]
        _unsure(found["index"] is None or int(found["index"]) >= len(parts), "the format is not understood here")
        part = parts[int(found["index"])]
        if found["digits"] is None and ":" not in found[0]:
            return _written(part)
        value, digits = _as_number(part), int(found["digits"] or 1)
        return f"{'-' if value < 0 else ''}{abs(value):0{max(digits, 1)}d}"

    return _short(_ITEM.sub(one, as_text(pattern)))


def _short(text: str) -> str:
    refuse(len(text) > LONGEST, "the text grows too long")
    return text


def _contains(container: Any, item: Any) -> bool:
    if isinstance(container, Mapping):
        return any(name.lower() == as_text(item).lower() for name in container)
    if isinstance(container, list):
        return any(alike(one, item) for one in container)
    return as_text(item) in as_text(container)


def _length(value: Any) -> int:
    refuse(not isinstance(value, str | list | Mapping), "it has no length")
    return len(value)


def _empty(value: Any) -> bool:
    return value is None or _length(value) == 0


def _first(value: Any, at: int = 0) -> Any:
    refuse(not isinstance(value, str | list), "a text or list is expected")
    _unsure(not value, "what Azure takes as the element of an empty one is not proven")
    return value[at]


def _integer(value: Any) -> int:
    refuse(not re.fullmatch(r"\s*-?\d{1,18}\s*", str(value)), f"`{str(value)[:40]}` is no whole number")
    return int(str(value))


def truth(value: Any) -> bool:
    """A truth value, also when _written as text; raises `OpenError` for anything else."""
    if isinstance(value, bool):
        return value
    refuse(str(value).lower() not in {"true", "false"}, f"`{str(value)[:40]}` is no truth value")
    return str(value).lower() == "true"


def _string(value: Any) -> str:
    if isinstance(value, list | Mapping):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return _written(value)


def _split(value: Any, by: Any) -> list[str]:
    marks = by if isinstance(by, list) else [by]
    return re.split("|".join(re.escape(as_text(mark)) for mark in marks), as_text(value))


def _replace(value: Any, old: Any, new: Any) -> str:
    text, old, new = as_text(value), as_text(old), as_text(new)
    _unsure(text.count(old) != text.lower().count(old.lower()), "whether Azure minds the case here is not proven")
    refuse(not old or len(text) * max(1, len(new)) > LONGEST, "the text grows too long")
    return text.replace(old, new)


def _substring(value: Any, start: Any, length: Any = None) -> str:
    text, start = as_text(value), _as_number(start)
    end = len(text) if length is None else start + _as_number(length)
    refuse(not 0 <= start <= end <= len(text), "the text is shorter")
    return text[start:end]


def _take(value: Any, count: Any) -> Any:
    refuse(not isinstance(value, str | list), "a text or list is expected")
    return value[: max(0, _as_number(count))]


def _skip(value: Any, count: Any) -> Any:
    refuse(not isinstance(value, str | list), "a text or list is expected")
    return value[max(0, _as_number(count)) :]


def _range(start: Any, count: Any) -> list[int]:
    refuse(not 0 <= _as_number(count) <= 10_000, "the range is too long")
    return list(range(_as_number(start), _as_number(start) + count))


def _union(*values: Any) -> Any:
    if all(isinstance(value, list) for value in values):
        found: list[Any] = []
        for one in (one for value in values for one in value):
            if not any(alike(one, other) for other in found):
                found.append(one)
        return found
    refuse(not all(isinstance(value, Mapping) for value in values), "objects or lists are expected")
    whole: dict[str, Any] = {}
    for value in values:
        for key, one in value.items():
            both = isinstance(whole.get(key), Mapping) and isinstance(one, Mapping)
            whole[key] = _union(whole[key], one) if both else one
    return whole


def _object(*pairs: Any) -> dict[str, Any]:
    refuse(len(pairs) % 2 != 0, "names and values are expected in turn")
    made = {as_text(pairs[at]): pairs[at + 1] for at in range(0, len(pairs), 2)}
    _unsure(len({name.lower() for name in made}) * 2 != len(pairs), "a name stands twice in one object")
    return made


def _divided(left: Any, right: Any) -> int:
    left, right = _as_number(left), _as_number(right)
    refuse(right == 0, "it is a division by zero")
    return int(abs(left) // abs(right)) * (1 if (left < 0) is (right < 0) else -1)


def _remainder(left: Any, right: Any) -> int:
    return _as_number(left) - _divided(left, right) * _as_number(right)


def _extreme(choose: Callable[[list[int]], int]) -> Callable[..., int]:
    def chosen(*values: Any) -> int:
        listed = values[0] if len(values) == 1 and isinstance(values[0], list) else values
        refuse(not listed, "it is empty")
        return choose([_as_number(value) for value in listed])

    return chosen


def _compared(by: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def holds(left: Any, right: Any) -> bool:
        _unsure(isinstance(left, str) or isinstance(right, str), "how Azure orders texts is not known here")
        return by(_as_number(left), _as_number(right))

    return holds


def _padded(value: Any, width: Any, mark: Any = " ") -> str:
    refuse(_as_number(width) > LONGEST or len(as_text(mark)) != 1, "the text grows too long")
    return _written(value).rjust(width, mark)


def _join(values: Any, by: Any) -> str:
    refuse(not isinstance(values, list), "a list is expected")
    return as_text(by).join(map(_written, values))


def _flat(values: Any) -> list[Any]:
    refuse(not isinstance(values, list) or not all(isinstance(one, list) for one in values), "lists are expected")
    return [one for part in values for one in part]


def _items(value: Any) -> list[dict[str, Any]]:
    refuse(not isinstance(value, Mapping), "an object is expected")
    return [{"key": key, "value": value[key]} for key in sorted(value, key=str.lower)]


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "add": lambda left, right: _as_number(left) + _as_number(right),
    "array": lambda value: value if isinstance(value, list) else [value],
    "base64": lambda value: base64.b64encode(as_text(value).encode()).decode(),
    "base64tojson": lambda value: json.loads(base64.b64decode(as_text(value)).decode()),
    "base64tostring": lambda value: base64.b64decode(as_text(value)).decode(),
    "bool": truth,
    "concat": _concat,
    "contains": _contains,
    "createarray": lambda *values: list(values),
    "createobject": _object,
    "div": _divided,
    "empty": _empty,
    "endswith": lambda value, end: as_text(value).lower().endswith(as_text(end).lower()),
    "equals": alike,
    "false": lambda: False,
    "first": _first,
    "flatten": _flat,
    "format": _format,
    "greater": _compared(lambda left, right: left > right),
    "greaterorequals": _compared(lambda left, right: left >= right),
    "indexof": lambda value, part: as_text(value).lower().find(as_text(part).lower()),
    "int": _integer,
    "intersection": lambda left, right: (
        [one for one in left if any(alike(one, other) for other in right)]
        if isinstance(left, list) and isinstance(right, list)
        else {key: left[key] for key in left if key in right and alike(left[key], right[key])}
    ),
    "items": _items,
    "join": _join,
    "json": lambda value: json.loads(as_text(value)),
    "last": lambda value: _first(value, -1),
    "lastindexof": lambda value, part: as_text(value).lower().rfind(as_text(part).lower()),
    "length": _length,
    "less": _compared(lambda left, right: left < right),
    "lessorequals": _compared(lambda left, right: left <= right),
    "max": _extreme(max),
    "min": _extreme(min),
    "mod": _remainder,
    "mul": lambda left, right: _as_number(left) * _as_number(right),
    "not": lambda value: not _truth(value),
    "null": lambda: None,
    "objectkeys": lambda value: [one["key"] for one in _items(value)],
    "padleft": _padded,
    "range": _range,
    "replace": _replace,
    "shallowmerge": lambda values: {key: one for value in values for key, one in value.items()},
    "skip": _skip,
    "split": _split,
    "startswith": lambda value, start: as_text(value).lower().startswith(as_text(start).lower()),
    "string": _string,
    "sub": lambda left, right: _as_number(left) - _as_number(right),
    "substring": _substring,
    "take": _take,
    "tolower": lambda value: as_text(value).lower(),
    "toupper": lambda value: as_text(value).upper(),
    "trim": lambda value: as_text(value).strip(),
    "true": lambda: True,
    "union": _union,
    "uricomponent": lambda value: quote(as_text(value), safe=""),
    "uricomponenttostring": lambda value: unquote(as_text(value)),
}
"""By name in small letters."""
