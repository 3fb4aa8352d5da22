"""Microsoft.Network/networkSecurityGroups, with their rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.sandbox.arm.refusals import Refused
from amlstack.sandbox.kinds.base import Body, KindContext, NameRule, ResourceKind, Schema
from amlstack.sandbox.kinds.network.virtual_networks import SUBNETS

if TYPE_CHECKING:
    from amlstack.sandbox.arm.ids import ArmPath
    from amlstack.sandbox.store.store import ResourceRow

LOWEST, HIGHEST = 100, 4096


class SecurityGroups(ResourceKind):
    """Rules by direction and priority."""

    type = "Microsoft.Network/networkSecurityGroups"
    noun = "a network security group"
    names = NameRule(
        r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,78}[A-Za-z0-9_])?",
        "1 to 80 letters, digits, '_', '.' and '-', a letter or digit first, no '.' or '-' at the end",
    )
    schema = Schema(
        "network", "NetworkSecurityGroupInitArgs", frozenset({"resourceGroupName", "networkSecurityGroupName"}),
        envelope=frozenset({"id", "location", "tags"}), nested=frozenset({"securityRules"}),
    )  # fmt: skip
    ticks = 1
    patches = False

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """No two rules of one direction share a priority."""
        del context, path, before
        seen: dict[tuple[str, int], str] = {}
        for index, rule in enumerate(body["properties"].get("securityRules") or ()):
            inner, where = rule.get("properties") or {}, f"properties.securityRules[{index}]"
            priority = inner["priority"]
            if not LOWEST <= priority <= HIGHEST:
                message = f"Security rule has invalid Priority. Value provided: {priority} Allowed range 100-4096."
                raise Refused(400, "SecurityRuleInvalidPriority", message, where)
            name = str(rule.get("name"))
            if other := seen.get((inner["direction"], priority)):
                message = f"Security rules {other} and {name} have the same priority and direction."
                raise Refused(400, "SecurityRuleConflict", message, where)
            seen[inner["direction"], priority] = name

    def keep(self, body: Body, before: ResourceRow) -> Body:
        """A second PUT is taken whole."""
        del before
        return body

    def check_removal(self, context: KindContext, resource: ResourceRow) -> None:
        """One that a subnet names stays."""
        for row in context.store.resources.of_type(SUBNETS):
            if str((row.body["properties"].get("networkSecurityGroup") or {}).get("id", "")).lower() == resource.key:
                message = f"Network security group {resource.name} cannot be deleted because it is in use by {row.id}."
                raise Refused(400, "InUseNetworkSecurityGroupCannotBeDeleted", message)


KIND = SecurityGroups()
