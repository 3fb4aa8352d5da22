"""A deployment, from the request to the resources: each is put as a client of its own would put it, in order."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from amlstack.sandbox import kinds
from amlstack.sandbox.arm import provisioning
from amlstack.sandbox.arm.refusals import Refused, invalid, not_emulated
from amlstack.sandbox.deployments import tolerated
from amlstack.sandbox.deployments.template import Template
from amlstack.sandbox.kinds.base import Reply, iso

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from amlstack.sandbox.kinds.base import Body, KindContext
    from amlstack.sandbox.store.store import ResourceRow

    Call = Callable[[str, str, Mapping[str, str], Any], Reply]

TYPE = "Microsoft.Resources/deployments"
_PATH = re.compile(
    r"(?P<group>/subscriptions/[^/]+/resourcegroups/[^/]+)/(?:providers/Microsoft\.Resources/)?deployments/"
    r"(?P<name>[^/]+)(?P<below>/operations)?",
    re.IGNORECASE,
)


def answer(context: KindContext, method: str, text: str, body: Any, call: Call) -> Reply | None:
    """Answers a PUT or GET of a deployment and the list of its operations; None for every other path.

    Args:
        context: State and address.
        method: Of the request.
        text: Its path.
        body: Of a PUT.
        call: The resource manager itself, for the resources of the template.

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
        return _put(context, own, group, body, call)
    stored = context.store.resources.get(own)
    if stored is None:
        raise Refused(404, "DeploymentNotFound", f"Deployment '{found['name']}' could not be found.")
    if method != "GET":
        raise not_emulated(f"{method} of {TYPE}")
    if not found["below"]:
        return Reply(200, _shown(own, stored.body))
    targets = stored.body["properties"]["outputResources"]
    return Reply(200, {"value": [_operation(own, number, each["id"]) for number, each in enumerate(targets)]})


def _put(context: KindContext, own: str, group: ResourceRow, body: Any, call: Call) -> Reply:
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

    begun = time.monotonic()
    template = Template(content, given, group.id, str(group.body.get("location")), known)
    made = [_make(context, template, resource, call) for resource in _ordered(template)]
    outputs = {name: {**each, "value": template.worked_out(each["value"])} for name, each in _outputs(content)}
    record = {
        "properties": {
            "provisioningState": "Succeeded",
            "mode": "Incremental",
            "timestamp": iso(time.time()),
            "duration": _duration(time.monotonic() - begun),
            "outputs": outputs,
            "outputResources": [{"id": each} for each in made],
        }
    }
    context.store.resources.put(own, TYPE, group.key, record)
    return Reply(201, _shown(own, record))


def _duration(seconds: float) -> str:
    """As the service writes it: ``PT1M56.345S``."""
    return f"PT{int(seconds // 60)}M{seconds % 60:.3f}S"


def _outputs(content: Mapping[str, Any]) -> Iterator[tuple[str, Body]]:
    yield from (content.get("outputs") or {}).items()


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
    """Whether a resource depends, by id or by name, on one that is still to come."""
    names = [str(template.worked_out(each)).lower() for each in resource.get("dependsOn") or []]
    return any(own == name or own.endswith(f"/{name}") for own in left for name in names)


def _make(context: KindContext, template: Template, resource: Mapping[str, Any], call: Call) -> str:
    kind, name = resource["type"], template.worked_out(resource["name"])
    own = template.id_of(kind, name)
    skipped = ("type", "name", "apiVersion", "condition", "dependsOn", "comments", "resources", "scope", "copy")
    body = tolerated.read(
        kind, template.worked_out({key: each for key, each in resource.items() if key not in skipped})
    )
    try:
        call("PUT", own, {"api-version": template.worked_out(resource["apiVersion"])}, body)
    except Refused as refused:
        message = f"At least one resource deployment operation failed: {own}: {refused.message}"
        raise Refused(refused.status, "DeploymentFailed", message, refused.target) from None
    while running := context.store.operations.running(own.lower()):
        for operation in running:
            provisioning.advance(context, operation)
    return own


def _shown(own: str, body: Body) -> Body:
    return {"id": own, "name": own.rpartition("/")[2], "type": TYPE, **body}


def _operation(own: str, number: int, target: str) -> Body:
    words = target.partition("/providers/")[2].split("/")
    kind = "/".join([words[0], *words[1::2]])
    resource = {"id": target, "resourceType": kind, "resourceName": words[-1]}
    properties = {"provisioningOperation": "Create", "provisioningState": "Succeeded", "targetResource": resource}
    return {"id": f"{own}/operations/{number}", "operationId": str(number), "properties": properties}
