"""Reads values out of a resource as the engine shows it to a policy: wire names, unknowns, expressions.

During a preview the engine does not know every value. Such a one becomes a value of its own here, or ends the reading
with `Undecided`, so that a rule can say what it could not judge.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from amlstack.base.pulumi_wire import UNKNOWN

AT_UP = "is not known before the update"
AT_RUN = "is an expression that Azure resolves later"
ABSENT = "is not declared"
UNREADABLE = "could not be read"
"""The error has been reported where the value was written: what follows from it is not."""
ELSEWHERE = "is a template kept elsewhere"
GAP = "…"
"""Stands in a text for a part that only Azure knows; no Azure name can contain it."""

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that cannot be judged yet: its path and why, e.g. ``is not known before the update``.

    Attributes:
        path: Its path.
        why: Why it is not known, as the end of a sentence.
        unresolved: Whether it is part of a template that is deployed as it is: it will never be known here.
    """

    path: str
    why: str = AT_UP
    unresolved: bool = False


class Gapped(str):
    """A text of which parts are not known, such as the id of a resource in a group that Azure chooses."""

    __slots__ = ("why",)
    why: str

    @classmethod
    def of(cls, text: str, why: str) -> str:
        """The text, as one with gaps where it has any; ``why`` they are there is the end of a sentence."""
        if GAP not in text:
            return text
        made = cls(text)
        made.why = why
        return made


class Undecided(Exception):  # noqa: N818 - not an error: the answer comes later
    """A rule met a value that is not known yet."""

    def __init__(self, unknown: Unknown) -> None:
        super().__init__(f"{unknown.path} {unknown.why}")
        self.unknown = unknown


def dig(props: Any, *path: str) -> Any:
    """The value at a path of property names: None where something on the way is missing, Unknown where unknown.

    Args:
        props: A resource's properties, off the wire.
        path: Property names, outermost first; a list is entered by an index in digits.
    """
    value = props
    for name in path:
        # Off the wire all mappings are dicts; this is asked some forty times for each resource.
        if type(value) is dict:
            value = value.get(name)
        elif value is None:  # most often it ends here; asking for a Mapping is slow
            return None
        elif isinstance(value, list):
            value = value[int(name)] if name.isdigit() and int(name) < len(value) else None
        elif isinstance(value, Mapping):
            value = value.get(name)
        else:
            if isinstance(value, Unknown):  # part of a template
                return value
            return Unknown(_until_unknown(props, path)) if value is UNKNOWN else None
    return Unknown(_until_unknown(props, path)) if value is UNKNOWN else value


def put_unknown(props: Any, path: Path) -> None:
    """Mark the value at a path as one that could not be read, in place; a path into a list or a text marks that."""
    at = props
    for index, name in enumerate(path[:-1]):
        inner = at.setdefault(name, {})
        if not isinstance(inner, dict):
            at[name] = Unknown(".".join(path[: index + 1]), UNREADABLE)
            return
        at = inner
    at[path[-1]] = Unknown(".".join(path), UNREADABLE)


def _until_unknown(props: Any, path: Path) -> str:
    """The part of a path that leads to an unknown value."""
    return next(
        (".".join(path[:end]) for end in range(1, len(path)) if _at(props, path[:end]) is UNKNOWN), ".".join(path)
    )


def _at(props: Any, path: Path) -> Any:
    value = props
    for name in path:
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


def text(props: Any, *path: str) -> str | Unknown | None:
    """The text at a path; None where there is none, Unknown for an expression or an unknown value."""
    return text_of(dig(props, *path), path)


def text_of(value: Any, path: Path) -> str | Unknown | None:
    """The same of a value that was found at a path."""
    if value is None:
        return None
    if isinstance(value, str) and is_expression(value):
        return Unknown(".".join(path), AT_RUN)
    if isinstance(value, Gapped):
        return open_part(value, ".".join(path))
    return value if isinstance(value, str | Unknown) else None


def size_of(value: Any, path: Path) -> str | Unknown | None:
    """The same of a size, of which nothing but a text can be judged."""
    found = text_of(value, path)
    if found is None and value is not None:
        return Unknown(".".join(path), "is no text, and so no size that can be judged", unresolved=True)
    return found


def open_part(value: Any, path: str) -> Unknown | None:
    """The reason why a value that was read as it is, such as one of a mapping, is not known whole; None where it is.

    Args:
        value: The value.
        path: Its path.
    """
    if isinstance(value, Gapped):
        return Unknown(path, f"is `{value}`: {value.why}", unresolved=True)
    return Unknown(path) if value is UNKNOWN else value if isinstance(value, Unknown) else None


def last_part(value: Any, path: str) -> str:
    """The name at the end of an id or of a child resource's full name.

    Args:
        value: The id; parts before its end may not be known.
        path: Its path.

    Raises:
        Undecided: Its end is not known.
    """
    if isinstance(value, Unknown):
        raise Undecided(value)
    end = str(value).strip().rstrip("/").rsplit("/", 1)[-1].removeprefix("azureml:")
    if isinstance(value, Gapped) and GAP in end and (missing := open_part(value, path)):
        raise Undecided(missing)
    return end


def number(props: Any, *path: str) -> int | Unknown | None:
    """The whole number at a path, also when written as text; None where there is none, Unknown as for `text`.

    Numbers arrive as floats. A part of one counts as a whole.
    """
    return number_of(dig(props, *path), path)


def number_of(value: Any, path: Path) -> int | Unknown | None:
    """The same of a value that was found at a path."""
    if value is None or isinstance(value, Unknown):
        return value
    try:
        return math.ceil(float("" if isinstance(value, bool) else value))
    except (TypeError, ValueError, OverflowError):
        if isinstance(value, str) and is_expression(value):
            return Unknown(".".join(path), AT_RUN)
        return Unknown(".".join(path), "is no number that can be judged", unresolved=True)


def flag(props: Any, *path: str) -> bool | Unknown:
    """True where the tag at a path says ``true``; tags are text."""
    value = dig(props, *path)
    if isinstance(value, Unknown):
        return value
    return str(value).strip().lower() == "true"


def names(props: Any, *path: str) -> tuple[str, ...]:
    """The names in the mapping at a path, sorted: the wire keeps no order. Empty where there is no mapping."""
    value = dig(props, *path)
    return tuple(sorted(map(str, value))) if isinstance(value, Mapping) else ()


def is_expression(value: str) -> bool:
    """True where Azure works the value out itself: a binding of a pipeline, an expression of an ARM template."""
    return "${{" in value or (value.startswith("[") and value.endswith("]") and not value.startswith("[["))


class Facts:
    """The declared values of a subject, by the names that the rules use, wherever its form keeps them."""

    def __init__(self, props: Any, paths: Mapping[str, tuple[Path, ...]], *, classic: bool = False) -> None:
        """Read ``props``; ``paths`` lists where each fact may be, and the first place that has it counts."""
        self._props, self._paths = props, paths
        # Many rules ask for the same facts.
        self._known_facts: dict[str, tuple[Path, Any]] = {}
        self.classic = classic

    @property
    def known(self) -> bool:
        """True where there is anything to read; False for a subject that is unknown as a whole."""
        return bool(self._paths)

    def at(self, fact: str) -> str:
        """Dotted path of the fact, or where it would be."""
        return ".".join(self.found(fact)[0])

    def path(self, fact: str) -> Path:
        """The same as names."""
        return self.found(fact)[0]

    def found(self, fact: str) -> tuple[Path, Any]:
        """Path and value; where no place has it, the first and None."""
        known = self._known_facts.get(fact)
        if known is None:
            places = self._paths[fact]
            known = places[0], None
            for place in places:
                if (value := dig(self._props, *place)) is not None:
                    known = place, value
                    break
            self._known_facts[fact] = known
        return known

    def value(self, fact: str) -> Any:
        """The value, None where there is none.

        Raises:
            Undecided: It is not known yet.
        """
        return _known(self.found(fact)[1]) if fact in self._paths else None

    def text(self, fact: str) -> str | None:
        """The text, None where there is none; raises as `value`, and for an expression."""
        if fact not in self._paths:
            return None
        path, value = self.found(fact)
        return None if value is None else _known(text_of(value, path))

    def name(self, fact: str) -> str | None:
        """The last part of a name or id, None where there is none; raises as `value`, and for an expression."""
        value = self.reference(fact)
        return last_part(value, self.at(fact)) if value else None

    def reference(self, fact: str) -> str | None:
        """An id of which parts may not be known (gaps), None where there is none; otherwise as `text`."""
        value = self.value(fact)
        return value if isinstance(value, Gapped) else self.text(fact)

    def named(self, fact: str, kind: str) -> str:
        """The name after a type in an id, in small letters, empty where the id has none; raises as `name`."""
        value = self.reference(fact) or ""
        parts = value.lower().split("/")
        if kind.lower() not in parts[:-1]:
            return ""
        name = parts[parts.index(kind.lower()) + 1]
        if GAP in name and (missing := open_part(value, self.at(fact))):
            raise Undecided(missing)
        return name

    def number(self, fact: str) -> int | None:
        """The whole number; as `text`."""
        if fact not in self._paths:
            return None
        path, value = self.found(fact)
        return None if value is None else _known(number_of(value, path))

    def boolean(self, fact: str) -> bool | None:
        """The truth value of a fact, also when written as text; as `text`."""
        value = self.value(fact)
        if isinstance(value, str) and is_expression(value):
            raise Undecided(Unknown(self.at(fact), AT_RUN))
        return None if value is None else str(value).strip().lower() == "true"

    def mapping(self, fact: str) -> Mapping[str, Any]:
        """The mapping; empty where there is none. Values in it that are unknown are `UNKNOWN`."""
        value = self.value(fact)
        return value if isinstance(value, Mapping) else {}


def _known(value: Any) -> Any:
    if isinstance(value, Unknown):
        raise Undecided(value)
    return value
