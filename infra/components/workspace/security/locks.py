"""Locks against deletion, by whatever tool it comes.

Registered after everything else: Azure refuses to delete a role assignment on a locked resource too, so locks go first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pulumi

from infra.components import azure_native, tokens
from infra.components.order import behind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from infra.names import Names, Part

NAME: Final = "amlstack"
NOTES: Final = "Holds data of an Azure Machine Learning workspace. Set by amlstack:workspace.locks of its stack."


class StackResources:
    """A stack transformation that changes nothing: it knows what the program has registered.

    Attributes:
        every: All of it but components and providers.
        locked_in: What a lock would hold: role assignments, and containers and shares in an account.
    """

    def __init__(self) -> None:
        self.every: list[pulumi.CustomResource] = []
        self.locked_in: list[pulumi.Resource] = []

    @classmethod
    def from_now_on(cls) -> StackResources:
        """One that the SDK asks about each resource that is registered from now on."""
        self = cls()
        pulumi.runtime.register_stack_transformation(self)
        return self

    def __call__(self, args: pulumi.ResourceTransformationArgs) -> None:
        """Look at a resource that is about to be registered."""
        if args.type_ in (tokens.ROLE_ASSIGNMENT, *tokens.HOLDS_DATA):
            self.locked_in.append(args.resource)
        if isinstance(args.resource, pulumi.CustomResource) and not isinstance(args.resource, pulumi.ProviderResource):
            self.every.append(args.resource)


def register_locks(
    parts: Mapping[Part, Sequence[pulumi.Resource]],
    names: Names,
    *,
    parent: pulumi.Resource,
    after: Sequence[pulumi.Resource],
) -> list[pulumi.Resource]:
    """Lock parts of a workspace.

    Args:
        parts: The parts that the settings name, each with its resource; a part that the stack does not own has none.
        names: The stack's names.
        parent: The workspace.
        after: What goes only while there is no lock: role assignments, containers and shares.
    """
    made: list[pulumi.Resource] = []
    for part, on in parts.items():
        if not on:
            continue
        properties = {
            "lockName": NAME,
            "scope": behind(names.id(part).lstrip("/"), *on),
            "level": "CanNotDelete",
            "notes": NOTES,
        }
        opts = pulumi.ResourceOptions(parent=parent, depends_on=[*after], delete_before_replace=True)
        made.append(azure_native.register(tokens.LOCK, f"{part.replace('_', '-')}-lock", properties, opts))
    return made
