"""Azure Policy assignments of a stack: definitions, names and effects. Registers nothing.

Definitions are named after the stack's resource group, so that stacks of one subscription keep out of each other's way.
"""

from __future__ import annotations

import copy
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack import __version__
from amlstack.base.findings import Finding
from amlstack.base.text import did_you_mean
from infra.settings import dotted
from policies import azure_policy
from policies.config import ALL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import date

    from infra.names import Names
    from infra.settings import AzurePolicy, Reading
    from policies.config import Config

_TITLES = {rule.code: rule.title for rule in ALL}


@dataclass(frozen=True, slots=True)
class Assigned:
    """Azure Policy of one stack.

    Attributes:
        definitions: ``{"name", "properties"}`` each, as `amlstack policy export` writes them, under this stack's names.
        initiative: The set of them, likewise.
        initiative_id: Its ARM id.
        scope: ARM id of what it is assigned to.
        effects: The assignment's parameters: the effect of each definition.
        messages: Why Azure refuses, by the definition's reference.
    """

    definitions: tuple[dict[str, Any], ...]
    initiative: dict[str, Any]
    initiative_id: str
    scope: str
    effects: Mapping[str, str]
    messages: Mapping[str, str]


def assigned(spec: AzurePolicy, config: Config, names: Names, *, on: date) -> Assigned:
    """The assignments that the settings ask for.

    Args:
        spec: The settings.
        config: The rules' configuration: levels, and values that become parameters.
        names: The stack's names.
        on: The day as of which sizes are retired.
    """
    subscription = f"/subscriptions/{names.subscription}"
    suffix = hashlib.sha256(names.group_id.lower().encode()).hexdigest()[:8]
    exported = azure_policy.definitions(config, on=on, version=__version__)
    made = tuple({**one, "name": _named(one["name"], suffix)} for one in exported)
    initiative = copy.deepcopy(azure_policy.initiative(list(made), scope=subscription, version=__version__))
    initiative["name"] = _named(initiative["name"], suffix)
    codes = {one["name"]: azure_policy.code_of(was["name"]) for one, was in zip(made, exported, strict=True)}
    return Assigned(
        definitions=made,
        initiative=initiative,
        initiative_id=f"{subscription}/providers/Microsoft.Authorization/policySetDefinitions/{initiative['name']}",
        scope=names.group_id if spec.scope == "resourceGroup" else subscription,
        effects={f"effect-{name}": _effect(spec, config, code) for name, code in codes.items()},
        messages={name: f"{_TITLES[code]} [{code}] docs/reference/policies.md#{code}" for name, code in codes.items()},
    )


def check(reading: Reading, spec: AzurePolicy) -> Iterator[Finding]:
    """Codes under ``exclude`` that no definition is made of."""
    for index, code in enumerate(spec.exclude):
        if code in azure_policy.EXPRESSIBLE:
            continue
        loc = ("azurePolicy", "exclude", index)
        why = azure_policy.NOT_EXPRESSIBLE.get(code)
        seen = f"`{code}` is never assigned: {why}" if why else f"There is no rule `{code}`"
        rule = "Left out are rules that Azure Policy can express, by their code"
        remedy = "Leave it out" if why else did_you_mean(code, azure_policy.EXPRESSIBLE)
        yield reading.locate(loc, Finding("azure-policy-exclude", dotted(loc), seen, rule, remedy))


def _effect(spec: AzurePolicy, config: Config, code: str) -> str:
    by_level = azure_policy.EFFECTS[config.level(code)]
    if code in spec.exclude:
        return "Disabled"
    return "Audit" if spec.effect == "audit" and by_level == "Deny" else by_level


def _named(name: str, suffix: str) -> str:
    return f"{name[: azure_policy.NAME_LENGTH - len(suffix) - 1]}-{suffix}"
