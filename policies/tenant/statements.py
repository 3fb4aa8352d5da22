"""Initiatives that many tenants assign, stated in a form of our own: what each definition asks of a resource.

`data/initiatives.json` lists the members with their effects, `data/definitions.json` what each of them asks; both with
source and date. A statement is far shorter than the definition that it stands for; a test holds the verdicts of both to
each other, on definitions of our own writing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

DATA = "data"


@dataclass(frozen=True, slots=True)
class StatedDefinition:
    """One definition, as we state it.

    Attributes:
        id: Id or name of the definition.
        name: Its display name.
        version: Its version.
        mode: Its mode.
        effects: Effects that it may have, the default first.
        source: The published file.
        on: Type of the resources that it judges; empty where those are none of a stack.
        when: Values of properties without which it says nothing.
        requires: What it asks for, all of it; `policies.tenant.requirements` reads them.
        parameters: Defaults of the parameters that it uses.
        judges: What it judges instead of resources of a stack; empty for the others.
    """

    id: str
    name: str
    version: str
    mode: str
    effects: tuple[str, ...]
    source: str
    on: str = ""
    when: Mapping[str, list[str]] = field(default_factory=dict)
    requires: tuple[Mapping[str, Any], ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    judges: str = ""


@dataclass(frozen=True, slots=True)
class StatedMember:
    """A member of an initiative.

    Attributes:
        definition: The definition.
        effect: Its effect in the initiative, by default.
        reference: Its reference in the initiative; empty where none is stated.
        parameters: Values that the initiative gives it.
    """

    definition: StatedDefinition
    effect: str
    reference: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StatedInitiative:
    """An initiative: those of its members that judge what a stack may have.

    Attributes:
        word: How it is asked for: ``alz``.
        id: Id of the initiative; empty for a list that is none.
        name: Its display name.
        version: Its version.
        says: What it is, in a few words.
        members: Members that judge types which a stack may have.
        members_in_all: How many members it has; the others judge other types.
        source: The published file.
        checked: The day on which it was read, an ISO date.
    """

    word: str
    id: str
    name: str
    version: str
    says: str
    members: tuple[StatedMember, ...]
    members_in_all: int
    source: str
    checked: str


def words() -> tuple[str, ...]:
    """How the stated initiatives are asked for."""
    return tuple(_read("initiatives")["initiatives"])


@cache
def definitions() -> Mapping[str, StatedDefinition]:
    """All stated definitions by their ids, in small letters."""
    return {key.lower(): _definition(key, row) for key, row in _read("definitions")["definitions"].items()}


@cache
def initiative(word: str) -> StatedInitiative:
    """A stated initiative; raises KeyError for another word."""
    data = _read("initiatives")
    row = data["initiatives"][word]
    members = tuple(
        StatedMember(
            definitions()[one["definition"].lower()],
            one["effect"],
            one.get("reference", ""),
            one.get("parameters", {}),
        )
        for one in row["members"]
    )
    rest = {name: row[name] for name in ("id", "name", "version", "says", "members_in_all", "source")}
    return StatedInitiative(word=word, members=members, checked=data["checked"], **rest)


def _definition(key: str, row: Mapping[str, Any]) -> StatedDefinition:
    lists = {"effects": tuple(row["effects"]), "requires": tuple(row.get("requires", ()))}
    return StatedDefinition(id=key, **{**row, **lists})


@cache
def _read(name: str) -> Any:
    return json.loads(resources.files(__package__).joinpath(DATA, f"{name}.json").read_text("utf-8"))
