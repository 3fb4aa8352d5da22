"""Private endpoints of the workspace and what it stands on, with the DNS zones of their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from infra.components import azure_native, tokens
from infra.components.order import behind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.components.workspace.network.own import StackNetwork
    from infra.components.workspace.place import Place
    from infra.names import Part
    from infra.network.links import Link

GLOBAL = "global"


class StackEndpoints:
    """One endpoint for each part, in the subnet of endpoints.

    Attributes:
        resources: Everything that was registered.
        endpoints: The private endpoints of it.
    """

    def __init__(
        self,
        network: StackNetwork,
        place: Place,
        made: Mapping[Part, pulumi.Resource],
        *,
        parent: pulumi.Resource,
    ) -> None:
        """Register them.

        Args:
            network: The network that they are in.
            place: The workspace's.
            made: The parts that the stack owns, the workspace among them.
            parent: The component that they belong to.
        """
        self._network, self._place = network, place
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
        common = {"resourceGroupName": self._place.group_name, "location": GLOBAL, "tags": dict(self._place.tags)}
        zone = azure_native.register(tokens.PRIVATE_ZONE, name, {"privateZoneName": name, **common}, self._options())
        properties = {
            "virtualNetworkLinkName": f"link-{self._stem}",
            "privateZoneName": behind(name, zone),
            **common,
            "registrationEnabled": False,
            "virtualNetwork": {"id": self._network.inside(self._network.spec.linked)},
        }
        opts = self._options(replace_on_changes=["virtualNetwork"])
        link = azure_native.register(tokens.NETWORK_LINK, f"{name}-link", properties, opts)
        self.resources += [zone, link]
        return behind(self._place.names.id_of("Microsoft.Network/privateDnsZones", name), zone, link)

    def _endpoint(self, target: str, link: Link, zones: Mapping[str, pulumi.Output[str]]) -> None:
        names, full = self._place.names, f"pe-{target}-{self._stem}"
        part = self._parts.get(link.part)
        properties = {
            "privateEndpointName": full,
            **self._place.common,
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
        endpoint = azure_native.register(tokens.PRIVATE_ENDPOINT, f"endpoint-{target}", properties, opts)
        self.resources.append(endpoint)
        self.endpoints.append(endpoint)
        if zones:
            group = {
                "privateDnsZoneGroupName": "default",
                "privateEndpointName": behind(full, endpoint),
                "resourceGroupName": self._place.group_name,
                "privateDnsZoneConfigs": [
                    {"name": zone.replace(".", "-"), "privateDnsZoneId": zone_id} for zone, zone_id in zones.items()
                ],
            }
            made = azure_native.register(tokens.ZONE_GROUP, f"endpoint-{target}-zones", group, self._options())
            self.resources.append(made)

    @property
    def _stem(self) -> str:
        return self._network.spec.name.removeprefix("vnet-")

    def _options(self, **more: object) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions.merge(self._opts, pulumi.ResourceOptions(**more))  # type: ignore[arg-type]
