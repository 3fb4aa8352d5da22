"""The network of a workspace that the stack makes: the managed one, or the own one with its private endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi

from amlstack import resources
from infra import resource_types
from infra.components import registration
from infra.components.registration import behind
from infra.network.plan import OFF
from infra.network.virtual_network import COMPUTE, ENDPOINTS, is_range

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from infra.components.workspace.parts import PartContext
    from infra.names import Part
    from infra.network.plan import NetworkPlan, WantedIsolation
    from infra.network.virtual_network import Link, OwnNetwork

FOUND_LATER = ("managedNetwork.outboundRules", "managedNetwork.status")
"""Settings that Azure writes into the workspace, and a refresh finds there; the rules have a resource of their own."""


def managed_settings(
    decided: resources.NetworkIsolation, wanted: WantedIsolation, firewall: str | None
) -> pulumi.Output[dict[str, Any] | None]:
    """The workspace's ``managedNetwork``; nothing without isolation.

    Args:
        decided: The isolation.
        wanted: What counts where no provider has decided, as in a look at the declaration alone.
        firewall: Size of the firewall.
    """
    sku = {"firewallSku": firewall.capitalize()} if firewall else {}

    def settings(mode: str | None) -> dict[str, Any] | None:
        found = wanted.mode if mode is None else mode
        return None if found == OFF else {"isolationMode": found, **sku}

    return decided.mode.apply(settings)


class StackNetwork:
    """The resources that the stack makes of the team's own network.

    Attributes:
        spec: The network, composed.
        resources: Everything that was registered.
        compute: ARM id of the subnet of nodes, behind the network where the stack makes it; None where there is none.
    """

    def __init__(self, spec: OwnNetwork, context: PartContext, *, parent: pulumi.Resource) -> None:
        self.spec, self._context = spec, context
        # The names are taken until the old resource is gone.
        self._opts = pulumi.ResourceOptions(parent=parent, delete_before_replace=True)
        self.resources: list[pulumi.CustomResource] = []
        if spec.made:
            self.resources.append(self._network())
        self.compute = self.inside(spec.compute) if spec.compute else None

    def inside(self, text: str) -> pulumi.Output[str]:
        """An ARM id in the network, which depends on it."""
        return behind(text, *self.resources[:1])

    def _network(self) -> pulumi.CustomResource:
        spec = self.spec.spec
        subnets = []
        if is_range(spec.compute):
            group = self._security_group("nodes", list(self.spec.security))
            subnets.append(self._subnet(COMPUTE, str(spec.compute), group, self._outbound()))
        if is_range(spec.endpoints):
            group = self._security_group("endpoints", [])
            subnets.append(self._subnet(ENDPOINTS, str(spec.endpoints), group, {}))
        properties = {
            "virtualNetworkName": self.spec.name,
            **self._context.common,
            "addressSpace": {"addressPrefixes": list(spec.address_space)},
            "subnets": subnets,
            # As azure-native's classes register what is not given.
            "enableDdosProtection": False,
            "enableVmProtection": False,
        }
        return registration.register(resource_types.VIRTUAL_NETWORK, "vnet", properties, self._opts)

    def _outbound(self) -> dict[str, Any]:
        spec = self.spec.spec
        gateway = {"natGateway": {"id": spec.nat_gateway}} if spec.nat_gateway else {}
        return {**gateway, **({"routeTable": {"id": spec.route_table}} if spec.route_table else {})}

    def _subnet(self, name: str, range_: str, group: pulumi.Output[str], more: dict[str, Any]) -> dict[str, Any]:
        return {
            "name": name,
            "addressPrefix": range_,
            "networkSecurityGroup": {"id": group},
            **more,
            # As azure-native's classes register what is not given.
            "privateEndpointNetworkPolicies": "Disabled",
            "privateLinkServiceNetworkPolicies": "Enabled",
        }

    def _security_group(self, name: str, rules: list[dict[str, Any]]) -> pulumi.Output[str]:
        """The id of a security group: also without rules, as landing zones refuse subnets that have none."""
        full = f"nsg-{name}-{self.spec.name.removeprefix('vnet-')}"
        properties = {"networkSecurityGroupName": full, **self._context.common, "securityRules": rules}
        made = registration.register(resource_types.SECURITY_GROUP, f"nsg-{name}", properties, self._opts)
        return behind(self._context.names.id_of("Microsoft.Network/networkSecurityGroups", full), made)


class StackEndpoints:
    """One endpoint for each part, in the subnet of endpoints.

    Attributes:
        resources: Everything that was registered.
        endpoints: The private endpoints of it.
    """

    def __init__(
        self,
        network: StackNetwork,
        context: PartContext,
        made: Mapping[Part, pulumi.Resource],
        *,
        parent: pulumi.Resource,
    ) -> None:
        """Register them.

        Args:
            network: The network that they are in.
            context: The workspace's.
            made: The parts that the stack owns, the workspace among them.
            parent: The component that they belong to.
        """
        self._network, self._context = network, context
        self._parts = made
        self._opts = pulumi.ResourceOptions(parent=parent, delete_before_replace=True)
        self.resources: list[pulumi.Resource] = []
        self.endpoints: list[pulumi.CustomResource] = []
        zones = {name: self._zone(name) for names in network.spec.zones.values() for name in names}
        for target, link in network.spec.links.items():
            self._endpoint(target, link, {name: zones[name] for name in network.spec.zones.get(target, ())})

    def _zone(self, name: str) -> pulumi.Output[str]:
        """The id of a private DNS zone, behind its link with the network where the stack makes it."""
        if given := self._network.spec.given_zones.get(name):
            return pulumi.Output.from_input(given)
        common = {**self._context.common, "location": "global"}
        zone = registration.register(
            resource_types.PRIVATE_ZONE, name, {"privateZoneName": name, **common}, self._options()
        )
        properties = {
            "virtualNetworkLinkName": f"link-{self._stem}",
            "privateZoneName": behind(name, zone),
            **common,
            "registrationEnabled": False,
            "virtualNetwork": {"id": self._network.inside(self._network.spec.linked)},
        }
        opts = self._options(replace_on_changes=["virtualNetwork"])
        link = registration.register(resource_types.NETWORK_LINK, f"{name}-link", properties, opts)
        self.resources += [zone, link]
        return behind(self._context.names.id_of("Microsoft.Network/privateDnsZones", name), zone, link)

    def _endpoint(self, target: str, link: Link, zones: Mapping[str, pulumi.Output[str]]) -> None:
        names, full = self._context.names, f"pe-{target}-{self._stem}"
        part = self._parts.get(link.part)
        properties = {
            "privateEndpointName": full,
            **self._context.common,
            "subnet": {"id": self._network.inside(str(self._network.spec.endpoints))},
            "privateLinkServiceConnections": [
                {
                    "name": target,
                    "privateLinkServiceId": behind(names.id(link.part), *([part] if part else ())),
                    "groupIds": [link.group],
                }
            ],
        }
        # Azure works on one endpoint of a storage account at a time, and of a subnet: one after the other.
        before = self.resources[-1:]
        opts = self._options(
            depends_on=before,
            # Azure changes neither on an endpoint that exists.
            replace_on_changes=["subnet.id", "privateLinkServiceConnections"],
        )
        endpoint = registration.register(resource_types.PRIVATE_ENDPOINT, f"endpoint-{target}", properties, opts)
        self.resources.append(endpoint)
        self.endpoints.append(endpoint)
        if zones:
            group = {
                "privateDnsZoneGroupName": "default",
                "privateEndpointName": behind(full, endpoint),
                "resourceGroupName": self._context.group_name,
                "privateDnsZoneConfigs": [
                    {"name": zone.replace(".", "-"), "privateDnsZoneId": zone_id} for zone, zone_id in zones.items()
                ],
            }
            made = registration.register(resource_types.ZONE_GROUP, f"endpoint-{target}-zones", group, self._options())
            self.resources.append(made)

    @property
    def _stem(self) -> str:
        return self._network.spec.name.removeprefix("vnet-")

    def _options(self, **more: object) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions.merge(self._opts, pulumi.ResourceOptions(**more))  # type: ignore[arg-type]


class WorkspaceNetwork:
    """The network resources before and after the workspace.

    Attributes:
        plan: The network, composed.
        resources: Everything that clusters come after.
        reached_by: The network and the private endpoints that runs reach their data by, as far as the stack makes them.
        properties: What the workspace says of its network.
        compute: ARM id of the subnet of clusters without one of their own; None where there is none.
    """

    def __init__(self, plan: NetworkPlan, context: PartContext, *, parent: pulumi.Resource) -> None:
        """Register what the workspace needs to know or nodes to be in: its isolation, and the own network.

        Args:
            plan: The network.
            context: The workspace's.
            parent: The component that all of it belongs to.
        """
        self.plan, self._context, self._parent = plan, context, parent
        self.resources: list[pulumi.Resource] = []
        self.reached_by: list[pulumi.CustomResource] = []
        self.properties: dict[str, Any] = {}
        self.compute: pulumi.Output[str] | None = None
        self._isolation = None
        if plan.wanted is not None:
            self._isolation = resources.NetworkIsolation(
                "isolation",
                workspace=context.names.workspace_id,
                wanted=plan.wanted.mode,
                given=plan.wanted.given,
                excluded=list(plan.wanted.excluded) or None,
                opts=pulumi.ResourceOptions(parent=parent),
            )
            self.properties["managedNetwork"] = managed_settings(self._isolation, plan.wanted, plan.firewall)
        self._own = None
        if plan.own is not None:
            self._own = StackNetwork(plan.own, context, parent=parent)
            self.compute = self._own.compute
            self.resources += self._own.resources
            self.reached_by += self._own.resources

    def complete(self, made: Mapping[Part, pulumi.Resource], approvals: Sequence[pulumi.Resource] = ()) -> None:
        """Register what leads to the workspace and its parts: private endpoints, rules and provisioning.

        Args:
            made: The parts that the stack owns, the workspace among them.
            approvals: The roles that outbound rules need.
        """
        names = self._context.names
        if self._own is not None and self._own.spec.links:
            linked = StackEndpoints(self._own, self._context, made, parent=self._parent)
            self.resources += linked.resources
            self.reached_by += linked.endpoints
        if self._isolation is not None:
            workspace_id = behind(names.workspace_id, *made.values(), *approvals)
            managed = resources.ManagedNetwork(
                "network",
                workspace=workspace_id,
                mode=self._isolation.mode,
                rules=self.plan.rules or {},
                opts=pulumi.ResourceOptions(parent=self._parent),
            )
            self.resources.append(managed)
