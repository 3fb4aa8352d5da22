"""Keys of azure-ai-ml's own template that a present request lacks: data, each left out or read as intended.

Source: azure-ai-ml 1.35, ``_arm_deployments/arm_templates/workspace_base.json``; its api-versions (2020-08-01,
2023-08-01-preview) are older than those of azure-native's classes, by which bodies are judged here. A value that would
have an effect is not left out: it is refused by name.

The expressions of a template in their scope: parameters, variables, and what is deployed beside them.

Source: Azure Resource Manager documentation, "ARM template functions". A function that is not here is named in the
refusal.

A deployment, from the request to the resources: each is put as a client of its own would put it, in order.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

from amlstack.base.arm_language.expressions import LAZY, Evaluator
from amlstack.base.arm_language.functions import OpenError, truth
from amlstack.sandbox import kinds
from amlstack.sandbox.protocol.entra import TENANT
from amlstack.sandbox.protocol.kind import BY_STATUS, SOON, Body, KindContext, Reply
from amlstack.sandbox.protocol.refusals import Refused, invalid, not_emulated
from amlstack.sandbox.protocol.times import iso

if TYPE_CHECKING:
    from amlstack.sandbox.store.store import ResourceRow
    from amlstack.sandbox.store.tables import Operation


@dataclass(frozen=True, slots=True)
class Tolerated:
    """Of one type.

    Attributes:
        without_effect: Paths that are left out, each with the values that mean nothing; an empty set for any value.
        truths: Names under ``properties`` whose ``"true"`` and ``"false"`` are truth values.
    """

    without_effect: Mapping[str, frozenset[Any]]
    truths: frozenset[str] = frozenset()


_ANY: Final[frozenset[Any]] = frozenset()
_NO: Final[frozenset[Any]] = frozenset({"false", "False", False})
_YES_AND_NO: Final[frozenset[Any]] = _NO | {"true", "True", True}
"""The service assigns roles to the workspace's identity or does not; the sandbox refuses nothing for want of a role."""
OF_TYPE: Final[Mapping[str, Tolerated]] = {
    "microsoft.operationalinsights/workspaces": Tolerated({"kind": _ANY, "properties.Application_Type": _ANY}),
    "microsoft.machinelearningservices/workspaces": Tolerated(
        {
            "properties.softDeleteEnabled": _NO,
            "properties.allowRecoverSoftDeletedWorkspace": _NO,
            "properties.featureStoreSettings.computeruntime": _ANY,
            "properties.existingWorkspaces": _ANY,
            "properties.allowRoleAssignmentOnRG": _YES_AND_NO,
            "properties.provisionNetworkNow": _NO,
            "properties.encryption.status": frozenset({"Disabled"}),
        },
        frozenset({"hbiWorkspace", "enableDataIsolation", "provisionNetworkNow", "enableSoftwareBillOfMaterials"}),
    ),
}


def read(kind: str, body: dict[str, Any]) -> dict[str, Any]:
    """A body of a template as a request of today has it: without nulls, empty texts, and what has no effect."""
    row = OF_TYPE.get(kind.lower(), Tolerated({}))
    result: dict[str, Any] = _without_nothing(body)
    for path, values in row.without_effect.items():
        *above, last = path.split(".")
        place: Any = result
        for name in above:
            place = place.get(name, {}) if isinstance(place, dict) else {}
        if isinstance(place, dict) and last in place and (not values or place[last] in values):
            del place[last]
    properties = result.get("properties")
    if isinstance(properties, dict):
        for name in row.truths & properties.keys():
            if str(properties[name]).lower() in ("true", "false"):
                properties[name] = str(properties[name]).lower() == "true"
    return dict(_without_empty(result)) if row.without_effect else result


def _without_nothing(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _without_nothing(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each is not None and each != ""}
    return [_without_nothing(each) for each in value] if isinstance(value, list) else value


def _without_empty(value: Any) -> Any:
    """Without objects that hold nothing, from the inside out; what an id leads to may be empty."""
    if not isinstance(value, dict):
        return value
    kept = {key: _without_empty(each) for key, each in value.items()}
    return {key: each for key, each in kept.items() if each not in ({}, []) or key.startswith("/")}


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
        """True where the condition of a resource holds."""
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


Put = Callable[[str, str, Body], None]

TYPE = "Microsoft.Resources/deployments"
_PATH = re.compile(
    r"(?P<group>/subscriptions/[^/]+/resourcegroups/[^/]+)/(?:providers/Microsoft\.Resources/)?deployments/"
    r"(?P<name>[^/]+)(?P<below>/operations|/validate)?",
    re.IGNORECASE,
)


def answer(context: KindContext, method: str, text: str, body: Any, put: Put) -> Reply | None:
    """Answers a PUT, a GET or the validation of a deployment and the list of its operations; None for every other path.

    Args:
        context: State and address.
        method: Of the request.
        text: Its path.
        body: Of a PUT.
        put: Puts a resource of the template, by its path and api-version, and waits until it is there.

    Raises:
        Refused: The template is none, or one of its resources is refused.
    """
    found = _PATH.fullmatch(text)
    if found is None:
        return None
    group = context.store.resources.get(found["group"])
    if group is None:
        name = found["group"].rpartition("/")[2]
        raise Refused(404, "ResourceGroupNotFound", f"Resource group '{name}' could not be found.")
    own = f"{group.id}/providers/{TYPE}/{found['name']}"
    if method == "PUT" and not found["below"]:
        reply = _put(context, own, group, body, put)
        started = context.store.operations.start(own, "create", 4)
        address = f"{context.base}{text}/operationStatuses/{uuid.UUID(started.id)}?api-version=2025-04-01"
        return replace(reply, headers={BY_STATUS: address, **SOON})
    if method == "POST" and str(found["below"]).lower() == "/validate":
        return _validated(context, own, group, body)
    stored = context.store.resources.get(own)
    if stored is None:
        raise Refused(404, "DeploymentNotFound", f"Deployment '{found['name']}' could not be found.")
    if method != "GET":
        raise not_emulated(f"{method} of {TYPE}")
    if not found["below"]:
        return Reply(200, _shown(own, stored.body))
    deployed = stored.body["properties"]
    targets = [*(each["id"] for each in deployed["outputResources"]), ""]
    return Reply(200, {"value": [_operation(own, number, each, deployed) for number, each in enumerate(targets)]})


def state(operation: Operation) -> str | None:
    """The state of a deployment's operation under way; None for any other operation."""
    if operation.status != "InProgress" or f"/{TYPE}/".lower() not in operation.resource:
        return None
    return "Accepted" if operation.ticks > 1 else "Running"


def _read(context: KindContext, group: ResourceRow, body: Any) -> Template:
    """The template of a request, with the values of its parameters."""
    properties = body.get("properties") if isinstance(body, dict) else None
    content = properties.get("template") if isinstance(properties, dict) else None
    if not isinstance(content, dict) or not isinstance(properties, dict):
        raise invalid("properties.template", "a template beside the request was expected; links are not followed.")
    if str(properties.get("mode", "Incremental")).lower() != "incremental":
        raise not_emulated("the mode 'Complete' of deployments, only Incremental")
    given = {name: each.get("value") for name, each in (properties.get("parameters") or {}).items()}

    def known(named: str) -> Mapping[str, Any] | None:
        row = context.store.resources.get(named)
        kind = None if row is None else kinds.find(row.type)
        return None if row is None or kind is None else kind.render(context, row)

    return Template(content, given, group.id, str(group.body.get("location")), known)


def _validated(context: KindContext, own: str, group: ResourceRow, body: Any) -> Reply:
    """The resources that a template would make; their bodies are judged when they are put.

    Source: a recording of azure-ai-ml's test of a component's validation, 2023-05.
    """
    template = _read(context, group, body)
    found = [(str(each["type"]), template.worked_out(each["name"])) for each in _ordered(template)]
    if (unknown := next((kind for kind, _ in found if kinds.find(kind) is None), None)) is not None:
        raise not_emulated(f"the type '{unknown}'")
    properties = {
        "parameters": {},
        "mode": "Incremental",
        "provisioningState": "Succeeded",
        "dependencies": [],
        "validatedResources": [{"id": template.id_of(*each)} for each in found],
    }
    return Reply(200, _shown(own, {"properties": properties}))


def _put(context: KindContext, own: str, group: ResourceRow, body: Any, put: Put) -> Reply:
    begun = time.monotonic()
    template = _read(context, group, body)
    made = [_make(template, resource, put) for resource in _ordered(template)]
    outputs = {
        name: {**each, "value": template.worked_out(each["value"])}
        for name, each in (template.content.get("outputs") or {}).items()
    }
    hashed = hashlib.sha256(json.dumps(template.content, sort_keys=True).encode()).hexdigest()
    asked = {
        "templateHash": str(int(hashed[:16], 16)).zfill(20),
        "parameters": dict(_parameters(template)),
        "mode": "Incremental",
        "provisioningState": "Accepted",
        "timestamp": iso(time.time()),
        "duration": "PT0S",
        "correlationId": str(uuid.uuid4()),
        "providers": _providers(template),
        "dependencies": list(_dependencies(template)),
    }
    done = {
        "provisioningState": "Succeeded",
        "timestamp": iso(time.time()),
        "duration": _lasted(time.monotonic() - begun),
        **({"outputs": outputs} if outputs else {}),
        "outputResources": [{"id": each} for each in sorted(made, key=str.lower)],
    }
    context.store.resources.put(own, TYPE, group.key, {"properties": {**asked, **done}})
    return Reply(201, _shown(own, {"properties": asked}))


def _lasted(seconds: float) -> str:
    minutes = f"{int(seconds // 60)}M" if seconds >= 60 else ""
    return f"PT{minutes}{seconds % 60:.7f}S"


def _parameters(template: Template) -> Iterator[tuple[str, Body]]:
    """Each parameter with its type and value; a secret has no value."""
    for name, declared in (template.content.get("parameters") or {}).items():
        kind = str(declared.get("type", "String"))
        kind = kind[:1].upper() + kind[1:]
        try:
            yield name, {"type": kind, **({} if kind.startswith("Secure") else {"value": _parameter(template, name)})}
        except OpenError:  # nothing that is deployed asks for it
            yield name, {"type": kind}


def _if_known(template: Template, node: Any) -> Any:
    """The value of a part of a resource that need not be wanted; None where it has none."""
    try:
        return template.worked_out(node)
    except Refused:
        return None


def _providers(template: Template) -> list[Body]:
    """The types that are deployed, by their namespaces, each with its regions."""
    found: dict[str, dict[str, list[Any]]] = {}
    for each in template.content.get("resources") or []:
        if template.wanted(each):
            namespace, _, kind = each["type"].partition("/")
            at = template.worked_out(each["location"]) if "location" in each else None
            places = found.setdefault(namespace, {}).setdefault(kind, [])
            places += [] if at in places else [at]
    return [
        {"namespace": name, "resourceTypes": [{"resourceType": kind, "locations": at} for kind, at in types.items()]}
        for name, types in found.items()
    ]


def _dependencies(template: Template) -> Iterator[Body]:
    """Each resource that depends on others, whether its condition holds or not."""
    named = {}
    for each in template.content.get("resources") or []:
        words = template.group.split("/")
        words[4] = str(_if_known(template, each["resourceGroup"])) if "resourceGroup" in each else words[4]
        name = _if_known(template, each["name"])
        if not isinstance(name, str) or name.count("/") != each["type"].count("/") - 1:
            continue  # of one whose condition does not hold, the name may be anything
        row = {"id": template.id_of(each["type"], name, "/".join(words))}
        named[row["id"].lower()] = {**row, "resourceType": each["type"], "resourceName": name}, each
    for row, each in named.values():
        wanted = [str(_if_known(template, one)).lower() for one in each.get("dependsOn") or []]
        behind = [own for one in wanted for key, (own, _) in named.items() if key == one or key.endswith(f"/{one}")]
        if behind:
            yield {"dependsOn": behind, **row}


def _ordered(template: Template) -> list[Body]:
    """The resources whose condition holds, each behind those that it depends on."""
    pending = [each for each in template.content.get("resources") or [] if template.wanted(each)]
    ids = [template.id_of(each["type"], template.worked_out(each["name"])).lower() for each in pending]
    done: list[Body] = []
    left = dict(zip(ids, pending, strict=True))
    while left:
        ready = [own for own, each in left.items() if not _awaited(template, each, left)]
        if not ready:
            raise invalid("properties.template.resources", "the resources depend on each other in a circle.")
        done += [left.pop(own) for own in ready]
    return done


def _awaited(template: Template, resource: Mapping[str, Any], left: Mapping[str, Any]) -> bool:
    """True where a resource depends, by id or by name, on one that is still to come."""
    names = [str(template.worked_out(each)).lower() for each in resource.get("dependsOn") or []]
    return any(own == name or own.endswith(f"/{name}") for own in left for name in names)


def _make(template: Template, resource: Mapping[str, Any], put: Put) -> str:
    kind, name = resource["type"], template.worked_out(resource["name"])
    own = template.id_of(kind, name)
    skipped = ("type", "name", "apiVersion", "condition", "dependsOn", "comments", "resources", "scope", "copy")
    body = read(kind, template.worked_out({key: each for key, each in resource.items() if key not in skipped}))
    try:
        put(own, template.worked_out(resource["apiVersion"]), body)
    except Refused as refused:
        message = f"At least one resource deployment operation failed: {own}: {refused.message}"
        raise Refused(refused.status, "DeploymentFailed", message, refused.target) from None
    return own


def _shown(own: str, body: Body) -> Body:
    return {"id": own, "name": own.rpartition("/")[2], "type": TYPE, **body}


def _operation(own: str, number: int, target: str, deployed: Body) -> Body:
    """The operation that made a target; of none, the one that worked out the outputs (azure-ai-ml, 2023-04-25)."""
    words = target.partition("/providers/")[2].split("/")
    resource = {"id": target, "resourceType": "/".join([words[0], *words[1::2]]), "resourceName": words[-1]}
    properties = {
        "provisioningOperation": "Create" if target else "EvaluateDeploymentOutput",
        "provisioningState": "Succeeded",
        **{key: deployed[key] for key in ("timestamp", "duration")},
        "trackingId": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{own}{number}")),
        "statusCode": "OK",
        **({"targetResource": resource} if target else {}),
    }
    mark = hashlib.sha256((target or own).lower().encode()).hexdigest()[:16].upper()
    mark = mark if target else str(int(mark, 16)).zfill(20)
    return {"id": f"{own}/operations/{mark}", "operationId": mark, "properties": properties}
