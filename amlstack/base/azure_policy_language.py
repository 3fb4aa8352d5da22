"""Azure Policy's own language, as far as this project's definitions use it: conditions evaluated on one resource.

Comparisons ignore letter case, as Azure's do. Source of the operators: Azure Policy definition structure, policy rule.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

COMPUTES = "Microsoft.MachineLearningServices/workspaces/computes"

ALIASES: Mapping[str, tuple[str, ...]] = {
    f"{COMPUTES}/vmSize": ("properties", "properties", "vmSize"),
    f"{COMPUTES}/computeType": ("properties", "computeType"),
    f"{COMPUTES}/disableLocalAuth": ("properties", "disableLocalAuth"),
    f"{COMPUTES}/enableNodePublicIp": ("properties", "properties", "enableNodePublicIp"),
    f"{COMPUTES}/remoteLoginPortPublicAccess": ("properties", "properties", "remoteLoginPortPublicAccess"),
    f"{COMPUTES}/subnet.id": ("properties", "properties", "subnet", "id"),
}
"""Where in a request's body the property of an alias stands."""

_OPERATORS = frozenset({"exists", "equals", "notEquals", "in", "notIn", "contains"})
_PARAMETER = re.compile(r"\[parameters\('(?P<name>[^']+)'\)\]")
_TAG = re.compile(r"tags\['(?P<name>.+)'\]")


class NotEvaluatedError(ValueError):
    """A condition uses something of the language that is not evaluated here; the message names it."""


def hits(condition: Mapping[str, Any], kind: str, resource: Mapping[str, Any], parameters: Mapping[str, Any]) -> bool:
    """Whether a condition (the ``if`` of a rule) is true of a resource.

    Args:
        condition: The condition.
        kind: The resource's type, ``Microsoft.X/a/b``.
        resource: Its body: location, tags, identity, properties.
        parameters: Values of the definition's parameters.

    Raises:
        NotEvaluatedError: It uses an operator, a field or an expression that is not evaluated here.
    """
    if "allOf" in condition:
        return False not in _each(condition["allOf"], kind, resource, parameters)
    if "anyOf" in condition:
        return True in _each(condition["anyOf"], kind, resource, parameters)
    if "not" in condition:
        return not hits(condition["not"], kind, resource, parameters)
    operators = set(condition) - {"field"}
    if "field" not in condition or len(operators) != 1 or not operators <= _OPERATORS:
        raise NotEvaluatedError(f"the condition {', '.join(sorted(condition))}")
    (operator,) = operators
    value = _field(str(condition["field"]), kind, resource)
    wanted = resolved(condition[operator], parameters)
    text = "" if value is None else str(value).lower()
    match operator:
        case "exists":
            return (value is not None) is (str(wanted).lower() == "true")
        case "equals":
            return value is not None and text == str(wanted).lower()
        case "notEquals":
            return value is None or text != str(wanted).lower()
        case "in":
            return value is not None and text in _listed(wanted)
        case "notIn":
            return value is None or text not in _listed(wanted)
        case _:  # contains
            return value is not None and str(wanted).lower() in text


def _each(conditions: Any, kind: str, resource: Mapping[str, Any], parameters: Mapping[str, Any]) -> set[bool]:
    """The answers of all, so that what is not evaluated is found wherever it stands."""
    return {hits(condition, kind, resource, parameters) for condition in conditions}


def resolved(value: Any, parameters: Mapping[str, Any]) -> Any:
    """A value with ``[parameters('x')]`` replaced by that parameter's.

    Raises:
        NotEvaluatedError: It is another expression, or names no parameter.
    """
    if not isinstance(value, str) or not value.startswith("[") or value.startswith("[["):
        return value
    found = _PARAMETER.fullmatch(value)
    if found is None or found["name"] not in parameters:
        raise NotEvaluatedError(f"the expression {value}")
    return parameters[found["name"]]


def values(declared: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Values of declared parameters: what is given, else the default; those with neither are left out."""
    defaults = {name: each["defaultValue"] for name, each in declared.items() if "defaultValue" in each}
    return {**defaults, **{name: given[name] for name in declared if name in given}}


def _listed(value: Any) -> set[str]:
    return {str(each).lower() for each in value} if isinstance(value, list | tuple) else set()


def _field(name: str, kind: str, resource: Mapping[str, Any]) -> Any:
    if name == "type":
        return kind
    if tag := _TAG.fullmatch(name):
        tags = {key.lower(): value for key, value in (resource.get("tags") or {}).items()}
        return tags.get(tag["name"].lower())
    if name == "location":  # Azure hands a policy the code of a region
        return "".join(str(resource["location"]).lower().split()) if resource.get("location") else None
    path = ("identity", "type") if name == "identity.type" else ALIASES.get(name)
    if path is None:
        raise NotEvaluatedError(f"the field {name}")
    if name in ALIASES and kind.lower() != COMPUTES.lower():
        return None
    value: Any = resource
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value
