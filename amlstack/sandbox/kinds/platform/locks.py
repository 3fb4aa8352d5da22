"""Microsoft.Authorization/locks: what nobody deletes, nor anything on it, until the lock is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.sandbox.arm.refusals import Refused
from amlstack.sandbox.kinds.base import KindContext, NameRule, ResourceKind, Schema

if TYPE_CHECKING:
    from amlstack.sandbox.store.store import ResourceRow


class Locks(ResourceKind):
    """Locks on a group or any resource."""

    type = "Microsoft.Authorization/locks"
    noun = "a lock"
    names = NameRule(r"[^<>%&:\\?/]{1,259}[^<>%&:\\?/. ]|[^<>%&:\\?/. ]", "up to 260 characters, none of <>%&:\\?/")
    schema = Schema(
        "authorization", "ManagementLockByScopeArgs", frozenset({"lockName", "scope"}), envelope=frozenset()
    )
    tracked = False


KIND = Locks()


def check(context: KindContext, resource_id: str, *, deletes: bool) -> None:
    """Refuses a request for what a lock is on, in or below.

    Args:
        context: The store.
        resource_id: What is asked for.
        deletes: The request deletes; else it writes.

    Raises:
        Refused: 409, with the locked scopes.
    """
    target = resource_id.lower()
    if f"/{KIND.type.lower()}/" in target:
        return  # a lock itself: taking it off is how a scope is opened
    scopes = [
        lock.parent
        for lock in context.store.resources.of_type(KIND.type)
        if (deletes or lock.body["properties"]["level"] == "ReadOnly") and _meets(lock, target, deletes=deletes)
    ]
    if scopes:
        verb = "delete" if deletes else "write"
        message = (
            f"The scope '{resource_id}' cannot perform {verb} operation because following scope(s) are locked: "
            f"'{','.join(scopes)}'. Please remove the lock and try again."
        )
        raise Refused(409, "ScopeLocked", message)


def _meets(lock: ResourceRow, target: str, *, deletes: bool) -> bool:
    locked = lock.parent.lower()
    return f"{target}/".startswith(f"{locked}/") or (deletes and f"{locked}/".startswith(f"{target}/"))
