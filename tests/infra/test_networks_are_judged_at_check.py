"""Contradictions in a network's settings are found before Azure is asked, and its resources are composed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base.findings import Level
from infra.names import Names
from infra.network import findings, plan
from infra.settings import parse
from infra.settings.model.stack import Settings
from infra.settings.repair import dotted
from tests.support.rows import for_each

if TYPE_CHECKING:
    from amlstack.base.findings import Finding

GROUP = "/subscriptions/s/resourceGroups/g/providers"
SUBNET = f"{GROUP}/Microsoft.Network/virtualNetworks/v/subnets/nodes"
NAMES = Names("s", "rg", "ml1")
HOST = {"name": "a", "fqdn": "files.example.com"}
TAG = {"name": "b", "service_tag": "DataFactory"}
ENDPOINT = {"name": "c", "private_endpoint": f"{GROUP}/Microsoft.Storage/storageAccounts/x", "target": "blob"}
OWN = {"address_space": ["10.0.0.0/16"], "compute": "10.0.0.0/22", "endpoints": "10.0.4.0/26"}


def settings(network: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    cluster = {"name": "gpu", "size": "Standard_ND96asr_v4", "nodes": {"max": 2}, **more.pop("cluster", {})}
    workspace = {"name": "ml1", **({"network": network} if network is not None else {})}
    return {"location": "westeurope", "workspace": workspace, "clusters": [cluster], **more}


def read(network: dict[str, Any] | None, **more: Any) -> Settings:
    return Settings.model_validate(settings(network, **more))


def found(network: dict[str, Any] | None, **more: Any) -> list[Finding]:
    reading = parse(settings(network, **more))
    assert reading.partial is not None
    return [*reading.findings, *findings.check(reading, reading.partial)]


def vnet(**changes: Any) -> dict[str, Any]:
    return {"vnet": {**OWN, **changes}}


@for_each(
    "network, more, where, code",
    [
        ({"isolation": "off", "rules": [ENDPOINT]}, {}, "rules[0]", "network-rule-without-network"),
        ({"isolation": "allow_internet_outbound", "rules": [HOST]}, {}, "rules[0]", "network-rule-needs-approved"),
        ({"rules": [TAG]}, {}, "rules[0]", "network-rule-needs-approved"),
        (
            {"isolation": "only_approved", "firewall": "basic", "rules": [HOST, {**TAG, "name": "A"}]},
            {},
            "rules[1].name",
            "network-rule-twice",
        ),
        (
            {"isolation": "only_approved", "firewall": "basic", "rules": [{**HOST, "fqdn": "x.blob.core.windows.net"}]},
            {},
            "rules[0].fqdn",
            "network-rule-of-storage",
        ),
        ({"isolation": "only_approved", "rules": [HOST]}, {}, "", "network-firewall-cost"),
        ({"isolation": "only_approved", "firewall": "basic"}, {}, "firewall", "network-firewall-unused"),
        ({"package_hosts": ["pypi.org"]}, {}, "package_hosts", "network-package-hosts"),
        ({"isolation": "only_approved", **vnet()}, {}, "vnet.compute", "network-two-networks"),
        (vnet(compute="10.1.0.0/22"), {}, "vnet.compute", "network-range-outside"),
        (vnet(compute="10.0.0.1/22"), {}, "vnet.compute", "network-range"),
        (vnet(compute="10.0.0.0/30"), {}, "vnet.compute", "network-range"),
        (vnet(endpoints="10.0.0.0/26"), {}, "vnet.endpoints", "network-range-overlap"),
        (vnet(address_space=["10.0.0.0/99"]), {}, "vnet.address_space[0]", "network-range"),
        (vnet(compute=SUBNET, endpoints=SUBNET), {}, "vnet.address_space", "network-space-unused"),
        ({"vnet": {"compute": SUBNET, "internet": False}}, {}, "vnet.internet", "network-subnet-given"),
        ({"vnet": {"compute": SUBNET, "dns": "platform"}}, {}, "vnet.dns", "network-endpoints-nowhere"),
        (
            vnet(zones=[f"{GROUP}/Microsoft.Network/privateDnsZones/privatelink.example.com"]),
            {},
            "vnet.zones[0]",
            "network-zone-unknown",
        ),
        (
            vnet(dns="platform", zones=[f"{GROUP}/Microsoft.Network/privateDnsZones/privatelink.azurecr.io"]),
            {},
            "vnet.zones",
            "network-zones-unused",
        ),
        (vnet(compute="10.0.0.0/29"), {"cluster": {"nodes": {"max": 4}}}, "vnet.compute", "network-subnet-small"),
    ],
)
def test_a_contradiction_is_found_at_its_place(
    network: dict[str, Any], more: dict[str, Any], where: str, code: str
) -> None:
    (one,) = found(network, **more)
    assert (one.where, one.code) == (dotted(("workspace", "network")) + (f".{where}" if where else ""), code)


@pytest.mark.parametrize(
    ("network", "cluster", "where", "code"),
    [
        ({"isolation": "only_approved"}, {"subnet": SUBNET}, "subnet", "network-cluster-subnet"),
        ({"isolation": "allow_internet_outbound"}, {"location": "eastus"}, "location", "network-cluster-region"),
        (vnet(), {"location": "eastus"}, "location", "network-cluster-region"),
    ],
)
def test_a_cluster_that_cannot_be_in_the_network_is_found(
    network: dict[str, Any], cluster: dict[str, Any], where: str, code: str
) -> None:
    (one,) = found(network, cluster=cluster)
    assert (one.where, one.code, one.level) == (f"amlstack:clusters[0].{where}", code, Level.ERROR)


@for_each(
    "network",
    [
        None,
        {"isolation": "only_approved", "rules": [ENDPOINT, TAG]},
        {"isolation": "only_approved", "firewall": "basic", "rules": [HOST], "package_hosts": ["pypi.org"]},
        {"isolation": "allow_internet_outbound", "rules": [ENDPOINT], "vnet": {"endpoints": SUBNET}},
        {"isolation": False},
        vnet(),
        {"vnet": {"compute": SUBNET, "endpoints": SUBNET, "dns": "platform"}},
    ],
)
def test_what_goes_together_gives_no_finding(network: dict[str, Any] | None) -> None:
    assert found(network) == []


@for_each(
    "rule, words",
    [
        ({"name": "x"}, "has none of them"),
        ({**HOST, "service_tag": "DataFactory"}, "has `fqdn` and `service_tag`"),
        ({**HOST, "ports": "443"}, "of `fqdn` has `ports`"),
        ({**ENDPOINT, "target": None}, "has no `target`"),
        ({**HOST, "fqdn": "https://x/y"}, "`fqdn` cannot be"),
        ({**TAG, "ports": "all"}, "`ports` cannot be"),
        ({**ENDPOINT, "private_endpoint": "x"}, "`private_endpoint` cannot be"),
    ],
)
def test_a_rule_is_of_one_kind_and_whole(rule: dict[str, Any], words: str) -> None:
    given = {name: value for name, value in rule.items() if value is not None}
    (one,) = found({"isolation": "only_approved", "firewall": "basic", "rules": [given]})[:1]
    assert words in one.seen


@for_each(
    "network, cluster, stack, mode",
    [
        (None, {}, "sandbox", None),
        (None, {}, "dev", (plan.OPEN, False)),
        (None, {"subnet": SUBNET}, "dev", (plan.OFF, False)),
        (None, {"location": "eastus"}, "dev", (plan.OFF, False)),
        ({"isolation": "off"}, {}, "dev", (plan.OFF, True)),
        ({"isolation": "only_approved"}, {}, "sandbox", (plan.APPROVED, True)),
        (vnet(), {}, "dev", (plan.OFF, True)),
        ({"vnet": {"endpoints": SUBNET}}, {}, "dev", (plan.OPEN, False)),
    ],
)
def test_isolation_follows_settings_stack_and_clusters(
    network: dict[str, Any] | None, cluster: dict[str, Any], stack: str, mode: tuple[str, bool] | None
) -> None:
    wanted = plan.wanted(read(network, cluster=cluster), stack)
    assert (None if wanted is None else (wanted.mode, wanted.given)) == mode


@for_each(
    "image, hosts",
    [
        ("mcr.microsoft.com/azureml/openmpi", ()),
        ("team.azurecr.io/train:1", ()),
        ("ubuntu:24.04", plan.DOCKER_HUB),
        ("library/ubuntu", plan.DOCKER_HUB),
        ("nvcr.io/nvidia/pytorch:25.01-py3", ("nvcr.io",)),
        ("registry.example.com:5000/x", ("registry.example.com",)),
    ],
)
def test_the_hosts_of_an_image_are_those_of_its_registry(image: str, hosts: tuple[str, ...]) -> None:
    assert plan.hosts_of(image) == hosts


def test_rules_follow_from_packages_and_images_once_for_each_host() -> None:
    environments = [{"name": "one", "image": "nvcr.io/a:1"}, {"name": "two", "image": "nvcr.io/b:1"}]
    network = {"isolation": "only_approved", "firewall": "basic", "rules": [HOST, ENDPOINT]}
    hosts = ["pypi.org", "files.example.com"]
    made = plan.rules(read({**network, "package_hosts": hosts}, environments=environments), NAMES)
    assert {name: rule["destination"] for name, rule in made.items() if rule["type"] == "FQDN"} == {
        "a": "files.example.com",
        "packages-pypi-org": "pypi.org",
        "images-nvcr-io": "nvcr.io",
    }
    assert made["c"]["destination"]["subresourceTarget"] == "blob"


def test_rules_lead_to_the_accounts_of_datastores_once_and_not_to_the_workspaces_own() -> None:
    lake = f"{GROUP}/Microsoft.Storage/storageAccounts/lake"
    given_account = f"{GROUP}/Microsoft.Storage/storageAccounts/given"
    given_rule = {**ENDPOINT, "private_endpoint": given_account}
    stores = [
        {"name": "own", "container": "a"},
        {"name": "one", "container": "a", "account": lake},
        {"name": "two", "container": "b", "account": lake},
        {"name": "tree", "kind": "adls_gen2", "container": "c", "account": lake},
        {"name": "near", "kind": "file", "container": "d", "account": "near"},
        {"name": "given", "container": "e", "account": given_account},
    ]
    network = {"isolation": "only_approved", "rules": [given_rule]}
    given = read(network, datastores=stores)
    made = plan.rules(given, NAMES)
    near = NAMES.id_of("Microsoft.Storage/storageAccounts", "near")
    assert {name: (rule["destination"]["serviceResourceId"], rule["destination"]["subresourceTarget"])
            for name, rule in made.items()} == {
        "c": (given_account, "blob"),
        "data-lake-blob": (lake, "blob"),
        "data-lake-dfs": (lake, "dfs"),
        "data-near-file": (near, "file"),
    }  # fmt: skip
    assert plan.network_plan(given, NAMES, "prod").accounts == (lake, near)
    assert plan.endpoints(read({"isolation": "allow_internet_outbound"}, datastores=stores), NAMES) == ()
    (twice,) = found({**network, "rules": [{**given_rule, "name": "data-lake-dfs"}]}, datastores=stores)
    assert (twice.code, twice.where) == ("network-rule-twice", "amlstack:workspace.network.rules[0].name")


def test_a_registry_in_azure_needs_a_rule_of_its_own() -> None:
    environments = [{"name": "one", "image": "team.azurecr.io/a:1"}]
    network: dict[str, Any] = {"isolation": "only_approved"}
    (one,) = found(network, environments=environments)
    assert (one.code, one.level) == ("network-registry-unreached", Level.WARNING)
    registry = f"{GROUP}/Microsoft.ContainerRegistry/registries/team"
    network["rules"] = [{"name": "team", "private_endpoint": registry, "target": "registry"}]
    assert found(network, environments=environments) == []


def test_security_rules_have_priorities_of_their_own_and_deny_last() -> None:
    rules = plan.subnet_rules("westeurope", public_addresses=True, internet=False)
    places = [(rule["direction"], rule["priority"]) for rule in rules]
    assert len(set(places)) == len(places)
    assert rules[0]["destinationPortRange"] == "44224"
    assert (rules[-1]["access"], rules[-1]["priority"]) == ("Deny", max(rule["priority"] for rule in rules))
    assert not any(
        rule["direction"] == "Inbound" for rule in plan.subnet_rules("x", public_addresses=False, internet=True)
    )
    assert "Storage.westeurope" in {rule["destinationAddressPrefix"] for rule in rules}


def test_the_own_network_is_composed_before_anything_exists() -> None:
    names = Names("s", "g", "ml_1")
    network = plan.own_network(read(vnet(private_endpoints=["blob", "registry"])), names, "china")
    assert network is not None
    assert network.compute == f"{GROUP}/Microsoft.Network/virtualNetworks/vnet-ml-1/subnets/compute"
    assert network.zones["registry"] == ("privatelink.azurecr.cn",)
    assert plan.network_plan(read(vnet()), names, "dev").needs_premium
    given = plan.own_network(read({"vnet": {"compute": SUBNET, "endpoints": SUBNET, "dns": "platform"}}), names)
    assert given is not None
    assert (given.made, given.compute, given.zones) == (False, SUBNET, {})
    assert given.linked == SUBNET.rsplit("/subnets/", 1)[0]


def test_a_cluster_without_a_subnet_is_judged_in_that_of_the_network() -> None:
    stack = read(vnet())
    assert str(plan.placed(stack.clusters[0], stack).subnet).endswith("/subnets/compute")
    named = read(vnet(), cluster={"subnet": SUBNET})
    assert plan.placed(named.clusters[0], named).subnet == SUBNET
