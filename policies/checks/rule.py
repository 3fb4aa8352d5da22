"""The form of a rule: its title, level and settings in `rules.json`, its words in `rules.toml`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

_NOT_EXPORTED = {
    "jobs": "no alias gives what a job says, and a job may name its size without any cluster",
    "prices": "Azure Policy knows no price: the price list of every region would stand in the definition and age there "
    "unseen",
}
"""Reasons that several rules share."""

Enforcement = Literal["mandatory", "advisory", "disabled"]


class Setting(NamedTuple):
    """One value that a team may set on a rule.

    Attributes:
        name: Its key in the pack's configuration.
        kind: JSON schema type: ``integer``, ``number``, ``array`` (of strings) or ``object`` (of strings); ``date``
            for a string that is a day such as ``2026-07-01``.
        help: What it means, as a sentence.
        default: Its value when it is not set; None leaves the rule silent on it.
    """

    name: str
    kind: Literal["integer", "number", "array", "object", "date"]
    help: str
    default: Any = None

    def schema(self) -> dict[str, Any]:
        """The setting as JSON schema."""
        inner: dict[str, Any] = {
            "array": {"items": {"type": "string"}},
            "object": {"additionalProperties": {"type": "string"}},
        }.get(self.kind, {"minimum": 0})
        default = {} if self.default is None else {"default": self.default}
        if self.kind == "date":
            return {"type": "string", "format": "date", "description": self.help, **default}
        return {"type": self.kind, "description": self.help, **inner, **default}


@dataclass(frozen=True, slots=True)
class Words:
    """The texts of one rule, for its readers.

    Attributes:
        what: What the rule does, in full.
        why: What goes wrong without it.
        example: A declaration that it refuses.
        instead: The same declaration, put right.
        options: What more there is to say on configuring it; may be empty.
        sample: Settings under which the example is refused; empty when the defaults do.
        fix: What remediation writes, as a sentence; empty where no answer is safe.
        not_exported: Why Azure Policy cannot express it; empty where it can, at least in part.
    """

    what: str
    why: str
    example: str
    instead: str
    options: str = ""
    sample: Mapping[str, Any] = field(default_factory=dict)
    fix: str = ""
    not_exported: str = ""


class Rule(NamedTuple):
    """One rule.

    Attributes:
        code: Kebab-case name; every finding of the rule carries it; the heading in docs/reference/policies.md.
        title: The rule as one sentence of what must hold.
        level: How the pack enforces it unless it is configured otherwise.
        settings: Values that a team may set.
        kinds: The kinds of subject that it judges; empty where sizes, a stack or a configuration are judged otherwise.
        silent_without: Settings of which a team has to give one, else the rule is not asked; empty for none.
        mandatory_with: A setting that, once given, turns the rule's advice into an error; empty for none.
    """

    code: str
    title: str
    level: Enforcement = "mandatory"
    settings: tuple[Setting, ...] = ()
    kinds: frozenset[str] = frozenset()
    silent_without: tuple[str, ...] = ()
    mandatory_with: str = ""

    def defaults(self) -> dict[str, Any]:
        """The settings' values when none is set."""
        return {setting.name: setting.default for setting in self.settings}

    @property
    def words(self) -> Words:
        """Its words, read when they are first asked for: a judgement needs none of them."""
        return _words().get(self.code) or Words(self.title, "", "", "", not_exported="it is a rule of one repository")


def _rule(code: str, row: dict[str, Any]) -> Rule:
    settings = tuple(Setting(*each) for each in row.pop("settings", ()))
    kinds = frozenset(row.pop("kinds", "").split())
    return Rule(code, settings=settings, kinds=kinds, silent_without=tuple(row.pop("silent_without", ())), **row)


OURS: Mapping[str, Rule] = {
    code: _rule(code, row)
    for code, row in json.loads(Path(__file__).with_name("rules.json").read_text(encoding="utf-8")).items()
}
"""The rules of this package by code, in the order in which docs/reference/policies.md shows them."""


@cache
def _words() -> dict[str, Words]:
    import tomllib  # noqa: PLC0415 - as above

    rows = tomllib.loads(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))
    for row in rows.values():
        row["not_exported"] = _NOT_EXPORTED.get(row.get("not_exported"), row.get("not_exported", ""))
    return {code: Words(**row) for code, row in rows.items()}
