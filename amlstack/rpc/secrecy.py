"""Secret parts of a resource's values, noted apart from the values.

A provider opens what arrives (`opened`): its resources then work on plain values, can neither stumble over a mark nor
lose one, and whatever they answer is marked again (`Secrecy.seal`), in texts for people too (`Secrecy.redact`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.pulumi_wire import NotKnown
from amlstack.rpc.values import Secret, bare, member

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

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
