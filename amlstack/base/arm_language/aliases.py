"""Aliases of Azure Policy: the values that ``Microsoft.X/type/a.b[*].c`` selects from a resource.

An alias is its type's name and a path; where the path stands in a body is found by looking: resources, and the
resources inside them, keep their own under ``properties``. Source: Azure Policy, "Author policies for array properties
on Azure resources" (the tables of selected values).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.base.pulumi_wire import UNKNOWN

if TYPE_CHECKING:
    from amlstack.base.arm_language.resources import PolicyTarget

Chosen = Mapping[str, Any]
"""In a count: array by its path in small letters (``logs[*]``) → the one element that counts as its only one."""

EVERY = "[*]"
_STEP = re.compile(r"\[\*\]|[^.\[\]]+")
_BESIDE = frozenset(
    {"extendedlocation", "etag", "id", "identity", "kind", "location", "managedby", "name", "plan", "sku"}
)
"""What a body has beside ``properties``; some types keep one of them below (a key vault's sku)."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What an alias selects.

    Attributes:
        values: The values; None for a property that is not there.
        every: Whether they are the elements of arrays; otherwise there is exactly one.
    """

    values: tuple[Any, ...]
    every: bool = False


def path_of(alias: str, kind: str) -> str | None:
    """The path of an alias below a type; None for the alias of another type, which has no value there."""
    if not alias.lower().startswith(f"{kind.lower()}/"):
        return None
    path = alias[len(kind) + 1 :]
    return None if "/" in path else path


def select(alias: str, target: PolicyTarget, chosen: Chosen) -> Selection:
    """The values of an alias on a resource.

    Args:
        alias: With its type.
        target: The resource.
        chosen: The elements of arrays that are looked at one by one.
    """
    path, every = path_of(alias, target.type), EVERY in alias
    if path is None:
        return Selection(() if every else (None,), every)
    steps = _STEP.findall(path)
    found = tuple(value for value, _ in _walk(target.body, steps, "", chosen, {}))
    if every or len(found) > 1:
        return Selection(found, every=True)
    return Selection(found or (None,))


def elements(alias: str, target: PolicyTarget, chosen: Chosen) -> Iterator[tuple[Any, Chosen]]:
    """The elements of an array alias, each with what it means to look at it alone."""
    path = path_of(alias, target.type)
    if path is not None:
        for value, choice in _walk(target.body, _STEP.findall(path), "", chosen, {}):
            yield value, {**chosen, **choice}


def _walk(
    value: Any, steps: list[str], at: str, chosen: Chosen, choice: dict[str, Any]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    if value is UNKNOWN or not steps:
        yield value, choice
        return
    step, *rest = steps
    if step == EVERY:
        yield from _each(value, rest, f"{at}{EVERY}", chosen, choice)
    elif isinstance(value, list):  # an alias of the old kind leaves the sign of an array out
        yield from _each(value, steps, f"{at}{EVERY}", chosen, choice)
    else:
        here = f"{at}.{step}" if at else step
        inner = _property(value, step, top=not at)
        if inner is None and EVERY in rest:
            return  # an array that is not there has no elements
        yield from (
            _walk(inner, rest, here.lower(), chosen, choice) if inner is not None or not rest else ((None, choice),)
        )


def _each(
    value: Any, rest: list[str], at: str, chosen: Chosen, choice: dict[str, Any]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    if at in chosen:
        yield from _walk(chosen[at], rest, at, chosen, {**choice, at: chosen[at]})
        return
    for element in value if isinstance(value, list) else ():
        yield from _walk(element, rest, at, chosen, {**choice, at: element})


def _property(value: Any, name: str, *, top: bool) -> Any:
    """A property in any letter case, of an object or of what it keeps under ``properties``."""
    if not isinstance(value, Mapping):
        return None
    inner = value.get("properties")
    places = [inner, inner.get("properties") if isinstance(inner, Mapping) else None]
    if top:
        places.append(value if name.lower() in _BESIDE else None)
    else:
        places.insert(0, value)
    for place in places:
        if place is UNKNOWN:
            return UNKNOWN
        if isinstance(place, Mapping):
            for key, found in place.items():
                if key.lower() == name.lower() and found is not None:
                    return found
    return None
