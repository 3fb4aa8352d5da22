"""All of a stack's network, composed before anything is registered; and the network that Azure ML manages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from infra import data
from infra.names import Names
from infra.network import virtual_network
from infra.security import SANDBOX
from infra.settings.model.jobs import CustomEnvironment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from infra.network.virtual_network import OwnNetwork
    from infra.settings import Cluster, Settings
    from infra.settings.model.workspace import OutboundRule

OFF: Final = "Disabled"
OPEN: Final = "AllowInternetOutbound"
APPROVED: Final = "AllowOnlyApprovedOutbound"

MODES: Final[Mapping[str, str]] = {"off": OFF, "allow_internet_outbound": OPEN, "only_approved": APPROVED}
"""Azure's word by the settings'."""


@dataclass(frozen=True, slots=True)
class WantedIsolation:
    """The isolation that the settings ask of the workspace.

    Attributes:
        mode: In Azure's words.
        given: The settings say so; otherwise a workspace that exists keeps what it has.
        excluded: What of the stack cannot be in a managed network, a sentence each.
    """

    mode: str
    given: bool
    excluded: tuple[str, ...] = ()


def declared(settings: Settings) -> str | None:
    """The mode that the settings ask for, in Azure's words; None where they leave it to the stack."""
    network = settings.workspace.network
    if network is None:
        return None
    if network.isolation is not None:
        return MODES[network.isolation]
    return OFF if network.vnet is not None and network.vnet.compute is not None else None


def wanted(settings: Settings, stack: str) -> WantedIsolation | None:
    """The isolation asked of the workspace; None where none is asked, and nothing is to be looked at.

    Args:
        settings: The stack's settings.
        stack: Its name.
    """
    mode, excluded = declared(settings), tuple(_excluded(settings))
    if mode is not None:
        return WantedIsolation(mode, given=True, excluded=excluded)
    # An imported workspace keeps the network that it has, until the settings say another one.
    if stack == SANDBOX or settings.workspace.adopted:
        return None
    return WantedIsolation(OFF if excluded else OPEN, given=False, excluded=excluded)


def _excluded(settings: Settings) -> Iterator[str]:
    for cluster in settings.clusters:
        if cluster.subnet is not None:
            yield f"cluster {cluster.name} has a subnet of its own"
        if cluster.location is not None and cluster.location != settings.location:
            yield f"cluster {cluster.name} is in {cluster.location}, the workspace in {settings.location}"


DOCKER_HUB: Final = ("docker.io", "*.docker.io", "*.docker.com", "production.cloudflare.docker.com")
"""Hosts of Docker Hub (learn.microsoft.com/azure/machine-learning/how-to-managed-network, 2026-11-22)."""

MICROSOFT: Final = "mcr.microsoft.com"
"""Reached by a rule that Azure ML makes itself."""

_TARGETS: Final = {"blob": ("blob",), "adls_gen2": ("dfs", "blob"), "file": ("file",)}
"""The services of an account by which kinds of datastores are reached; operations of `dfs` may be led on to `blob`
(learn.microsoft.com/azure/storage/common/storage-private-endpoints, 2026-11-22)."""

OWN_REGISTRIES: Final = ".azurecr.io"
"""Of the customer: reached by a private endpoint, as their layers come from storage of names that are not known."""


@dataclass(frozen=True, slots=True)
class Generated:
    """A rule that follows from something else in the settings.

    Attributes:
        name: Its name.
        host: Where it leads.
        why: What needs it.
    """

    name: str
    host: str
    why: str


def generated(settings: Settings) -> tuple[Generated, ...]:
    """The FQDN rules that follow from package hosts and from images of registries on the internet."""
    network = settings.workspace.network
    if network is None or declared(settings) != APPROVED:
        return ()
    found = [Generated(_name("packages", host), host, "package_hosts") for host in network.package_hosts]
    for environment in settings.environments:
        if isinstance(environment, CustomEnvironment):
            why = f"the image of environment {environment.name}"
            found += [Generated(_name("images", host), host, why) for host in hosts_of(environment.image)]
    given = {rule.fqdn.lower() for rule in network.rules if rule.fqdn}
    # A host that several things need is reached by the first rule.
    first: dict[str, Generated] = {}
    for one in found:
        first.setdefault(one.host.lower(), one)
    return tuple(one for host, one in first.items() if host not in given)


@dataclass(frozen=True, slots=True)
class AccountEndpoint:
    """A private endpoint that a datastore needs.

    Attributes:
        name: Of its rule.
        account: ARM id of the storage account.
        target: The part of it.
    """

    name: str
    account: str
    target: str


def endpoints(settings: Settings, names: Names) -> tuple[AccountEndpoint, ...]:
    """The private endpoints to accounts of datastores, none to the workspace's own: Azure ML makes those.

    Args:
        settings: The stack's.
        names: Its names: a bare account lies in its resource group.
    """
    network = settings.workspace.network
    if network is None or declared(settings) != APPROVED:
        return ()
    given = {(str(rule.private_endpoint).lower(), str(rule.target).lower()) for rule in network.rules}
    found: dict[tuple[str, str], AccountEndpoint] = {}
    for spec in settings.datastores:
        account = data.account_id(spec, names)
        if account.lower() == names.id("storage").lower():
            continue
        for target in _TARGETS[spec.kind]:
            # Accounts have names of their own in the whole of Azure.
            name = f"data-{account.rpartition('/')[2]}-{target}"
            key = (account.lower(), target)
            if key not in given:
                found.setdefault(key, AccountEndpoint(name, account, target))
    return tuple(found.values())


def hosts_of(image: str) -> tuple[str, ...]:
    """The hosts on the internet that an image is pulled from, none for Microsoft's and for registries in Azure."""
    registry = registry_of(image)
    if registry == MICROSOFT or registry.endswith(OWN_REGISTRIES):
        return ()
    return DOCKER_HUB if registry == DOCKER_HUB[0] else (registry,)


def registry_of(image: str) -> str:
    """The host in an image's reference, without a port, in small letters: ``docker.io`` where there is none."""
    first, slash, _ = image.partition("/")
    named = slash and ("." in first or ":" in first or first == "localhost")
    host = first.partition(":")[0].lower() if named else DOCKER_HUB[0]
    return DOCKER_HUB[0] if host in ("index.docker.io", "registry-1.docker.io") else host


def rules(settings: Settings, names: Names) -> dict[str, dict[str, Any]]:
    """All rules by name, as the bodies of ``workspaces/outboundRules`` have them under ``properties``."""
    network = settings.workspace.network
    if network is None:
        return {}
    named = {rule.name: wire(rule) for rule in network.rules}
    to_hosts = {one.name: {"type": "FQDN", "destination": one.host} for one in generated(settings)}
    to_accounts = {one.name: _endpoint(one.account, one.target) for one in endpoints(settings, names)}
    return {**named, **to_hosts, **to_accounts}


def wire(rule: OutboundRule) -> dict[str, Any]:
    """A rule of the settings on the wire."""
    if rule.fqdn is not None:
        return {"type": "FQDN", "destination": rule.fqdn}
    if rule.service_tag is not None:
        destination: Mapping[str, Any] = {
            "serviceTag": rule.service_tag,
            "protocol": rule.protocol or "TCP",
            "portRanges": rule.ports or "443",
        }
        return {"type": "ServiceTag", "destination": dict(destination)}
    return _endpoint(rule.private_endpoint, rule.target, spark=bool(rule.spark))


def _endpoint(resource: str | None, target: str | None, *, spark: bool = False) -> dict[str, Any]:
    destination = {"serviceResourceId": resource, "subresourceTarget": target, "sparkEnabled": spark}
    return {"type": "PrivateEndpoint", "destination": destination}


def hosts(settings: Settings) -> Iterator[str]:
    """Every host that an FQDN rule leads to."""
    network = settings.workspace.network
    if network is not None:
        yield from (rule.fqdn for rule in network.rules if rule.fqdn)
        yield from (one.host for one in generated(settings))


def _name(what: str, host: str) -> str:
    return f"{what}-{re.sub(r'[^A-Za-z0-9]+', '-', host.replace('*', 'any')).strip('-')}"[:80]


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
        approved = self.wanted is not None and self.wanted.mode == APPROVED
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
        wanted(settings, stack),
        rules(settings, names),
        tuple(dict.fromkeys(each.account for each in endpoints(settings, names))),
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
