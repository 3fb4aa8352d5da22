"""Settings that fit an existing workspace, or an existing part of one: none of them changes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amlstack.base.findings import Finding
from infra.settings.repair import dotted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.settings.model import Settings, Workspace
    from infra.settings.stackfile import Loc

PARTS: Final = ("storage", "key_vault", "registry", "insights", "logs")
"""What a workspace stands on, as the settings call it."""

Found = tuple["Loc", Finding]


def check(settings: Settings) -> Iterator[Found]:
    """Findings on the workspace's settings that do not go together."""
    spec, group = settings.workspace, settings.resource_group
    if group and group.name and group.existing:
        yield _finding(
            ("resource_group",),
            "setting-beside-existing",
            "`name` is set beside `existing`",
            "The stack makes a resource group by `name`, or puts its resources into one that exists",
            "Write one of the two",
        )
    if spec.existing:
        yield from _beside_existing(spec)
        yield from _place(settings)
        if settings.azure_policy is not None:
            yield _finding(
                ("azurePolicy",),
                "setting-beside-existing",
                "`azurePolicy` is set beside `workspace.existing`",
                "An assignment would judge what others put into a resource group that is not this stack's",
                "Leave it out; the stack that owns the workspace assigns the rules",
            )
        return
    if not spec.name:
        yield _finding(
            ("workspace", "name"),
            "setting-missing",
            "`name` is missing",
            "A workspace is created under `name`, or one that exists is given by `existing`",
        )
    if (
        settings.azure_policy is not None
        and settings.azure_policy.scope == "resourceGroup"
        and group
        and group.existing
    ):
        yield _finding(
            ("azurePolicy", "scope"),
            "setting-beside-existing",
            "`azurePolicy` reaches the resource group, and that is given by `existing`",
            "An assignment would judge what others put into a resource group that is not this stack's",
            "Leave it out; whoever owns the group assigns the rules",
        )
    yield from _parts(spec)


def _beside_existing(spec: Workspace) -> Iterator[Found]:
    for key in sorted(spec.model_fields_set - {"existing"}):
        yield _finding(
            ("workspace", key),
            "setting-beside-existing",
            f"`{key}` is set beside `existing`",
            "Nothing of a workspace that exists is changed",
            "Leave it out; whoever owns the workspace sets it",
        )


def _place(settings: Settings) -> Iterator[Found]:
    existing = str(settings.workspace.existing)
    group = settings.resource_group.called if settings.resource_group else None
    if not existing.startswith("/"):
        if group is None:
            yield _finding(
                ("workspace", "existing"),
                "setting-missing",
                f"`{existing}` is a name, and `resource_group` is missing",
                "A workspace that exists is found by its name in `resource_group`, or by its ARM id",
                "Set amlstack:resource_group, or write the id that `az ml workspace show --query id` prints",
            )
    elif group is not None and group.lower() != existing.split("/")[4].lower():
        yield _finding(
            ("resource_group",),
            "setting-beside-existing",
            f"`{group}` is not the resource group of `workspace.existing`",
            "A stack on a workspace that exists makes no resource group; what it makes itself lies in the workspace's",
            "Leave it out",
        )


def _parts(spec: Workspace) -> Iterator[Found]:
    for part in PARTS:
        given = getattr(spec, part)
        if given.existing is None:
            continue
        for key in sorted(given.model_fields_set - {"existing"}):
            yield _finding(
                ("workspace", part, key),
                "setting-beside-existing",
                f"`{key}` is set beside `existing`",
                f"Nothing of a {part.replace('_', ' ')} that exists is changed",
                "Leave it out",
            )
    if spec.adopted:
        yield from _beside_adopted(spec)
    if spec.insights.existing and spec.logs.model_fields_set:
        yield _finding(
            ("workspace", "logs"),
            "setting-beside-existing",
            "`logs` is set beside `insights.existing`",
            "Log analytics is where application insights of this stack write, and those exist already",
            "Leave it out",
        )


def _beside_adopted(spec: Workspace) -> Iterator[Found]:
    rule = "Of the parts of an imported workspace the stack changes nothing"
    for part in PARTS:
        for key in sorted(getattr(spec, part).model_fields_set - {"existing", "name", "absent"}):
            yield _finding(
                ("workspace", part, key),
                "setting-beside-adopted",
                f"`{key}` is set beside `adopted`",
                rule,
                "Leave it out",
            )
    if spec.public_network is not None and spec.public_network.allow:
        yield _finding(
            ("workspace", "public_network", "allow"),
            "setting-beside-adopted",
            "`allow` is set beside `adopted`",
            f"Addresses are set on storage account, key vault and registry. {rule}",
            "Write true or false, which is the workspace's own access",
        )


def _finding(loc: Loc, code: str, what: str, rule: str, remedy: str = "") -> Found:
    return loc, Finding(code, dotted(loc), what, rule, remedy)
