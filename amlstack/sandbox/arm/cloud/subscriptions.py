"""Reads of a subscription as a whole: the subscriptions and the tenant, all resources, the providers of types."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from amlstack.sandbox import kinds
from amlstack.sandbox.arm import api_versions
from amlstack.sandbox.arm.entra import SUBSCRIPTION, SUBSCRIPTIONS, TENANT
from amlstack.sandbox.arm.ids import GROUPS, ML
from amlstack.sandbox.arm.refusals import Refused, near, not_emulated
from amlstack.sandbox.kinds.base import Reply

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from amlstack.sandbox.kinds.base import Body, KindContext, ResourceKind
    from amlstack.sandbox.store.store import ResourceRow

ABOVE = ("/subscriptions", "/tenants")
"""Paths above any subscription."""
_CHECK = re.compile(r"/subscriptions/[^/]+/providers/([^/]+)/checkNameAvailability", re.IGNORECASE)
_OPERATIONS = re.compile(r"/providers/([^/]+)/operations/?", re.IGNORECASE)
_NAMED_ONCE = {
    "microsoft.storage": "Microsoft.Storage/storageAccounts",
    "microsoft.keyvault": "Microsoft.KeyVault/vaults",
    "microsoft.containerregistry": "Microsoft.ContainerRegistry/registries",
}
"""Types whose names are taken once in the whole of Azure, by their namespace."""
_FILTER = re.compile(r"(resourceGroup|resourceType|name|location)\s+eq\s+'([^']*)'", re.IGNORECASE)


def above(path: str) -> Reply | None:
    """Answers ``GET /subscriptions``, ``/tenants`` and ``/providers/{namespace}/operations``; None for other paths."""
    if path not in ABOVE:
        return _operations(path)
    if path == "/tenants":
        one = {"id": f"/tenants/{TENANT}", "tenantId": TENANT, "displayName": "amlstack sandbox"}
        return Reply(200, {"value": [one]})
    return Reply(200, {"value": [_subscription(each) for each in SUBSCRIPTIONS], "count": _count(len(SUBSCRIPTIONS))})


def _operations(path: str) -> Reply | None:
    """What can be done with the types of a namespace."""
    found = _OPERATIONS.fullmatch(path)
    if found is None:
        return None
    known = {each.lower(): each for each in _namespaces()}
    if found[1].lower() not in known:
        message = f"The resource namespace '{found[1]}' is invalid.{near(found[1], known.values())}"
        raise Refused(404, "InvalidResourceNamespace", message)
    of_it = [kind for kind in kinds.ALL if kind.type.partition("/")[0] == known[found[1].lower()]]
    return Reply(200, {"value": [_operation(kind, verb) for kind in of_it for verb in _verbs(kind)]})


def _verbs(kind: ResourceKind) -> Iterator[str]:
    yield "read"
    if not kind.read_only:
        yield from ("write", "delete")
    yield from (f"{action}/action" for action in kind.actions)


def _operation(kind: ResourceKind, verb: str) -> Body:
    provider, _, resource = kind.type.partition("/")
    display = {"provider": provider, "resource": resource, "operation": verb, "description": f"{verb} {resource}"}
    return {"name": f"{kind.type}/{verb}", "isDataAction": False, "display": display}


def answer(context: KindContext, method: str, text: str, query: Mapping[str, str], body: Any) -> Reply | None:
    """Answers a read of the subscription itself, or of what lies in it whatever its group; None for other paths.

    Raises:
        Refused: The filter, or the provider, is one that the sandbox does not know.
    """
    if method == "POST" and (found := _CHECK.fullmatch(text)) and found[1].lower() in _NAMED_ONCE:
        return Reply(200, _availability(context, _NAMED_ONCE[found[1].lower()], body))
    if method != "GET":
        return None
    if found := re.fullmatch(r"/subscriptions/([^/]+)", text, re.IGNORECASE):
        return Reply(200, _subscription(found[1].lower()))
    if found := re.fullmatch(r"(/subscriptions/[^/]+(?:/resourceGroups/[^/]+)?)/resources", text, re.IGNORECASE):
        return Reply(200, {"value": list(_resources(context, found[1], query.get("$filter", "")))})
    if re.fullmatch(r"/subscriptions/[^/]+/providers", text, re.IGNORECASE):
        return Reply(200, {"value": [_provider(each) for each in sorted(_namespaces())]})
    if found := re.fullmatch(r"/subscriptions/[^/]+/providers/([^/]+)", text, re.IGNORECASE):
        known = {each.lower(): each for each in _namespaces()}
        if found[1].lower() not in known:
            message = f"The resource namespace '{found[1]}' is invalid.{near(found[1], known.values())}"
            raise Refused(404, "InvalidResourceNamespace", message)
        return Reply(200, _provider(known[found[1].lower()]))
    if found := re.fullmatch(r"(/subscriptions/[^/]+)/providers/([^/]+/[^/]+)", text, re.IGNORECASE):
        if found[2].lower() == f"{ML}/registries".lower():  # azureml is Microsoft's own, and in no subscription's list
            return Reply(200, {"value": []})
        kind = kinds.find(found[2])
        if kind is not None and kind.tracked:
            rows = context.store.resources.below(found[1])
            return Reply(200, {"value": [kind.render(context, row) for row in rows if _is(row, kind.type)]})
    return None


def _availability(context: KindContext, of_type: str, body: Any) -> Body:
    """Whether a name is free, as the three services answer it."""
    name, kind = str(body.get("name") or "") if isinstance(body, dict) else "", kinds.find(of_type)
    if kind is not None and not re.fullmatch(kind.names.pattern, name):
        return {"nameAvailable": False, "reason": "AccountNameInvalid", "message": f"'{name}': {kind.names.words}."}
    if any(row.name.lower() == name.lower() for row in context.store.resources.of_type(of_type)):
        return {"nameAvailable": False, "reason": "AlreadyExists", "message": f"The name '{name}' is already taken."}
    return {"nameAvailable": True}


def _subscription(own: str) -> Body:
    name = "amlstack sandbox" if own == SUBSCRIPTION else "amlstack sandbox, another subscription"
    return {
        "id": f"/subscriptions/{own}",
        "subscriptionId": own,
        "tenantId": TENANT,
        "displayName": name,
        "state": "Enabled",
        "authorizationSource": "RoleBased",
        "managedByTenants": [],
    }


def _count(value: int) -> Body:
    return {"type": "Total", "value": value}


def _resources(context: KindContext, scope: str, condition: str) -> Iterator[Body]:
    """Every tracked resource in a scope, as the list of all resources shows one: without its properties."""
    wanted = _conditions(condition)
    for row in context.store.resources.below(scope):
        kind = kinds.find(row.type)
        # Groups have a list of their own, and what lies in a resource is in that one's.
        if kind is None or not kind.tracked or row.type.count("/") != 1 or _is(row, GROUPS):
            continue
        shown = {key: value for key, value in kind.render(context, row).items() if key != "properties"}
        group = row.id.split("/")[4]
        values = {"resourcegroup": group, "resourcetype": row.type, "name": row.name, "location": shown.get("location")}
        if all(str(values[name] or "").lower() == value for name, value in wanted.items()):
            yield shown


def _conditions(text: str) -> Mapping[str, str]:
    """``resourceGroup eq 'g' and name eq 'n'`` as lower-case pairs."""
    parts = [part.strip() for part in re.split(r"\s+and\s+", text.strip(), flags=re.IGNORECASE) if part.strip()]
    found = {}
    for part in parts:
        match = _FILTER.fullmatch(part)
        if match is None:
            raise not_emulated(f"the filter '{part}', only resourceGroup, resourceType, name and location with eq")
        found[match[1].lower()] = match[2].lower()
    return found


def _namespaces() -> frozenset[str]:
    return frozenset(kind.type.partition("/")[0] for kind in kinds.ALL)


def _provider(namespace: str) -> Body:
    of_it: list[ResourceKind] = [kind for kind in kinds.ALL if kind.type.partition("/")[0] == namespace]
    listed: list[dict[str, Any]] = [
        {
            "resourceType": kind.type.partition("/")[2],
            "apiVersions": list(reversed(api_versions.known().get(kind.type.lower(), ()))),
            "locations": [],
        }
        for kind in of_it
    ]
    return {
        "id": f"/subscriptions/{SUBSCRIPTION}/providers/{namespace}",
        "namespace": namespace,
        "registrationState": "Registered",
        "registrationPolicy": "RegistrationRequired",
        "resourceTypes": listed,
    }


def _is(row: ResourceRow, kind: str) -> bool:
    return row.type.lower() == kind.lower()
