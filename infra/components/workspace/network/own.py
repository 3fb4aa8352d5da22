"""The team's own network: subnets with their security groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi

from infra.components import azure_native, tokens
from infra.components.order import behind
from infra.network.own import COMPUTE, ENDPOINTS, is_range

if TYPE_CHECKING:
    from infra.components.workspace.place import Place
    from infra.network.own import OwnNetwork


class StackNetwork:
    """What the stack makes of the team's own network.

    Attributes:
        spec: The network, composed.
        resources: Everything that was registered.
        compute: ARM id of the subnet of nodes, behind the network where the stack makes it; None where there is none.
    """

    def __init__(self, spec: OwnNetwork, place: Place, *, parent: pulumi.Resource) -> None:
        self.spec, self._place = spec, place
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
            **self._place.common,
            "addressSpace": {"addressPrefixes": list(spec.address_space)},
            "subnets": subnets,
            # As azure-native's classes register what is not given.
            "enableDdosProtection": False,
            "enableVmProtection": False,
        }
        return azure_native.register(tokens.VIRTUAL_NETWORK, "vnet", properties, self._opts)

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
        properties = {"networkSecurityGroupName": full, **self._place.common, "securityRules": rules}
        made = azure_native.register(tokens.SECURITY_GROUP, f"nsg-{name}", properties, self._opts)
        return behind(self._place.names.id_of("Microsoft.Network/networkSecurityGroups", full), made)
