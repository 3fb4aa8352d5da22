"""The network of a workspace that the stack makes, in the order in which its parts can exist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infra.components.order import behind
from infra.components.workspace.network import managed
from infra.components.workspace.network.endpoints import StackEndpoints
from infra.components.workspace.network.own import StackNetwork

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pulumi

    from infra.components.workspace.place import Place
    from infra.names import Part
    from infra.network.plan import NetworkPlan


class WorkspaceNetwork:
    """What comes before the workspace and what comes after it.

    Attributes:
        plan: The network, composed.
        resources: Everything that clusters come after.
        reached_by: The network and the private endpoints that runs reach their data by, as far as the stack makes them.
        properties: What the workspace says of its network.
        compute: ARM id of the subnet of clusters without one of their own; None where there is none.
    """

    def __init__(self, plan: NetworkPlan, place: Place, *, parent: pulumi.Resource) -> None:
        """Register what the workspace needs to know or nodes to be in: its isolation, and the own network.

        Args:
            plan: The network.
            place: The workspace's.
            parent: The component that all of it belongs to.
        """
        self.plan, self._place, self._parent = plan, place, parent
        self.resources: list[pulumi.Resource] = []
        self.reached_by: list[pulumi.CustomResource] = []
        self.properties: dict[str, Any] = {}
        self.compute: pulumi.Output[str] | None = None
        self._isolation = None
        if plan.wanted is not None:
            self._isolation = managed.isolation(plan.wanted, place.names.workspace_id, parent=parent)
            self.properties["managedNetwork"] = managed.settings_of(self._isolation, plan.wanted, plan.firewall)
        self._own = None
        if plan.own is not None:
            self._own = StackNetwork(plan.own, place, parent=parent)
            self.compute = self._own.compute
            self.resources += self._own.resources
            self.reached_by += self._own.resources

    def complete(self, made: Mapping[Part, pulumi.Resource], approvals: Sequence[pulumi.Resource] = ()) -> None:
        """Register what leads to the workspace and its parts: private endpoints, rules and provisioning.

        Args:
            made: The parts that the stack owns, the workspace among them.
            approvals: The roles that outbound rules need.
        """
        names = self._place.names
        if self._own is not None and self._own.spec.links:
            linked = StackEndpoints(self._own, self._place, made, parent=self._parent)
            self.resources += linked.resources
            self.reached_by += linked.endpoints
        if self._isolation is not None:
            workspace_id = behind(names.workspace_id, *made.values(), *approvals)
            rules = self.plan.rules or {}
            self.resources.append(managed.network(self._isolation, workspace_id, rules, parent=self._parent))
