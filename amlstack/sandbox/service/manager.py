"""The resource manager: finds the kind of a path and answers GET, PUT, PATCH, DELETE and POST for it."""

from __future__ import annotations

import functools
import math
import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from amlstack.sandbox import kinds
from amlstack.sandbox.kinds import authorization
from amlstack.sandbox.protocol import addresses, entra, requests, typecheck
from amlstack.sandbox.protocol.addresses import GROUPS, ArmPath, parse
from amlstack.sandbox.protocol.kind import BY_RESULT, BY_STATUS, SOON, Body, KindContext, Reply, ResourceKind
from amlstack.sandbox.protocol.refusals import Refused, near, not_emulated
from amlstack.sandbox.protocol.times import with_offset
from amlstack.sandbox.service import cloud, deployments, policy

if TYPE_CHECKING:
    from amlstack.sandbox.store.store import ResourceRow
    from amlstack.sandbox.store.tables import Operation, OperationKind


JSON: Final = "application/json; charset=utf-8"
"""The type of every answer of the resource manager."""


def advance(context: KindContext, operation: Operation) -> None:
    """Takes one operation one tick further, and to its end when none is left."""
    with context.store.transaction():
        if operation.status != "InProgress" or context.store.operations.tick(operation.id):
            return
        resource = context.store.resources.get(operation.resource)
        if resource is not None and (operation.kind, resource.state) in _MAKING:
            context.store.resources.set_state(resource.key, "Succeeded")
        if resource is not None and operation.kind == "delete" and not remove(context, resource):
            return
        kind = None if resource is None else kinds.find(resource.type)
        if resource is not None and kind is not None:
            kind.finished(context, resource, operation)
        context.store.operations.finish(operation.id)


_MAKING: Final = {("create", "Creating"), ("update", "Updating")}


def advance_all(context: KindContext, *, begun: float = math.inf) -> None:
    """One tick for everything under way that began by then: what no client polls any more comes to its end too."""
    for operation in context.store.operations.running():
        if operation.started <= begun:
            advance(context, operation)


def settle(context: KindContext) -> None:
    """After a restart: creations that were under way are done (deletions still wait for their jobs)."""
    for operation in context.store.operations.running():
        for _ in range(operation.ticks + 1):
            advance(context, operation)


def remove(context: KindContext, resource: ResourceRow) -> bool:
    """Removes a resource and everything below it; False when something (a job that still runs) must end first."""
    with context.store.transaction():
        family = (*context.store.resources.below(resource.key), resource)
        ended = [kind.end_below(context, resource) for kind in kinds.ALL]
        if not all([*ended, *(_kind_lets_go(context, member) for member in family)]):
            return False
        for kind in kinds.ALL:
            kind.forget_below(context, resource)
        for member in family:
            context.store.resources.delete(member.key)
    return True


def _kind_lets_go(context: KindContext, resource: ResourceRow) -> bool:
    kind = kinds.find(resource.type)
    return kind is None or kind.removing(context, resource)


_OPERATION: Final = re.compile(
    r"/subscriptions/[^/]+/(?:.+/)?(\w*operation(?:s|results|s?status(?:es)?))/([0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12})",
    re.IGNORECASE,
)
"""The address of an operation: each provider has its own words for it."""
GROUP_DEPTH: Final = 4
"""Slashes in the id of a resource group."""


def answer(
    context: KindContext,
    method: str,
    text: str,
    query: Mapping[str, str],
    body: Any,
    *,
    headers: Mapping[str, str] = MappingProxyType({}),
) -> Reply:
    """Answers one ARM request.

    Args:
        context: State and address.
        method: Of the request.
        text: Its path.
        query: Its parameters.
        body: Parsed JSON.
        headers: By names in lower-case letters.

    Raises:
        Refused: Whatever the service would refuse, and what the sandbox does not emulate.
    """
    _check_call(text, query)
    if found := _OPERATION.fullmatch(text):
        results, version = found[1].lower().endswith("results"), query["api-version"]
        return _operation(context, found[0], found[2].replace("-", ""), results=results, version=version)
    above = cloud.subscriptions_answer(context, method, text, query, body)
    above = above or deployments.answer(context, method, text, body, functools.partial(_deploy, context))
    if above is not None:
        return above
    if method == "GET" and (listed := kinds.listed(context, text, query)) is not None:
        return listed
    path = parse(text)
    if path is None:
        raise not_emulated(f"the path {text}")
    if method == "POST":
        return _post(context, text, _object(body))
    kind = _kind(path)
    _check_above(context, path, method)
    try:
        reply = _of_kind(context, method, path, query, body, headers=headers)
    except Refused as refused:
        if refused.status in {400, 409}:
            refused.beside = kind.refusal
        raise _of_frontend(context, kind, path, refused) from None
    if not isinstance(reply.body, dict) or not (kind.since or kind.dated_since or kind.until):
        return reply
    return replace(reply, body=kind.in_version(reply.body, query["api-version"]))


def _of_frontend(context: KindContext, kind: ResourceKind, path: ArmPath, refused: Refused) -> Refused:
    """A refusal in the form of who answers: ARM itself, or Azure Machine Learning's front end in its region."""
    if kind.frontend and refused.status not in {412, 501}:
        workspace = context.store.resources.get("/".join(path.text.split("/")[:9]))
        refused.region = str(workspace.body.get("location")) if workspace is not None else None
    return refused


def _deploy(context: KindContext, path: str, version: str, body: Body) -> None:
    """Puts a resource of a template, and waits until it is there."""
    answer(context, "PUT", path, {"api-version": version}, body)
    while running := context.store.operations.running(path.lower()):
        for operation in running:
            advance(context, operation)


def _of_kind(
    context: KindContext, method: str, path: ArmPath, query: Mapping[str, str], body: Any, *, headers: Mapping[str, str]
) -> Reply:
    kind = _kind(path)
    if (answered := kind.answer(context, method, path, query, body)) is not None:
        return answered
    if path.collection:
        if method != "GET":
            raise Refused(405, "MethodNotAllowed", f"{method} is not allowed on the collection '{path.text}'.")
        return _list(context, kind, path, query)
    if kind.read_only and method not in {"GET", "HEAD"}:
        raise not_emulated(f"{method} of {kind.type}: the sandbox makes them itself")
    if method == "HEAD" and kind.type == GROUPS:
        _found(context, path)
        return Reply(204)
    if method in {"GET", "HEAD"}:
        return _get(context, kind, path)
    if method == "DELETE":
        return _delete(context, kind, path, query, headers)
    if method == "PUT" or (method == "PATCH" and kind.patches):
        cloud.check_registered(context, path.subscription, kind)
        given, patch = _object(body), method == "PATCH"
        return _put(context, kind, path, given, headers=headers, version=query["api-version"], patch=patch)
    raise not_emulated(f"{method} of {kind.type}")


def _check_call(text: str, query: Mapping[str, str]) -> None:
    addresses.check_version(text, query)
    found = re.match(r"/subscriptions/([^/]+)", text, re.IGNORECASE)
    if found and found[1].lower() not in entra.SUBSCRIPTIONS:
        known = " and ".join(f"'{one}'" for one in entra.SUBSCRIPTIONS)
        message = f"The subscription '{found[1]}' could not be found. The sandbox has only {known}."
        raise Refused(404, "SubscriptionNotFound", message)


def _object(body: Any) -> Body:
    if not isinstance(body, dict):
        raise Refused(400, "InvalidRequestContent", "The request content was invalid: a JSON object was expected.")
    return body


def _kind(path: ArmPath) -> ResourceKind:
    kind = kinds.find(path.type)
    if kind is None:
        known = near(path.type, (each.type for each in kinds.ALL))
        raise Refused(501, "SandboxNotEmulated", f"The sandbox does not emulate the type '{path.type}'.{known}")
    return kind


def _check_above(context: KindContext, path: ArmPath, method: str) -> None:
    """No lock on it; then the group, then the parent, each with its own 404: a lost workspace is no lost job."""
    authorization.check_locks(context, path.text, method)
    if path.type.lower() == GROUPS.lower() or path.group is None:
        return
    if not context.store.resources.has(path.group_id):
        raise Refused(404, "ResourceGroupNotFound", f"Resource group '{path.group}' could not be found.")
    above = path.parent
    kind = kinds.find(path.type)
    if kind is not None and kind.makes_parent:  # its container comes with it and is never missed on its own
        above = above.rsplit("/", 2)[0]
    if not context.store.resources.has(above):
        doing = {"PUT": "write", "PATCH": "write", "DELETE": "delete"}.get(method, "read")
        short = path.type.partition("/")[2]
        message = (
            f"Failed to perform '{doing}' on resource(s) of type '{short}', because the parent resource "
            f"'{above}' could not be found."
        )
        raise Refused(404, "ParentResourceNotFound", message)


def _found(context: KindContext, path: ArmPath) -> ResourceRow:
    resource = context.store.resources.get(path.text)
    if resource is None and path.type.lower() == GROUPS.lower():
        raise Refused(404, "ResourceGroupNotFound", f"Resource group '{path.name}' could not be found.")
    if resource is None:
        raise _kind(path).absent(path)
    return resource


def _get(context: KindContext, kind: ResourceKind, path: ArmPath) -> Reply:
    meant = replace(path, text=kind.meant(context, path))
    resource = _found(context, meant)
    for operation in context.store.operations.running(resource.key):
        advance(context, operation)
    resource = _found(context, meant)
    etag = kind.etag_of(resource).get("etag")
    return Reply(200, {**kind.render(context, resource), **kind.named(path)}, {"ETag": etag} if etag else {})


def _list(context: KindContext, kind: ResourceKind, path: ArmPath, query: Mapping[str, str]) -> Reply:
    rows = kind.select(context, path, query)
    render = functools.partial(kind.listed, context)
    return Reply(200, requests.page(f"{context.base}{path.text}", query, rows, lambda row: row.key, render))


def _put(
    context: KindContext,
    kind: ResourceKind,
    path: ArmPath,
    body: Body,
    *,
    headers: Mapping[str, str],
    version: str,
    patch: bool,
) -> Reply:
    store = context.store
    kind.names.check(path.name, kind.noun)
    with store.transaction():
        before = store.resources.get(path.text)
        requests.check_etag(headers, before)
        if patch:
            body = _merged(_found(context, path).body, body)
        body = typecheck.check(kind, body, "" if patch else version)
        body = body if patch else kind.in_request(body, version)
        low = path.text.replace("/resourceGroups/", "/resourcegroups/")
        at = kind.located.format(base=context.base, path=path.text, low=low, version=version)
        location = {"Location": at} if at else {}
        again = kind.again_status
        if (placed := kind.placed(path, body)) != path:
            path, before, again = placed, store.resources.get(placed.text), kind.made_status
        _check_location(kind, path, body, before)
        if before is not None and before.state == "Deleting":
            message = f"The resource '{path.name}' is being deleted. Try again when that is done."
            raise Refused(409, "ResourceIsBeingDeleted", message)
        body = policy.enforced(context, kind, path, body)
        kind.check(context, path, body, before)
        if before is not None and before.state != "Failed":  # what failed to be made is made again
            kept = entra.signed(kind.fill(context, path, kind.keep(body, before)), before.body)
            ticks = kind.ticks_again.get("PATCH" if patch else "PUT", 0)
            state = "Updating" if ticks and before.state == "Succeeded" else before.state
            updated = store.resources.put(path.text, kind.type, path.parent, kept, state)
            kind.changed(context, updated)
            headers = (location if again == 201 else {}) | _etag(kind, updated)
            if ticks:
                doing: OperationKind = "create" if state == "Creating" else "update"
                headers = location | _headers(context, kind, store.operations.start(updated.key, doing, ticks), version)
            status = kind.patch_status if patch else again
            return Reply(status, None if status == 202 else kind.written(context, updated), headers)
        if kind.makes_parent:
            _make_parent(context, path)
        state = "Creating" if kind.ticks else "Succeeded"
        filled = entra.signed(kind.fill(context, path, body), None)
        made = store.resources.put(path.text, kind.type, path.parent, filled, state)
        kind.made(context, made)
        headers = location | _etag(kind, made)
        if kind.ticks:
            operation = store.operations.start(made.key, "create", kind.ticks)
            headers = location | _headers(context, kind, operation, version)
    # An answer of 202 has no resource: clients poll, and then ask for it.
    return Reply(kind.made_status, kind.accepted if kind.made_status == 202 else kind.written(context, made), headers)


def _etag(kind: ResourceKind, resource: ResourceRow) -> dict[str, str]:
    return {"ETag": kind.etag_of(resource)["etag"]} if kind.etag_written else {}


def _check_location(kind: ResourceKind, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
    if not kind.tracked:
        return
    if not body.get("location"):
        raise Refused(400, "LocationRequired", "The location property is required for this definition.", "location")
    body["location"] = body["location"].replace(" ", "").lower()
    if before is not None and before.body["location"] != body["location"]:
        message = (
            f"The resource '{path.name}' already exists in location '{before.body['location']}' in resource group "
            f"'{path.group}'. A resource with the same name cannot be created in location '{body['location']}'. "
            "Please select a new resource name."
        )
        raise Refused(409, "InvalidResourceLocation", message)


def _make_parent(context: KindContext, path: ArmPath) -> None:
    container = path.parent
    if context.store.resources.get(container) is None:
        above = parse(container)
        if above is not None:
            kind = _kind(above)
            kind.names.check(above.name, kind.noun)
            body = entra.signed({"properties": {}}, None)
            context.store.resources.put(container, kind.type, above.parent, body)


def _merged(old: Body, new: Body) -> Body:
    """JSON merge (RFC 7396), but tags are replaced as a whole, as ARM does."""
    result = dict(old)
    for key, value in new.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(old.get(key), dict) and key != "tags":
            result[key] = _merged(old[key], value)
        else:
            result[key] = value
    return result


def _delete(
    context: KindContext, kind: ResourceKind, path: ArmPath, query: Mapping[str, str], headers: Mapping[str, str]
) -> Reply:
    kind.check_delete(query)
    resource = context.store.resources.get(path.text)
    if resource is None:
        if path.type.lower() == GROUPS.lower():
            _found(context, path)
        return Reply(204)
    with context.store.transaction():
        requests.check_etag(headers, context.store.resources.get(path.text))
        kind.check_removal(context, resource)
        if error := kind.failing_removal(context, resource):
            operation = context.store.operations.start(resource.key, "delete", 1)
            context.store.operations.fail(operation.id, error)
            return Reply(202, None, _headers(context, kind, operation))
        was = kind.render(context, resource) if kind.answers_deletion else None
        ticks, shows = kind.removal(context, resource)
        if not ticks and remove(context, resource):
            return Reply(200, was)
        context.store.resources.set_state(resource.key, "Deleting")
        shown = kind.render(context, context.store.resources[resource.key]) if shows else None
        operation = context.store.operations.start(resource.key, "delete", ticks)
    return Reply(202, shown, _headers(context, kind, operation))


def _post(context: KindContext, text: str, body: Body) -> Reply:
    above, _, action = text.rstrip("/").rpartition("/")
    path = parse(above)
    if path is None or path.collection:
        raise not_emulated(f"POST {text}")
    kind = _kind(path)
    _check_above(context, path, "POST")
    try:
        done = kind.act(context, path, action, body)
        if done is None:
            done = kind.action(context, _found(context, path), action, body)
    except Refused as refused:
        raise _of_frontend(context, kind, path, refused) from None
    return done if isinstance(done, Reply) else Reply(202, None, _headers(context, kind, done))


def _operation(context: KindContext, address: str, operation_id: str, *, results: bool, version: str) -> Reply:
    operation = context.store.operations.get(operation_id)
    if operation is None:
        raise Refused(404, "OperationNotFound", f"The operation '{operation_id}' could not be found.")
    advance(context, operation)
    operation = context.store.operations.get(operation_id) or operation
    code, _, message = (operation.error or "").partition(": ")
    error: Body = {"code": code, "message": message}
    path = parse(operation.resource)
    of = None if path is None else kinds.find(path.type)
    if of is not None and of.frontend and operation.kind != "cancel":
        return Reply(200, _frontend_status(address, operation, error), SOON)
    if results:
        if operation.status == "Failed":
            raise Refused(400, code, message)
        if operation.status != "Succeeded" and of is not None and of.frontend:
            return Reply(202, {}, {**SOON, "Location": f"{context.base}{address}?api-version={version}"})
        if operation.status != "Succeeded":
            return Reply(202, None, SOON)
        resource = context.store.resources.get(operation.resource)
        left = resource is None and path is not None and of is not None and of.leaves_parent
        if left and path is not None:
            resource = context.store.resources.get(path.parent)
        kind = None if resource is None else kinds.find(resource.type)
        if kind is None or resource is None:
            done = operation.kind == "cancel" or operation.resource.count("/") == GROUP_DEPTH
            return Reply(200 if done else 204 if of is None else of.gone_status)
        result = kind.result(context, operation)
        if result is None and (left or operation.kind in {"create", "update"}):
            result = kind.in_version(kind.render(context, resource), version)
        return Reply(204) if result is None else Reply(200, result)
    body: Body = {"status": deployments.state(operation) or operation.status}
    if operation.status == "Failed":
        body["error"] = error
    if operation.status == "Succeeded" and of is not None and of.counted:
        body["percentComplete"] = 100.0
    return Reply(200, body, SOON)


def _frontend_status(address: str, operation: Operation, error: Body) -> Body:
    """The state of an operation as Azure Machine Learning's front end tells it."""
    name = f"s:{uuid.uuid5(uuid.NAMESPACE_URL, operation.resource)}:{operation.id}"
    shown: Body = {"id": re.sub(r"(?i)operationsStatus", "operationResults", address), "name": name}
    if operation.status == "Failed":
        return {"error": {**error, "details": [], "additionalInfo": []}, **shown, "status": "Failed"}
    if operation.status == "InProgress":
        return {**shown, "status": "Deleting" if operation.kind == "delete" else "Creating"}
    times = {"startTime": with_offset(operation.started), "endTime": f"{with_offset(time.time())[:19]}+00:00"}
    return {**shown, "status": "Succeeded", **times}


def _headers(
    context: KindContext, kind: ResourceKind, operation: Operation, version: str = "2025-12-01"
) -> dict[str, str]:
    places = {BY_STATUS: kind.status_at, BY_RESULT: kind.result_at}
    resource = context.store.resources.get(operation.resource)
    words = (operation.resource if resource is None else resource.id).split("/")
    known = {
        "id": uuid.UUID(operation.id),
        "subscription": "/".join(words[:3]),
        "group": "/".join(words[:5]),
        "resource": "/".join(words),
        "namespace": kind.type.partition("/")[0],
        "location": _location_of(context, operation.resource),
    }
    followed = kind.followed.get(operation.kind, tuple(places))
    headers = {name: f"{context.base}{places[name].format(**known)}?api-version={version}" for name in followed}
    if (kind.frontend and operation.kind in {"delete", "cancel"}) or (kind.null_told and operation.kind == "delete"):
        headers["Content-Type"] = JSON  # of a body of the four letters null
    return {**headers, **SOON}


def _location_of(context: KindContext, resource_id: str) -> str:
    """The region of a resource, or of what it lies in."""
    while resource_id.count("/") >= GROUP_DEPTH:
        row = context.store.resources.get(resource_id)
        if row is not None and row.body.get("location"):
            return str(row.body["location"])
        resource_id = resource_id.rpartition("/")[0]
    return "global"
