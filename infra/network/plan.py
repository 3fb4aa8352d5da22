"""All of a stack's network, composed before anything is registered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from infra.names import Names
from infra.network import managed_network, virtual_network

if TYPE_CHECKING:
    from infra.network.managed_network import WantedIsolation
    from infra.network.virtual_network import OwnNetwork
    from infra.settings import Cluster, Settings


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """The network of a workspace that the stack makes.

    Attributes:
        wanted: What is asked of its isolation; None where nothing is, and nothing is looked at.
        rules: Outbound rules of the managed network by name.
        accounts: ARM ids of the storage accounts of datastores that some of them lead to.
        firewall: Size of the firewall that they need.
        own: The team's own network.
    """

    wanted: WantedIsolation | None = None
    rules: dict[str, dict[str, Any]] | None = None
    accounts: tuple[str, ...] = ()
    firewall: str | None = None
    own: OwnNetwork | None = None

    @property
    def needs_premium(self) -> bool:
        """True where private endpoints lead to the registry, which only its premium tier takes."""
        approved = self.wanted is not None and self.wanted.mode == managed_network.APPROVED
        return approved or (self.own is not None and "registry" in self.own.links)


def network_plan(settings: Settings, names: Names, stack: str, cloud: str = "public") -> NetworkPlan:
    """The network of a stack.

    Args:
        settings: Its settings.
        names: Its names, in the group that it has.
        stack: Its name.
        cloud: As ``azure-native:environment`` names it.
    """
    network = settings.workspace.network
    return NetworkPlan(
        managed_network.wanted(settings, stack),
        managed_network.rules(settings, names),
        tuple(dict.fromkeys(each.account for each in managed_network.endpoints(settings, names))),
        network.firewall if network is not None else None,
        virtual_network.own_network(settings, names, cloud),
    )


def placed(spec: Cluster, settings: Settings) -> Cluster:
    """A cluster in the subnet of the workspace's network, unless it names one of its own.

    The subnet's id is not the real one: it is for rules, which look at no name in it.
    """
    if (
        spec.subnet is not None
        or (network := virtual_network.own_network(settings, _SOMEWHERE)) is None
        or network.compute is None
    ):
        return spec
    return spec.model_copy(update={"subnet": network.compute})


_SOMEWHERE = Names("-", "-", "-")
