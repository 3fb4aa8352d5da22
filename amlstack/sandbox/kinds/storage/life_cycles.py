"""Microsoft.Storage/storageAccounts/managementPolicies: when an account's blobs and their versions end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.sandbox.arm.refusals import invalid
from amlstack.sandbox.kinds.base import Body, KindContext, NameRule, ResourceKind, Schema

if TYPE_CHECKING:
    from amlstack.sandbox.arm.ids import ArmPath
    from amlstack.sandbox.store.store import ResourceRow


class LifeCycles(ResourceKind):
    """The one policy of an account: rules by blob type and prefix."""

    type = "Microsoft.Storage/storageAccounts/managementPolicies"
    noun = "a management policy"
    names = NameRule("default", "default")
    schema = Schema(
        "storage", "ManagementPolicyArgs", frozenset({"resourceGroupName", "accountName", "managementPolicyName"}),
        envelope=frozenset(),
    )  # fmt: skip
    tracked = False

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """Rules with names of their own, each with something that it does."""
        del context, path, before
        rules = body["properties"]["policy"]["rules"]
        names = [rule["name"] for rule in rules]
        if len(set(names)) < len(names):
            raise invalid("properties.policy.rules", "two rules have the same name.")
        for number, rule in enumerate(rules):
            if not any((rule["definition"].get("actions") or {}).values()):
                where = f"properties.policy.rules[{number}].definition.actions"
                raise invalid(where, "a rule without an action.")


KIND = LifeCycles()
