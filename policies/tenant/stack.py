"""A stack as a tenant's policies see it: its resources as they are requested, and as they will be once it is up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from amlstack.base.arm_language.resources import PolicyTarget

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from amlstack.base.arm_language.resources import PolicyPlace

ENDPOINTS = "microsoft.network/privateendpoints"
CONNECTIONS = "privateEndpointConnections"
WITHOUT_TAGS: Mapping[str, str] = {
    "microsoft.machinelearningservices/workspaces/computes": (
        "Azure Resource Manager documentation, tag support of resources: workspaces / computes: no"
    ),
}
"""Types with a location of which Azure's table of tag support says that they have no tags, with the source."""


@dataclass(frozen=True)
class DeclaredStack:
    """The resources that a stack will create.

    Attributes:
        targets: Its resources, as their requests create them.
        place: Where they are created.
        not_rendered: Types that are registered and have no known request, which no policy is asked about.
    """

    targets: tuple[PolicyTarget, ...]
    place: PolicyPlace
    not_rendered: tuple[str, ...] = ()

    def scope(self, written: str) -> str:
        """A scope as it compares with ids of this stack: where its subscription is not known, any may be meant."""
        text = written.lower().rstrip("/")
        if "subscriptionId" in self.place.subscription or not text.startswith("/subscriptions/"):
            return text
        _, _, _, *rest = text.split("/")
        return "/".join([*self.own_subscription.split("/"), *rest])

    @property
    def own_subscription(self) -> str:
        """``/subscriptions/ID`` of its resources, in small letters."""
        return "/".join(self.targets[0].id.lower().split("/")[:3]) if self.targets else ""

    @cached_property
    def standing(self) -> tuple[PolicyTarget, ...]:
        """The same resources once the stack is up: what Azure adds to a resource that others refer to.

        A private endpoint becomes a connection of the resource that it leads to, approved where it asked for no
        person's word.
        """
        added: dict[str, list[dict[str, Any]]] = {}
        for endpoint in (one for one in self.targets if one.type.lower() == ENDPOINTS):
            for to, connection in _connections(endpoint):
                added.setdefault(to.lower(), []).append(connection)
        return tuple(_with(one, added.get(one.id.lower(), [])) for one in self.targets)

    def related(self, kind: str) -> Iterator[PolicyTarget]:
        """The resources of a type that are there once the stack is up."""
        low = kind.lower()
        for one in self.standing:
            if one.type.lower() == low:
                yield one
            elif low == f"{one.type.lower()}/{CONNECTIONS.lower()}":
                for index, connection in enumerate(one.body.get("properties", {}).get(CONNECTIONS) or ()):
                    yield PolicyTarget(kind, f"{one.id}/{CONNECTIONS}/{index}", connection)


def _connections(endpoint: PolicyTarget) -> Iterator[tuple[str, dict[str, Any]]]:
    properties = endpoint.body.get("properties") or {}
    for name, status in (
        ("privateLinkServiceConnections", "Approved"),
        ("manualPrivateLinkServiceConnections", "Pending"),
    ):
        for one in properties.get(name) or ():
            inner = {**one, **(one.get("properties") or {})}
            state = {"privateLinkServiceConnectionState": {"status": status}}
            groups = {"groupIds": inner.get("groupIds") or []}
            yield (
                str(inner.get("privateLinkServiceId", "")),
                {"properties": {"privateEndpoint": {"id": endpoint.id}, **state, **groups}},
            )


def _with(one: PolicyTarget, connections: list[dict[str, Any]]) -> PolicyTarget:
    if not connections:
        return one
    properties = {**(one.body.get("properties") or {}), CONNECTIONS: connections}
    return replace(one, body={**one.body, "properties": properties})


def indexed(kind: str, body: Mapping[str, Any]) -> bool | None:
    """True where definitions of the mode ``Indexed`` judge a resource; None where Azure's documents leave it open."""
    if kind.lower() in WITHOUT_TAGS:
        return None
    return "location" in body
