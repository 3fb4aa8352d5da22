"""Contradictions in the network's settings, found before anything is asked of Azure."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final

from amlstack.base.findings import Level
from infra.names import Names
from infra.network import plan
from infra.network.plan import APPROVED, MODES, OFF, OWN_REGISTRIES, declared, endpoints, generated, hosts, registry_of
from infra.settings.model.jobs import CustomEnvironment
from infra.settings.repair import finding_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amlstack.base.findings import Finding
    from infra.settings import Reading, Settings
    from infra.settings.model.workspace import NetworkSettings, VirtualNetwork
    from infra.settings.repair import Found
    from infra.settings.stackfile import Loc

AT: Final = ("workspace", "network")
_WORD = {azure: ours for ours, azure in MODES.items()}
_STORAGE = (".core.windows.net", ".core.usgovcloudapi.net", ".core.chinacloudapi.cn")


def check(reading: Reading, settings: Settings) -> Iterator[Finding]:
    """All findings, each at its place.

    Args:
        reading: Where things were written, and what of it is made up.
        settings: The settings, mended.
    """
    network = settings.workspace.network
    if network is None or reading.doubts(*AT):
        return
    mode = declared(settings)
    found = [*_of_rules(settings, network, mode)]
    if network.vnet is not None:
        found += [*_of_ranges(network.vnet), *_of_endpoints(network.vnet), *_of_own(settings, network.vnet, mode)]
    if mode not in (None, OFF):
        found += _of_clusters(settings, str(mode))
    for loc, finding in found:
        if loc[0] != "clusters" or not reading.doubts(*loc):
            yield reading.locate(loc, finding)


def _of_rules(settings: Settings, network: NetworkSettings, mode: str | None) -> Iterator[Found]:
    seen: dict[str, str] = {one.name.lower(): one.why for one in generated(settings)}
    # Names of rules have no id in them, so that any place will do.
    names = Names.of(settings, project="-", stack="-", subscription="-")
    seen |= {one.name.lower(): f"the datastores in {one.account}" for one in endpoints(settings, names)}
    for index, rule in enumerate(network.rules):
        at: Loc = (*AT, "rules", index)
        if (other := seen.setdefault(rule.name.lower(), f"rules[{index}]")) != f"rules[{index}]":
            yield finding_at(
                (*at, "name"), "network-rule-twice", f"`{rule.name}` is the name of `{other}` too",
                "Each outbound rule has a name of its own, without regard to letter case",
            )  # fmt: skip
        if mode == OFF:
            yield finding_at(
                at, "network-rule-without-network", f"The rule `{rule.name}` stands beside `isolation: off`",
                "Outbound rules are those of a managed network; in a network of your own, security rules and your "
                "firewall bound what nodes reach",
                "Leave it out, or write isolation: only_approved",
            )  # fmt: skip
        elif mode != APPROVED and rule.private_endpoint is None:
            yield finding_at(
                at, "network-rule-needs-approved", f"The rule `{rule.name}` names a {_kind(rule.kind)}",
                "Rules of hosts and service tags are taken under `only_approved` alone: elsewhere nodes reach the "
                "whole internet",
                "Leave it out, or write isolation: only_approved, from which there is no way back",
            )  # fmt: skip
        if rule.fqdn is not None and rule.fqdn.lower().endswith(_STORAGE):
            yield finding_at(
                (*at, "fqdn"), "network-rule-of-storage", f"`{rule.fqdn}` is a storage account",
                "Under `only_approved` a storage account is reached by a private endpoint, never by its host name",
                "Write private_endpoint: ARM id of the account, target: blob",
            )  # fmt: skip
    if network.package_hosts and mode != APPROVED:
        yield finding_at(
            (*AT, "package_hosts"), "network-package-hosts", "`package_hosts` are given without `only_approved`",
            "They become outbound rules of `only_approved`; elsewhere they have no effect",
            level=Level.WARNING,
        )  # fmt: skip
    reached = tuple(hosts(settings)) if mode == APPROVED else ()
    if reached and network.firewall is None:
        yield finding_at(
            AT, "network-firewall-cost", f"Outbound rules name hosts: {', '.join(reached)}",
            "Azure ML makes an Azure Firewall for the first such rule, which is billed by the hour even while no "
            "cluster runs, and provisioning takes about ten minutes more",
            "Write firewall: basic or firewall: standard to say that it is meant",
            level=Level.WARNING,
        )  # fmt: skip
    if network.firewall is not None and not reached:
        yield finding_at(
            (*AT, "firewall"), "network-firewall-unused", "`firewall` is given, and no outbound rule names a host",
            "Azure ML makes the firewall only for rules of hosts under `only_approved`",
            level=Level.WARNING,
        )  # fmt: skip
    if mode == APPROVED:
        yield from _of_images(settings, network)


def _of_images(settings: Settings, network: NetworkSettings) -> Iterator[Found]:
    linked = {rule.private_endpoint.rsplit("/", 1)[-1].lower() for rule in network.rules if rule.private_endpoint}
    for index, environment in enumerate(settings.environments):
        if not isinstance(environment, CustomEnvironment):
            continue
        host = registry_of(environment.image)
        if host.endswith(OWN_REGISTRIES) and host.removesuffix(OWN_REGISTRIES) not in linked:
            yield finding_at(
                ("environments", index, "image"), "network-registry-unreached",
                f"The image comes from `{host}`, to which no outbound rule leads",
                "Under `only_approved` nodes reach a registry in Azure by a private endpoint, unless it is the "
                "workspace's own",
                "Add a rule with private_endpoint: ARM id of the registry, target: registry",
                level=Level.WARNING,
            )  # fmt: skip


def _of_clusters(settings: Settings, mode: str) -> Iterator[Found]:
    word = _WORD[mode]
    for index, cluster in enumerate(settings.clusters):
        if cluster.subnet is not None:
            yield finding_at(
                ("clusters", index, "subnet"), "network-cluster-subnet",
                f"`{cluster.name}` names a subnet, and the workspace has `isolation: {word}`",
                "In a workspace with a managed network all nodes are in that network",
                "Leave `subnet` out, or write isolation: off for a new workspace",
            )  # fmt: skip
        if cluster.location is not None and cluster.location != settings.location:
            yield finding_at(
                ("clusters", index, "location"), "network-cluster-region",
                f"`{cluster.name}` is in {cluster.location}, and the workspace with `isolation: {word}` in "
                f"{settings.location}",
                "Azure ML makes no cluster in another region than that of a workspace with a managed network",
                "Leave `location` out, or write isolation: off for a new workspace",
            )  # fmt: skip


def _of_ranges(spec: VirtualNetwork) -> Iterator[Found]:
    """Ranges that are none, lie outside the network or overlap."""
    at = (*AT, "vnet")
    space, faulty = [], False
    for index, text in enumerate(spec.address_space):
        if (reason := _no_range(text)) is None:
            space.append(ipaddress.ip_network(text))
        else:
            faulty = True
            yield finding_at((*at, "address_space", index), "network-range", f"`{text}` is no range", reason)
    taken: dict[str, ipaddress.IPv4Network | ipaddress.IPv6Network] = {}
    for key in (plan.COMPUTE, plan.ENDPOINTS):
        text = getattr(spec, key)
        if not plan.is_range(text):
            continue
        if (reason := _no_range(text)) is not None:
            yield finding_at((*at, key), "network-range", f"`{text}` is no range", reason)
            continue
        range_ = ipaddress.ip_network(text)
        if not faulty and not any(_inside(range_, whole) for whole in space):
            seen = f"`{text}` is outside of `address_space`" if space else f"`{text}` is a range without a network"
            yield finding_at(
                (*at, key), "network-range-outside", seen,
                "The stack makes the subnet in a network of its own, whose ranges are `address_space`",
                "Write address_space: [RANGE] around it, or the ARM id of a subnet that exists",
            )  # fmt: skip
        for other, one in taken.items():
            if range_.overlaps(one):
                yield finding_at(
                    (*at, key), "network-range-overlap", f"`{text}` overlaps `{other}`, {one}",
                    "Subnets of one network share no address",
                )  # fmt: skip
        taken[key] = range_
    if spec.address_space and not plan.is_range(spec.compute) and not plan.is_range(spec.endpoints):
        yield finding_at(
            (*at, "address_space"), "network-space-unused", "`address_space` is given, and no subnet is a range",
            "The stack makes a network for subnets that are given as ranges",
            "Write compute: RANGE or endpoints: RANGE, or leave address_space out",
        )  # fmt: skip


def _of_endpoints(spec: VirtualNetwork) -> Iterator[Found]:
    at = (*AT, "vnet")
    if spec.endpoints is None:
        for key in ("private_endpoints", "dns", "zones"):
            if key in spec.model_fields_set:
                yield finding_at(
                    (*at, key), "network-endpoints-nowhere", f"`{key}` is given without `endpoints`",
                    "Private endpoints have addresses in a subnet", "Write endpoints: RANGE or the ARM id of a subnet",
                )  # fmt: skip
        return
    if spec.dns == "platform" and spec.zones:
        yield finding_at(
            (*at, "zones"), "network-zones-unused", "`zones` are given beside `dns: platform`",
            "There an Azure Policy of the platform team registers the names of endpoints",
            "Leave one of the two out",
        )  # fmt: skip
    known = plan.known_zones()
    for index, zone in enumerate(spec.zones):
        name = zone.rsplit("/", 1)[-1].lower()
        if name not in known:
            yield finding_at(
                (*at, "zones", index), "network-zone-unknown", f"`{name}` is no zone of the stack's private endpoints",
                f"These are {', '.join(sorted(known))}",
            )  # fmt: skip


def _of_own(settings: Settings, spec: VirtualNetwork, mode: str | None) -> Iterator[Found]:
    at = (*AT, "vnet")
    if not plan.is_range(spec.compute):
        for key in ("internet", "nat_gateway", "route_table"):
            if key in spec.model_fields_set:
                yield finding_at(
                    (*at, key), "network-subnet-given", f"`{key}` is given, and the stack makes no subnet of nodes",
                    "It is a property of the subnet that the stack makes; one that exists is left as it is",
                    "Leave it out, or write compute: RANGE",
                )  # fmt: skip
    if spec.compute is None:
        return
    if mode != OFF:
        yield finding_at(
            (*at, "compute"), "network-two-networks",
            f"A subnet for nodes stands beside `isolation: {_WORD[str(mode)]}`",
            "In a workspace with a managed network all nodes are in that network",
            "Leave `compute` out, or write isolation: off for a new workspace",
        )  # fmt: skip
        return
    inside = [cluster for cluster in settings.clusters if cluster.subnet is None]
    for index, cluster in enumerate(settings.clusters):
        if cluster in inside and cluster.location is not None and cluster.location != settings.location:
            yield finding_at(
                ("clusters", index, "location"), "network-cluster-region",
                f"`{cluster.name}` is in {cluster.location}, and the subnet of the workspace's network in "
                f"{settings.location}",
                "Nodes are in the region of their subnet", "Name a subnet of that region with `subnet`",
            )  # fmt: skip
    if plan.is_range(spec.compute) and _no_range(spec.compute) is None:
        nodes, room = sum(cluster.nodes.max for cluster in inside), plan.addresses(spec.compute)
        if nodes > room:
            yield finding_at(
                (*at, "compute"), "network-subnet-small",
                f"`{spec.compute}` has {room} addresses for nodes, and the clusters in it up to {nodes} nodes",
                "Each node takes one address; Azure keeps five of each subnet", "Give a larger range",
                level=Level.WARNING,
            )  # fmt: skip


def _no_range(text: str) -> str | None:
    """The reason why a text is no range of addresses; None where it is one."""
    try:
        ipaddress.ip_network(text)
    except ValueError as error:
        if "host bits" in str(error):
            return f"A range begins with its first address: {ipaddress.ip_network(text, strict=False)}"
        return "A range is four numbers up to 255 and a length up to 32, e.g. 10.20.0.0/16"
    if int(text.rsplit("/", 1)[1]) > 29:
        return "The smallest range that Azure takes is /29"
    return None


def _inside(one: ipaddress.IPv4Network | ipaddress.IPv6Network, whole: object) -> bool:
    return isinstance(one, ipaddress.IPv4Network) and isinstance(whole, ipaddress.IPv4Network) and one.subnet_of(whole)


def _kind(key: str) -> str:
    return {"fqdn": "host", "service_tag": "service tag"}.get(key, key)
