"""Contradictions in the network's settings, found before anything is asked of Azure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from amlstack.base.findings import Finding, Level
from infra.names import Names
from infra.network import plan
from infra.network.plan import APPROVED, MODES, OFF, OWN_REGISTRIES, declared, endpoints, generated, hosts, registry_of
from infra.settings.model.stack import CustomEnvironment
from infra.settings.repair import Found, finding_at, stated_at

if TYPE_CHECKING:
    from infra.settings import Reading, Settings
    from infra.settings.model.workspace import NetworkSettings, VirtualNetwork
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
            yield stated_at((*at, "name"), "network-rule-twice", rule=rule, other=other)
        if mode == OFF:
            yield stated_at(at, "network-rule-without-network", rule=rule)
        elif mode != APPROVED and rule.private_endpoint is None:
            yield stated_at(at, "network-rule-needs-approved", rule=rule, kind=_kind(rule.kind))
        if rule.fqdn is not None and rule.fqdn.lower().endswith(_STORAGE):
            yield stated_at((*at, "fqdn"), "network-rule-of-storage", rule=rule)
    if network.package_hosts and mode != APPROVED:
        yield stated_at((*AT, "package_hosts"), "network-package-hosts", Level.WARNING)
    reached = tuple(hosts(settings)) if mode == APPROVED else ()
    if reached and network.firewall is None:
        yield stated_at(AT, "network-firewall-cost", Level.WARNING, reached=", ".join(reached))
    if network.firewall is not None and not reached:
        yield stated_at((*AT, "firewall"), "network-firewall-unused", Level.WARNING)
    if mode == APPROVED:
        yield from _of_images(settings, network)


def _of_images(settings: Settings, network: NetworkSettings) -> Iterator[Found]:
    linked = {rule.private_endpoint.rsplit("/", 1)[-1].lower() for rule in network.rules if rule.private_endpoint}
    for index, environment in enumerate(settings.environments):
        if not isinstance(environment, CustomEnvironment):
            continue
        host = registry_of(environment.image)
        if host.endswith(OWN_REGISTRIES) and host.removesuffix(OWN_REGISTRIES) not in linked:
            yield stated_at(("environments", index, "image"), "network-registry-unreached", Level.WARNING, host=host)


def _of_clusters(settings: Settings, mode: str) -> Iterator[Found]:
    word = _WORD[mode]
    for index, cluster in enumerate(settings.clusters):
        if cluster.subnet is not None:
            yield stated_at(("clusters", index, "subnet"), "network-cluster-subnet", cluster=cluster, word=word)
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
                yield stated_at((*at, key), "network-range-overlap", text=text, other=other, one=one)
        taken[key] = range_
    if spec.address_space and not plan.is_range(spec.compute) and not plan.is_range(spec.endpoints):
        yield stated_at((*at, "address_space"), "network-space-unused")


def _of_endpoints(spec: VirtualNetwork) -> Iterator[Found]:
    at = (*AT, "vnet")
    if spec.endpoints is None:
        for key in ("private_endpoints", "dns", "zones"):
            if key in spec.model_fields_set:
                yield stated_at((*at, key), "network-endpoints-nowhere", key=key)
        return
    if spec.dns == "platform" and spec.zones:
        yield stated_at((*at, "zones"), "network-zones-unused")
    known = plan.known_zones()
    for index, zone in enumerate(spec.zones):
        name = zone.rsplit("/", 1)[-1].lower()
        if name not in known:
            yield stated_at((*at, "zones", index), "network-zone-unknown", name=name, known=", ".join(sorted(known)))


def _of_own(settings: Settings, spec: VirtualNetwork, mode: str | None) -> Iterator[Found]:
    at = (*AT, "vnet")
    if not plan.is_range(spec.compute):
        for key in ("internet", "nat_gateway", "route_table"):
            if key in spec.model_fields_set:
                yield stated_at((*at, key), "network-subnet-given", key=key)
    if spec.compute is None:
        return
    if mode != OFF:
        yield stated_at((*at, "compute"), "network-two-networks", _WORD=_WORD[str(mode)])
        return
    inside = [cluster for cluster in settings.clusters if cluster.subnet is None]
    for index, cluster in enumerate(settings.clusters):
        if cluster in inside and cluster.location is not None and cluster.location != settings.location:
            yield stated_at(
                ("clusters", index, "location"), "network-cluster-region", cluster=cluster, settings=settings
            )
    if plan.is_range(spec.compute) and _no_range(spec.compute) is None:
        nodes, room = sum(cluster.nodes.max for cluster in inside), plan.addresses(spec.compute)
        if nodes > room:
            yield stated_at((*at, "compute"), "network-subnet-small", Level.WARNING, spec=spec, room=room, nodes=nodes)


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
