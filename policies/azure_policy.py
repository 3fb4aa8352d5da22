"""The rules as Azure Policy: definitions and an initiative, for what Azure's own language can express.

Conditions use only aliases that published definitions use; what has none (the scale of a cluster, anything of a job)
cannot be judged at Azure's gate and is listed with its reason.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from amlstack.catalog import sizes
from policies.checks.cluster import local_auth, managed_identity, public_ip, ssh, subnet_present
from policies.checks.resource import region, required_tags
from policies.checks.rule import NO_SCALE
from policies.checks.size import fabric, known_size, retired_size
from policies.config import ALL

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from policies.checks import Rule
    from policies.config import Config

TYPE = "Microsoft.MachineLearningServices/workspaces/computes"
PREFIX = "amlstack-"
EFFECTS = {"mandatory": "Deny", "remediate": "Deny", "advisory": "Audit", "disabled": "Disabled"}

NAME_LENGTH = 64
"""Most characters of a definition's name."""

NOT_EXPRESSIBLE: Mapping[str, str] = {rule.code: rule.not_exported for rule in ALL if rule.not_exported}
"""Rules that Azure Policy cannot express, and why."""

IN_PART: Mapping[str, str] = {
    fabric.RULE.code: "only sizes that are refused whatever the number of nodes (RDMA without SR-IOV): " + NO_SCALE,
    retired_size.RULE.code: "only clusters and compute instances of Azure ML: no alias gives other machines' sizes",
}
"""Rules of which it can express a part."""


def definitions(config: Config, *, on: date, version: str) -> list[dict[str, Any]]:
    """A definition for each rule that can be expressed and has what it needs.

    Args:
        config: Levels, which become default effects, and the team's values, which become default parameters.
        on: The day as of which sizes are retired.
        version: The pack's version, for the metadata.
    """
    known = sizes.all_sizes()
    bad = [size.name for size in known if size.fabric.rdma and not size.fabric.sriov]
    gone = [size.name for size in known if size.retired_on(on)]
    found = [
        _sizes(fabric.RULE, "in", bad, "Sizes with RDMA without SR-IOV"),
        _sizes(known_size.RULE, "notIn", [size.name for size in known], "Sizes that the catalogue knows"),
        _sizes(retired_size.RULE, "in", gone, f"Sizes retired on {on.isoformat()}", "ComputeInstance"),
        _switch(public_ip.RULE, _unless(f"{TYPE}/enableNodePublicIp", "false")),
        _switch(ssh.RULE, _unless(f"{TYPE}/remoteLoginPortPublicAccess", "Disabled")),
        _switch(local_auth.RULE, _unless(f"{TYPE}/disableLocalAuth", "true")),
        _switch(managed_identity.RULE, {"not": {"field": "identity.type", "contains": "Assigned"}}),
        _switch(subnet_present.RULE, _unless_there(f"{TYPE}/subnet.id")),
    ]
    if regions := config.settings(region.RULE.code)["regions"]:
        found.append(_region(regions))
    found += (_tag(name) for name in config.settings(required_tags.RULE.code)["required"] or ())
    return [_whole(rule, suffix, parts, config, version) for rule, suffix, parts in found]


def code_of(name: str) -> str:
    """The rule that a definition is made of, by the definition's name."""
    return max((code for code in EXPRESSIBLE if f"{name}-".startswith(f"{PREFIX}{code}-")), key=len)


def initiative(made: list[dict[str, Any]], *, scope: str, version: str) -> dict[str, Any]:
    """The set of all definitions, with an effect to choose for each.

    Args:
        made: The definitions.
        scope: Where they are defined: a subscription's or management group's id.
        version: The pack's version.
    """
    base = f"{scope.rstrip('/')}/providers/Microsoft.Authorization/policyDefinitions"
    return {
        "name": "amlstack",
        "properties": {
            "displayName": "Distributed training on Azure Machine Learning",
            "description": "The rules of the amlstack policy pack that Azure Policy can express.",
            "policyType": "Custom",
            "metadata": {"category": "Machine Learning", "version": version},
            "parameters": {f"effect-{one['name']}": one["properties"]["parameters"]["effect"] for one in made},
            "policyDefinitions": [
                {
                    "policyDefinitionId": f"{base}/{one['name']}",
                    "policyDefinitionReferenceId": one["name"],
                    "parameters": {"effect": {"value": f"[parameters('effect-{one['name']}')]"}},
                }
                for one in made
            ],
        },
    }


_Parts = tuple["Rule", str, dict[str, Any]]


def _whole(rule: Rule, suffix: str, parts: dict[str, Any], config: Config, version: str) -> dict[str, Any]:
    effect = {
        "type": "String",
        "metadata": {"displayName": "Effect", "description": "What happens to a resource that breaks the rule."},
        "allowedValues": ["Audit", "Deny", "Disabled"],
        "defaultValue": EFFECTS[config.level(rule.code)],
    }
    part = f" In part: {IN_PART[rule.code]}." if rule.code in IN_PART else ""
    return {
        "name": f"{PREFIX}{rule.code}{suffix}",
        "properties": {
            "displayName": rule.title.removesuffix("."),
            "description": f"{rule.why}{part} [{rule.code}]",
            "policyType": "Custom",
            "mode": parts["mode"],
            "metadata": {"category": "Machine Learning", "version": version},
            "parameters": {"effect": effect, **parts.get("parameters", {})},
            "policyRule": {"if": parts["if"], "then": {"effect": "[parameters('effect')]"}},
        },
    }


def _on_clusters(condition: dict[str, Any], *more: str) -> dict[str, Any]:
    kind = {"in": ["AmlCompute", *more]} if more else {"equals": "AmlCompute"}
    return {
        "allOf": [
            {"field": "type", "equals": TYPE},
            {"field": f"{TYPE}/computeType", **kind},
            condition,
        ]
    }


def _sizes(rule: Rule, operator: str, names: list[str], title: str, *more: str) -> _Parts:
    """A rule on sizes of clusters, and of more kinds of computes that name their size the same way."""
    condition = {"field": f"{TYPE}/vmSize", operator: "[parameters('sizes')]"}
    sizes_there = {"type": "Array", "metadata": {"displayName": title}, "defaultValue": names}
    return rule, "", {"mode": "All", "if": _on_clusters(condition, *more), "parameters": {"sizes": sizes_there}}


def _switch(rule: Rule, condition: dict[str, Any]) -> _Parts:
    return rule, "", {"mode": "All", "if": _on_clusters(condition)}


def _unless(alias: str, value: str) -> dict[str, Any]:
    return {"anyOf": [{"field": alias, "exists": "false"}, {"field": alias, "notEquals": value}]}


def _unless_there(field: str) -> dict[str, Any]:
    return {"anyOf": [{"field": field, "exists": "false"}, {"field": field, "equals": ""}]}


def _region(regions: list[str]) -> _Parts:
    codes = ["global", *("".join(name.lower().split()) for name in regions)]
    parameter = {"type": "Array", "metadata": {"displayName": "Approved regions"}, "defaultValue": codes}
    condition = {"field": "location", "notIn": "[parameters('regions')]"}
    return region.RULE, "", {"mode": "Indexed", "if": condition, "parameters": {"regions": parameter}}


def _tag(name: str) -> _Parts:
    # A tag may be named as no definition may.
    suffix = re.sub(r"[^A-Za-z0-9_.-]", "-", name)[:24].rstrip(".")
    return required_tags.RULE, f"-{suffix}", {"mode": "Indexed", "if": _unless_there(f"tags['{name}']")}


def reason(code: str) -> str | None:
    """Why a rule is not exported, or only in part; None where it is whole."""
    return NOT_EXPRESSIBLE.get(code) or IN_PART.get(code)


EXPRESSIBLE = tuple(rule.code for rule in ALL if rule.code not in NOT_EXPRESSIBLE)
"""Codes of the rules that Azure Policy can express, wholly or in part."""
