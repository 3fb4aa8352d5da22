"""The expressions of a template in their scope: parameters, variables, and what is deployed beside them.

Source: Azure Resource Manager documentation, "ARM template functions". A function that is not here is named in the
refusal.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from amlstack.base.arm_language.evaluation import LAZY, Evaluator
from amlstack.base.arm_language.functions import truth
from amlstack.base.arm_language.values import OpenError
from amlstack.sandbox.arm.entra import TENANT
from amlstack.sandbox.arm.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(slots=True)
class Template(Evaluator):
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

    special: ClassVar[Mapping[str, Callable[..., Any]]]

    def expression(self, text: str) -> Any:
        """The value of an expression.

        Raises:
            Refused: It is none, or asks for what is not there.
        """
        try:
            return Evaluator.expression(self, text)
        except OpenError as error:
            message = f"Deployment template language expression evaluation failed: '{text[:200]}': {str(error)[:200]}"
            raise Refused(400, "InvalidTemplate", message) from None

    def wanted(self, resource: Mapping[str, Any]) -> bool:
        """Whether the condition of a resource holds."""
        return bool(truth(self.worked_out(resource.get("condition", True))))

    def id_of(self, kind: str, name: str, group: str = "") -> str:
        """ARM id of a resource in the group: ``Microsoft.X/a/b`` and ``one/two``."""
        namespace, *kinds = kind.split("/")
        pairs = zip(kinds, name.split("/"), strict=True)
        return "/".join((group or self.group, "providers", namespace, *(word for pair in pairs for word in pair)))


def _parameter(scope: Template, name: str) -> Any:
    known = {key.lower(): key for key in scope.content.get("parameters") or {}}
    key = known.get(name.lower())
    given = {each.lower(): value for each, value in scope.given.items()}
    if name.lower() in given:
        return given[name.lower()]
    if key is None or "defaultValue" not in scope.content["parameters"][key]:
        raise OpenError(f"the parameter `{name}` has no value")
    return scope.worked_out(scope.content["parameters"][key]["defaultValue"])


def _variable(scope: Template, name: str) -> Any:
    variables = {key.lower(): value for key, value in (scope.content.get("variables") or {}).items()}
    if name.lower() not in scope.variables:
        scope.variables[name.lower()] = scope.worked_out(variables[name.lower()])
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


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the template and of values."""
    return lambda scope, *nodes: function(scope, *map(scope.closed, nodes))


Template.special = {
    **LAZY,
    "parameters": _plain(_parameter),
    "variables": _plain(_variable),
    "resourceid": _plain(_resource_id),
    "subscriptionresourceid": _plain(_subscription_resource_id),
    "reference": _plain(_referenced),
    "resourcegroup": _resource_group,
    "subscription": _subscription,
    "guid": _plain(lambda _, *words: str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(map(str, words))))),
    "newguid": lambda _: str(uuid.uuid4()),
    # Thirteen letters and digits that follow from the words, as Azure's; not the same ones.
    "uniquestring": _plain(lambda _, *words: hashlib.sha256("/".join(map(str, words)).encode()).hexdigest()[:13]),
}
