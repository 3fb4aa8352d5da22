"""The resource that a policy judges, its scope, and the values that an alias selects from it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from amlstack.base.pulumi_wire import UNKNOWN


class PartlyKnown(dict[str, Any]):
    """An object of which only some properties are known; the others are open, not absent."""


@dataclass(frozen=True, slots=True)
class PolicyTarget:
    """One resource as Azure Policy sees it.

    Attributes:
        type: ``Microsoft.X/a/b``, in any letter case.
        id: Its ARM id; empty where it is not known.
        body: ``location``, ``tags``, ``identity``, ``properties`` …, as on the wire.
        api_version: Of the request that creates it; empty where it is not known.
        indexed: Whether it has tags and a location, so that definitions of the mode ``Indexed`` judge it; None where
            Azure's documents do not say.
    """

    type: str
    id: str
    body: Mapping[str, Any]
    api_version: str = ""
    indexed: bool | None = True

    @property
    def name(self) -> str:
        """The last part of its id."""
        return self.id.rpartition("/")[2]

    @property
    def full_name(self) -> str:
        """Its name behind those of the resources that it lies in: ``workspace/cluster``."""
        parts = self.id.rpartition("/providers/")[2].split("/")
        return "/".join(parts[2::2])


@dataclass(frozen=True, slots=True)
class PolicyPlace:
    """The place and time at which resources are created.

    Attributes:
        subscription: What ``subscription()`` gives.
        group: What ``resourceGroup()`` gives.
        now: The moment of the request.
    """

    subscription: PartlyKnown = field(default_factory=PartlyKnown)
    group: PartlyKnown = field(default_factory=PartlyKnown)
    now: datetime = field(default_factory=lambda: datetime.now(tz=UTC))

    @classmethod
    def in_group(cls, subscription: str, group: str, *, location: str | None = None, tags: Any = None) -> PolicyPlace:
        """A resource group by its names; what is None is not known."""
        whole = f"/subscriptions/{subscription}"
        known = {
            "id": f"{whole}/resourceGroups/{group}",
            "name": group,
            "type": "Microsoft.Resources/resourceGroups",
            "managedBy": "",
            **({} if location is None else {"location": location}),
            **({} if tags is None else {"tags": dict(tags)}),
        }
        return cls(PartlyKnown(id=whole, subscriptionId=subscription), PartlyKnown(known))


def with_defaults(declared: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Values of declared parameters: what is given, else the default; those with neither are left out.

    Args:
        declared: ``{name: {"type", "defaultValue", …}}``.
        given: Values by name, in any letter case.
    """
    by_name = {name.lower(): value for name, value in given.items()}
    values = {
        name: each["defaultValue"]
        for name, each in declared.items()
        if isinstance(each, Mapping) and "defaultValue" in each
    }
    return {**values, **{name: by_name[name.lower()] for name in declared if name.lower() in by_name}}


Chosen = Mapping[str, Any]
"""In a count: array by its path in small letters (``logs[*]``) → the one element that counts as its only one."""

EVERY = "[*]"
_STEP = re.compile(r"\[\*\]|[^.\[\]]+")
_BESIDE = frozenset(
    {"extendedlocation", "etag", "id", "identity", "kind", "location", "managedby", "name", "plan", "sku"}
)
"""The keys that a body has beside ``properties``; some types keep one of them below (a key vault's sku)."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The values that an alias selects.

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
