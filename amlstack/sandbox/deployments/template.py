"""The expressions of a template in their scope: parameters, variables, and what is deployed beside them.

Source: Azure Resource Manager documentation, "ARM template functions". A function that is not here is named in the
refusal.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from amlstack.base.arm_language.functions import FUNCTIONS, truth
from amlstack.base.arm_language.syntax import Access, Literal, NotAnExpressionError, parse
from amlstack.base.arm_language.values import OpenError
from amlstack.sandbox.arm.entra import TENANT
from amlstack.sandbox.arm.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from amlstack.base.arm_language.syntax import Node

_BROKEN = (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError)


@dataclass(slots=True)
class Template:
    """A template with the values of its parameters.

    Attributes:
        content: The template.
        given: Values of its parameters, by name.
        group: ARM id of the resource group.
        location: Its region.
        reference: What is known of a resource by its id: the resource as a GET answers it, or None.
        variables: Those worked out so far, by name in lower case.
    """

    content: Mapping[str, Any]
    given: Mapping[str, Any]
    group: str
    location: str
    reference: Callable[[str], Mapping[str, Any] | None]
    variables: dict[str, Any] = field(default_factory=dict)

    def value(self, raw: Any) -> Any:
        """A value with every expression in it worked out.

        Raises:
            Refused: An expression is none, or asks for what is not there.
        """
        if isinstance(raw, str):
            if not (raw.startswith("[") and raw.endswith("]")) or raw.startswith("[["):
                return raw[1:] if raw.startswith("[[") else raw
            return self._expression(raw)
        if isinstance(raw, list):
            return [self.value(one) for one in raw]
        if isinstance(raw, dict):
            return {key: self.value(one) for key, one in raw.items()}
        return raw

    def wanted(self, resource: Mapping[str, Any]) -> bool:
        """Whether the condition of a resource holds."""
        return bool(truth(self.value(resource.get("condition", True))))

    def id_of(self, kind: str, name: str, group: str = "") -> str:
        """ARM id of a resource in the group: ``Microsoft.X/a/b`` and ``one/two``."""
        namespace, *kinds = kind.split("/")
        pairs = zip(kinds, name.split("/"), strict=True)
        return "/".join((group or self.group, "providers", namespace, *(word for pair in pairs for word in pair)))

    def _expression(self, text: str) -> Any:
        try:
            return self.worked_out(parse(text))
        except (NotAnExpressionError, OpenError) as error:
            reason = str(error)
        except _BROKEN as error:
            reason = f"{type(error).__name__}: {error}"
        message = f"Deployment template language expression evaluation failed: '{text[:200]}': {reason[:200]}"
        raise Refused(400, "InvalidTemplate", message)

    def worked_out(self, node: Node) -> Any:
        """The value of one node of an expression; raises whatever is in its way."""
        if isinstance(node, Literal):
            return node.value
        if isinstance(node, Access):
            return _member(self.worked_out(node.of), self.worked_out(node.key))
        if node.name in _LAZY:
            return _LAZY[node.name](self, *node.arguments)
        arguments = [self.worked_out(one) for one in node.arguments]
        if node.name in _KNOWING:
            return _KNOWING[node.name](self, *arguments)
        if node.name in FUNCTIONS:
            return FUNCTIONS[node.name](*arguments)
        raise OpenError(f"the sandbox does not work out the function `{node.name}`")


def _parameter(scope: Template, name: str) -> Any:
    known = {key.lower(): key for key in scope.content.get("parameters") or {}}
    key = known.get(name.lower())
    given = {each.lower(): value for each, value in scope.given.items()}
    if name.lower() in given:
        return given[name.lower()]
    if key is None or "defaultValue" not in scope.content["parameters"][key]:
        raise OpenError(f"the parameter `{name}` has no value")
    return scope.value(scope.content["parameters"][key]["defaultValue"])


def _variable(scope: Template, name: str) -> Any:
    variables = {key.lower(): value for key, value in (scope.content.get("variables") or {}).items()}
    if name.lower() not in scope.variables:
        scope.variables[name.lower()] = scope.value(variables[name.lower()])
    return scope.variables[name.lower()]


def _resource_id(scope: Template, *words: str) -> str:
    at = next(index for index, word in enumerate(words) if "/" in word)
    before, kind, names = words[:at], words[at], words[at + 1 :]
    subscription = before[-2] if len(before) > 1 else scope.group.split("/")[2]
    group = before[-1] if before else scope.group.split("/")[4]
    return scope.id_of(kind, "/".join(names), f"/subscriptions/{subscription}/resourceGroups/{group}")


def _subscription_resource_id(scope: Template, *words: str) -> str:
    at = next(index for index, word in enumerate(words) if "/" in word)
    subscription = words[0] if at else scope.group.split("/")[2]
    return scope.id_of(words[at], "/".join(words[at + 1 :]), f"/subscriptions/{subscription}")


def _referenced(scope: Template, named: str, _version: str = "", full: str = "") -> Any:
    found = scope.reference(named)
    if found is None:
        raise OpenError(f"there is no resource `{named}`")
    return found if full.lower() == "full" else found.get("properties", {})


def _resource_group(scope: Template) -> dict[str, Any]:
    return {"id": scope.group, "name": scope.group.split("/")[4], "location": scope.location, "tags": {}}


def _subscription(scope: Template) -> dict[str, Any]:
    own = scope.group.split("/")[2]
    return {"id": f"/subscriptions/{own}", "subscriptionId": own, "tenantId": TENANT, "displayName": "amlstack"}


def _member(value: Any, key: Any) -> Any:
    if isinstance(value, dict) and isinstance(key, str):
        by_name = {name.lower(): one for name, one in value.items()}
        return by_name[key.lower()]
    return value[key]


def _if(scope: Template, condition: Node, then: Node, otherwise: Node) -> Any:
    return scope.worked_out(then if truth(scope.worked_out(condition)) else otherwise)


def _and(scope: Template, *parts: Node) -> bool:
    return all(truth(scope.worked_out(part)) for part in parts)


def _or(scope: Template, *parts: Node) -> bool:
    return any(truth(scope.worked_out(part)) for part in parts)


_LAZY: Mapping[str, Callable[..., Any]] = {"if": _if, "and": _and, "or": _or}
"""Functions that look at an argument only when they need it."""

_KNOWING: Mapping[str, Callable[..., Any]] = {
    "parameters": _parameter,
    "variables": _variable,
    "resourceid": _resource_id,
    "subscriptionresourceid": _subscription_resource_id,
    "reference": _referenced,
    "resourcegroup": _resource_group,
    "subscription": _subscription,
    "guid": lambda _, *words: str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(map(str, words)))),
    "newguid": lambda _: str(uuid.uuid4()),
    # Thirteen letters and digits that follow from the words, as Azure's; not the same ones.
    "uniquestring": lambda _, *words: hashlib.sha256("/".join(map(str, words)).encode()).hexdigest()[:13],
}
"""Functions that know the template or where it is deployed."""
