"""Property values in plain Python: JSON's, two markers, and the secret parts of a resource noted apart.

`UNKNOWN` stands for what is not computed yet at preview, `Secret` around what the engine must encrypt in its state.
Nothing here needs protobuf, which who only asks ARM does not want to load; `amlstack.rpc.wire` turns values into it.

A provider opens what arrives (`opened`): its resources then work on plain values, can neither stumble over a mark nor
lose one, and whatever they answer is marked again (`Secrecy.seal`), in texts for people too (`Secrecy.redact`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

from amlstack.base.pulumi_wire import NotKnown


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that Pulumi encrypts in its state. Its ``repr`` never shows it."""

    value: Any

    def __repr__(self) -> str:
        return "Secret(…)"


class ValueRefusedError(ValueError):
    """A value that these providers do not take, with its property path.

    Attributes:
        path: Where it stands, e.g. ``body.properties.code[0]``.
        reason: What it is and why it is refused, one sentence.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.path = path
        self.reason = reason


def bare(value: Any) -> Any:
    """The same value with every `Secret` unwrapped: what goes to a service, never into state or a log."""
    if isinstance(value, str):  # most are
        return value
    if isinstance(value, dict):
        return {key: item if isinstance(item, str) else bare(item) for key, item in value.items()}
    if isinstance(value, list):
        return [bare(item) for item in value]
    return bare(value.value) if isinstance(value, Secret) else value


def unknown_paths(value: Any, path: str = "") -> Iterator[str]:
    """The property paths of everything that is not known yet."""
    match value:
        case NotKnown():
            yield path
        case Secret():
            yield from unknown_paths(value.value, path)
        case dict():
            for key, item in value.items():
                yield from unknown_paths(item, member(path, key))
        case list():
            for index, item in enumerate(value):
                yield from unknown_paths(item, f"{path}[{index}]")


def changed_paths(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """The property paths at which two values differ, deepest first common map or list; secrets compared by value.

    An unknown differs from everything but an unknown: at preview it may turn out to be anything.
    """
    old, new = _open(old), _open(new)
    match old, new:
        case dict(), dict():
            for key in dict.fromkeys((*old, *new)):
                if key in old and key in new:
                    yield from changed_paths(old[key], new[key], member(path, key))
                else:
                    yield member(path, key)
        case list(), list() if len(old) == len(new):
            for index, (one, other) in enumerate(zip(old, new, strict=True)):
                yield from changed_paths(one, other, f"{path}[{index}]")
        case _:
            if type(old) is not type(new) or old != new:
                yield path


def _open(value: Any) -> Any:
    while isinstance(value, Secret):
        value = value.value
    # Numbers come back from the wire as int or float by their value: 1 and 1.0 are one number.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def member(path: str, key: str) -> str:
    """The property path of a map's member, quoted where its name would be misread."""
    plain = bool(key) and not any(mark in key for mark in '.[]"')
    if plain:
        return f"{path}.{key}" if path else key
    quoted = '["' + key.replace("\\", "\\\\").replace('"', '\\"') + '"]'
    return f"{path}{quoted}"


Place = tuple[str | int, ...]
"""The place of a value: ``("body", "properties", "tags", "team")``."""

REDACTED: Final = "[secret]"
_SHORTEST: Final = 3
"""Shorter texts are everywhere: they are recognised whole or between quotes only. The engine, too, masks from 3 on."""


@dataclass(frozen=True, slots=True)
class Secrecy:
    """The places of some values that are secret.

    Attributes:
        places: Where a value is marked, the outermost mark only.
        texts: The texts in these values.
    """

    places: frozenset[Place] = frozenset()
    texts: frozenset[str] = frozenset()

    def __or__(self, other: Secrecy) -> Secrecy:
        return Secrecy(self.places | other.places, self.texts | other.texts)

    def covers(self, *place: str | int) -> bool:
        """True where the value at a place, part of it or something around it is secret."""
        return any(one[: len(place)] == place or place[: len(one)] == one for one in self.places)

    def seal(
        self, values: Mapping[str, Any], given: Container[str], digests: Mapping[str, Iterable[str]] | None = None
    ) -> dict[str, Any]:
        """The values with their marks.

        Args:
            values: Plain values.
            given: Names of those that come from the program: marked where they were when they arrived. The others are
                marked where they repeat a secret text.
            digests: Of values that hold digests: the names of what these are made of. They are secret when part of that
                is, because who has a digest can try out what a short secret may be.
        """
        made_of = digests or {}
        sealed: dict[str, Any] = {}
        for name, value in values.items():
            if any(self.covers(source) for source in made_of.get(name, ())):
                sealed[name] = Secret(value)
            elif name in given:
                sealed[name] = self._marked(value, (name,))
            else:
                sealed[name] = self._repeats(value) if self.texts else value
        return sealed

    def _marked(self, value: Any, place: Place) -> Any:
        if place in self.places:
            return Secret(value)
        if not self.covers(*place):
            return value
        match value:
            case dict():
                return {key: self._marked(item, (*place, key)) for key, item in value.items()}
            case list():
                return [self._marked(item, (*place, index)) for index, item in enumerate(value)]
            case _:
                return value

    def _repeats(self, value: Any) -> Any:
        match value:
            case str():
                there = value in self.texts or any(text in value for text in self.texts if len(text) >= _SHORTEST)
                return Secret(value) if there else value
            case dict():
                return {key: self._repeats(item) for key, item in value.items()}
            case list():
                return [self._repeats(item) for item in value]
            case _:
                return value

    def unmarked(self, values: Mapping[str, Any]) -> Iterator[str]:
        """The property paths of what is secret here and lies in ``values`` without a mark."""
        other = opened(values)[1]
        for place in sorted(self.places, key=str):
            inner: Any = values
            for step in place:
                inner = _child(inner, step)
            if inner is not None and not other.covers(*place):
                yield _path(place)

    def parted(self, value: Any, place: Place) -> tuple[Any, list[Any]]:
        """A value without its secrets, and these by themselves, each with its place."""
        if place in self.places:
            return REDACTED, [[list(place), value]]
        if not self.covers(*place):
            return value, []
        secrets: list[Any] = []
        rest: Any = value

        def inner(item: Any, step: str | int) -> Any:
            plain, more = self.parted(item, (*place, step))
            secrets.extend(more)
            return plain

        match value:
            case dict():
                rest = {key: inner(item, key) for key, item in value.items()}
            case list():
                rest = [inner(item, index) for index, item in enumerate(value)]
        return rest, secrets

    def cut(self, path: str) -> str:
        """A property path, ended where it enters a secret value: the keys in there are secret as well."""
        for place in self.places:
            around = _path(place)
            if path.startswith((f"{around}.", f"{around}[")):
                return around
        return path

    def redact(self, text: str) -> str:
        """A text for people, without secret texts, and with property paths as `cut` ends them."""
        for place in self.places:
            around = re.escape(_path(place))
            text = re.sub(rf"(?<![\w.])({around})(?:\.[\w-]+|\[[^\]]*\])+", r"\1", text)
        for secret in sorted(self.texts, key=len, reverse=True):
            for form in {secret, json.dumps(secret)[1:-1], repr(secret)[1:-1]}:
                if len(secret) >= _SHORTEST:
                    text = text.replace(form, REDACTED)
                else:
                    text = re.sub(rf"(?<=['\"`]){re.escape(form)}(?=['\"`])", REDACTED, text)
        return text


_PLAIN: Final = frozenset({str, int, float, bool, type(None)})
"""The types of JSON that hold nothing."""

NOTHING: Final = Secrecy()
"""Nothing is secret."""


def opened(values: Mapping[str, Any]) -> tuple[dict[str, Any], Secrecy]:
    """The values without marks, and what was marked."""
    marked: list[tuple[Place, Secret]] = []
    _collect(values, (), marked)
    if not marked:  # as of most resources
        return bare(dict(values)), NOTHING
    texts = frozenset(text for _, secret in marked for text in _texts(secret.value) if text)
    return bare(dict(values)), Secrecy(frozenset(place for place, _ in marked), texts)


def all_of(*several: Secrecy) -> Secrecy:
    """The secrets of any of several values of one resource, by its old ones and its new ones."""
    return reduce(Secrecy.__or__, several, NOTHING)


def _collect(value: Any, place: Place, found: list[tuple[Place, Secret]]) -> None:
    """Adds the secrets in a value to those that were found: no generator, as it is asked for each value on the wire."""
    if isinstance(value, dict):
        for key, item in value.items():
            if type(item) not in _PLAIN:
                _collect(item, (*place, key), found)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if type(item) not in _PLAIN:
                _collect(item, (*place, index), found)
    elif isinstance(value, Secret):
        found.append((place, value))


def _texts(value: Any) -> Iterator[str]:
    match value:
        case Secret():
            yield from _texts(value.value)
        case str():
            yield value
        case bool() | NotKnown():
            return
        case int() | float() if len(str(value)) > _SHORTEST:
            yield str(value)
        case dict():
            for item in value.values():
                yield from _texts(item)
        case list():
            for item in value:
                yield from _texts(item)


def _child(value: Any, step: str | int) -> Any:
    while isinstance(value, Secret):
        value = value.value
    if isinstance(value, dict):
        return value.get(step)
    within = isinstance(value, list) and isinstance(step, int) and step < len(value)
    return value[step] if within else None


def _path(place: Place) -> str:
    return reduce(lambda path, step: f"{path}[{step}]" if isinstance(step, int) else member(path, step), place, "")
