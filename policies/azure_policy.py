"""The rules as Azure Policy: definitions and an initiative, for what Azure's own language can express.

Conditions use only aliases that published definitions use; what has none (anything of a job) cannot be judged at
Azure's gate and is listed with its reason. The scale of a cluster has aliases: Azure/Enterprise-Scale,
src/resources/Microsoft.Authorization/policyDefinitions/Deny-MachineLearning-ComputeCluster-Scale.json, commit 7351fb4.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from amlstack.catalog import sizes
from policies import checks
from policies.config import ALL, Config

if TYPE_CHECKING:
    from datetime import date

    from amlstack.catalog.sizes import Size
    from policies.checks import Rule

TYPE = "Microsoft.MachineLearningServices/workspaces/computes"
PREFIX = "amlstack-"
EFFECTS = {"mandatory": "Deny", "remediate": "Deny", "advisory": "Audit", "disabled": "Disabled"}

NAME_LENGTH = 64
"""Most characters of a definition's name."""

NOT_EXPRESSIBLE: Mapping[str, str] = {rule.code: rule.words.not_exported for rule in ALL if rule.words.not_exported}
"""Rules that Azure Policy cannot express, and why."""

_NO_JOBS = "only clusters: no alias gives what a job says"

IN_PART: Mapping[str, str] = {
    **dict.fromkeys(("sriov-fabric", "node-ceiling", "cluster-budget"), _NO_JOBS),
    "size-retired": ("only clusters and compute instances of Azure ML: no alias gives other machines' sizes"),
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
    gone = [size.name for size in known if size.retired_on(on)]
    found = [
        _fabric(known),
        _sizes("size-unknown", "notIn", [size.name for size in known], "Sizes that the catalogue knows"),
        _sizes("size-retired", "in", gone, f"Sizes retired on {on.isoformat()}", "ComputeInstance"),
        _switch("node-public-ip", _unless(f"{TYPE}/enableNodePublicIp", "false")),
        _switch("ssh-closed", _unless(f"{TYPE}/remoteLoginPortPublicAccess", "Disabled")),
        _switch("local-auth-off", _unless(f"{TYPE}/disableLocalAuth", "true")),
        _switch("managed-identity", {"not": {"field": "identity.type", "contains": "Assigned"}}),
        _switch("subnet-present", _unless_there(f"{TYPE}/subnet.id")),
        _above("scale-to-zero", _LEAST, int(config.settings("scale-to-zero")["nodes"])),
        _idle(int(config.settings("idle-time")["minutes"])),
    ]
    if (ceiling := config.settings("node-ceiling")["nodes"]) is not None:
        found.append(_above("node-ceiling", _MOST, int(ceiling)))
    budget = config.settings("cluster-budget")
    if any(most is not None for most in budget.values()):
        found.append(_budget(known, **budget))
    if regions := config.settings("region-approved")["regions"]:
        found.append(_region(regions))
    found += (_tag(name) for name in config.settings("tags-required")["required"] or ())
    return [_whole(checks.OURS[code], suffix, parts, config, version) for code, suffix, parts in found]


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


_Parts = tuple[str, str, dict[str, Any]]


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
            "description": f"{rule.words.why}{part} [{rule.code}]",
            "policyType": "Custom",
            "mode": parts["mode"],
            "metadata": {"category": "Machine Learning", "version": version},
            "parameters": {"effect": effect, **parts.get("parameters", {})},
            "policyRule": {"if": parts["if"], "then": {"effect": "[parameters('effect')]"}},
        },
    }


def _on_clusters(condition: dict[str, Any], *more: str) -> dict[str, Any]:
    kind = {"in": ["AmlCompute", *more]} if more else {"equals": "AmlCompute"}
    return {"allOf": [{"field": "type", "equals": TYPE}, {"field": f"{TYPE}/computeType", **kind}, condition]}


def _sizes(code: str, operator: str, names: list[str], title: str, *more: str) -> _Parts:
    """A rule on sizes of clusters, and of more kinds of computes that name their size the same way."""
    condition = {"field": f"{TYPE}/vmSize", operator: "[parameters('sizes')]"}
    sizes_there = {"type": "Array", "metadata": {"displayName": title}, "defaultValue": names}
    return code, "", {"mode": "All", "if": _on_clusters(condition, *more), "parameters": {"sizes": sizes_there}}


def _switch(code: str, condition: dict[str, Any]) -> _Parts:
    return code, "", {"mode": "All", "if": _on_clusters(condition)}


def _unless(alias: str, value: str) -> dict[str, Any]:
    return {"anyOf": [{"field": alias, "exists": "false"}, {"field": alias, "notEquals": value}]}


def _unless_there(field: str) -> dict[str, Any]:
    return {"anyOf": [{"field": field, "exists": "false"}, {"field": field, "equals": ""}]}


_MOST = f"{TYPE}/scaleSettings.maxNodeCount"
_LEAST = f"{TYPE}/scaleSettings.minNodeCount"
_WAITS = f"{TYPE}/scaleSettings.nodeIdleTimeBeforeScaleDown"


def _more_than(alias: str, number: Any) -> dict[str, Any]:
    # An order with a property that is not there is an error at Azure's gate.
    return {"allOf": [{"field": alias, "exists": "true"}, {"field": alias, "greater": number}]}


def _number(title: str, value: int) -> dict[str, Any]:
    return {"type": "Integer", "metadata": {"displayName": title}, "defaultValue": value}


def _above(code: str, alias: str, nodes: int) -> _Parts:
    """A rule on a number of nodes."""
    condition = _on_clusters(_more_than(alias, "[parameters('nodes')]"))
    return code, "", {"mode": "All", "if": condition, "parameters": {"nodes": _number("Most nodes", nodes)}}


def _fabric(known: Sequence[Size]) -> _Parts:
    """RDMA without SR-IOV at any number of nodes; GPUs without InfiniBand beyond one, where jobs may span nodes."""
    bad = [size.name for size in known if size.fabric.rdma and not size.fabric.sriov]
    alone = [size.name for size in known if size.gpus and not size.fabric.usable and size.name not in bad]
    spans = {
        "allOf": [
            {"field": f"{TYPE}/vmSize", "in": "[parameters('withoutInfiniBand')]"},
            _more_than(_MOST, 1),
            {"not": {"field": f"tags['{checks.size.SINGLE_NODE_TAG}']", "equals": "true"}},
        ]
    }
    condition = {"anyOf": [{"field": f"{TYPE}/vmSize", "in": "[parameters('sizes')]"}, spans]}
    titles = {"sizes": "Sizes with RDMA without SR-IOV", "withoutInfiniBand": "Sizes with GPUs without InfiniBand"}
    parameters = {
        name: {"type": "Array", "metadata": {"displayName": titles[name]}, "defaultValue": names}
        for name, names in (("sizes", bad), ("withoutInfiniBand", alone))
    }
    return "sriov-fabric", "", {"mode": "All", "if": _on_clusters(condition), "parameters": parameters}


def _budget(known: Sequence[Size], *, gpus: int | None = None, vcpus: int | None = None) -> _Parts:
    """Sizes grouped by how many nodes of them the budget has room for: a condition cannot multiply."""
    groups: dict[int, list[str]] = {}
    for size in known:
        bounds = [
            int(most) // each
            for each, most in ((size.gpus, gpus), (size.vcpus or 0, vcpus))
            if most is not None and each
        ]
        if bounds:
            groups.setdefault(min(bounds), []).append(size.name)
    over = [
        {"allOf": [{"field": f"{TYPE}/vmSize", "in": names}, {"field": _MOST, "greater": nodes}]}
        for nodes, names in sorted(groups.items())
    ]
    condition = {"allOf": [{"field": _MOST, "exists": "true"}, {"anyOf": over}]}
    return "cluster-budget", "", {"mode": "All", "if": _on_clusters(condition)}


def _idle(minutes: int) -> _Parts:
    """The idle time is an ISO duration, which Azure Policy orders as a text: its parts are read and added up.

    Azure takes days, hours, minutes and seconds; a fraction of a second counts as a whole one. Weeks, months and what
    is no duration are refused as the rule refuses them.
    """
    whole = f"toUpper(trim(field('{_WAITS}')))"
    date, clock = f"first(split({whole}, 'T'))", f"split(concat({whole}, 'T'), 'T')[1]"
    after_hours = f"last(split({clock}, 'H'))"
    after_minutes = f"last(split({after_hours}, 'M'))"
    seconds = f"first(split({after_minutes}, 'S'))"

    def part(text: str, unit: str, seconds_each: int) -> str:
        digits = f"replace(first(split({text}, '{unit}')), 'P', '')"
        return f"if(contains({text}, '{unit}'), mul(int({digits}), {seconds_each}), 0)"

    rounded = f"add(int(first(split({seconds}, '.'))), if(contains({seconds}, '.'), 1, 0))"
    terms = [
        part(date, "D", 86_400),
        part(clock, "H", 3_600),
        part(after_hours, "M", 60),
        f"if(contains({after_minutes}, 'S'), {rounded}, 0)",
    ]
    total = functools.reduce(lambda sum_, term: f"add({sum_}, {term})", terms)
    condition = {
        "anyOf": [
            {"field": _WAITS, "exists": "false"},
            {"not": {"anyOf": [{"value": f"[{date}]", "equals": "P"}, {"value": f"[{date}]", "like": "P*D"}]}},
            {"value": f"[{whole}]", "in": ["P", "PT"]},
            {"value": f"[last(split({after_minutes}, 'S'))]", "notEquals": ""},
            {"value": f"[{total}]", "greater": "[mul(parameters('minutes'), 60)]"},
        ]
    }
    parameters = {"minutes": _number("Longest time in minutes that a node may wait for work", minutes)}
    return "idle-time", "", {"mode": "All", "if": _on_clusters(condition), "parameters": parameters}


def _region(regions: list[str]) -> _Parts:
    codes = ["global", *("".join(name.lower().split()) for name in regions)]
    parameter = {"type": "Array", "metadata": {"displayName": "Approved regions"}, "defaultValue": codes}
    condition = {"field": "location", "notIn": "[parameters('regions')]"}
    return "region-approved", "", {"mode": "Indexed", "if": condition, "parameters": {"regions": parameter}}


def _tag(name: str) -> _Parts:
    # A tag may be named as no definition may.
    suffix = re.sub(r"[^A-Za-z0-9_.-]", "-", name)[:24].rstrip(".")
    return "tags-required", f"-{suffix}", {"mode": "Indexed", "if": _unless_there(f"tags['{name}']")}


def reason(code: str) -> str | None:
    """The reason why a rule is not exported, or only in part; None where it is whole."""
    return NOT_EXPRESSIBLE.get(code) or IN_PART.get(code)


EXPRESSIBLE = tuple(rule.code for rule in ALL if rule.code not in NOT_EXPRESSIBLE)
"""Codes of the rules that Azure Policy can express, wholly or in part."""
