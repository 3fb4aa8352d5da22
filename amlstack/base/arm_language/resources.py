"""A policy's question: one resource, the place that it is created in, and the values of the definition's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any


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
    """Where resources are created, and when.

    Attributes:
        subscription: What ``subscription()`` gives.
        group: What ``resourceGroup()`` gives.
        now: The moment of the request.
    """

    subscription: PartlyKnown = field(default_factory=PartlyKnown)
    group: PartlyKnown = field(default_factory=PartlyKnown)
    now: datetime = field(default_factory=lambda: datetime.now(tz=UTC))

    @classmethod
    def of(cls, subscription: str, group: str, *, location: str | None = None, tags: Any = None) -> PolicyPlace:
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
