"""Provisioning of resources: each poll of an operation or a resource, and each idle second, is one tick."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.sandbox import kinds

if TYPE_CHECKING:
    from amlstack.sandbox.protocol.kind import KindContext
    from amlstack.sandbox.store.store import ResourceRow
    from amlstack.sandbox.store.tables import Operation


def advance(context: KindContext, operation: Operation) -> None:
    """Takes one operation one tick further, and to its end when none is left."""
    with context.store.transaction():
        if operation.status != "InProgress" or context.store.operations.tick(operation.id):
            return
        resource = context.store.resources.get(operation.resource)
        if resource is not None and operation.kind == "create" and resource.state == "Creating":
            context.store.resources.set_state(resource.key, "Succeeded")
        if resource is not None and operation.kind == "delete" and not remove(context, resource):
            return
        kind = None if resource is None else kinds.find(resource.type)
        if resource is not None and kind is not None:
            kind.finished(context, resource, operation)
        context.store.operations.finish(operation.id)


def advance_all(context: KindContext) -> None:
    """One tick for everything under way: what no client polls any more comes to its end too."""
    for operation in context.store.operations.running():
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
