"""Initiatives that many tenants assign, in Azure Policy's language and our own words.

`data/initiatives.json` lists the members with their effects, `data/definitions.json` the rule of each; both with source
and date. A rule is our reading of the published one: it asks the same of the resources that a stack may have.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from amlstack.base.arm_language.resources import with_defaults
from policies.tenant.application import AppliedPolicy
from policies.tenant.library import PolicyDefinition

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Initiative:
    """An initiative: those of its members that judge what a stack may have.

    Attributes:
        word: How it is asked for: ``alz``.
        name: Its display name.
        version: Its version.
        members: Members that judge types which a stack may have.
        members_in_all: How many members it has; the others judge other types.
        checked: The day on which it was read, an ISO date.
    """

    word: str
    name: str
    version: str
    members: tuple[AppliedPolicy, ...]
    members_in_all: int
    checked: str


def words() -> tuple[str, ...]:
    """The words by which initiatives are asked for."""
    return tuple(read("initiatives")["initiatives"])


@cache
def definitions() -> Mapping[str, PolicyDefinition]:
    """All definitions by their ids, in small letters."""
    return {
        key.lower(): PolicyDefinition(
            key, row["name"], row["version"], row["mode"], row.get("rule", {}), row.get("parameters", {}),
            judges=row.get("judges", ""),
        )
        for key, row in read("definitions")["definitions"].items()
    }  # fmt: skip


@cache
def initiative(word: str) -> Initiative:
    """An initiative; raises KeyError for another word."""
    data = read("initiatives")
    row = data["initiatives"][word]
    source = row["name"] if row["id"] else ""
    members = tuple(_member(one, source) for one in row["members"])
    return Initiative(word, row["name"], row["version"], members, row["members_in_all"], data["checked"])


def _member(row: Mapping[str, Any], source: str) -> AppliedPolicy:
    definition = definitions()[row["definition"].lower()]
    parameters = with_defaults(definition.parameters, row.get("parameters", {}))
    return AppliedPolicy(definition.id, definition, parameters, source, row.get("reference", ""), effect=row["effect"])


@cache
def read(name: str) -> Any:
    """A table of `data`."""
    return json.loads(resources.files(__package__).joinpath("data", f"{name}.json").read_text("utf-8"))
