"""Microsoft.Resources/resourceGroups."""

from __future__ import annotations

from amlstack.sandbox.arm.ids import GROUPS
from amlstack.sandbox.kinds.base import NameRule, ResourceKind, Schema


class Groups(ResourceKind):
    """Resource groups; deleting one deletes everything in it."""

    type = GROUPS
    noun = "a resource group"
    names = NameRule(
        r"[-\w().]{0,89}[-\w()]",
        "1 to 90 letters, digits, underscores, hyphens, periods and parentheses, no period at the end",
    )
    schema = Schema(
        "resources",
        "ResourceGroupArgs",
        frozenset({"resourceGroupName"}),
        envelope=frozenset({"location", "tags", "managedBy"}),
    )
    ticks_delete = 1
    patches = True


KIND = Groups()
