"""Virtual networks, security groups, private endpoints and private DNS zones of the sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.sandbox.manager import Manager

HERE = {"location": "eastus"}
GLOBAL = {"location": "global"}


def group(manager: Manager) -> str:
    return manager.workspace.partition("/providers/")[0]


def path(manager: Manager, kind: str) -> str:
    return f"{group(manager)}/providers/Microsoft.Network/{kind}"


def subnet(name: str, prefix: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "properties": {"addressPrefix": prefix, **more}}


def network(manager: Manager, *subnets: dict[str, Any], space: str = "10.0.0.0/16") -> tuple[int, Any]:
    body = {**HERE, "properties": {"addressSpace": {"addressPrefixes": [space]}, "subnets": list(subnets)}}
    return manager.call("PUT", path(manager, "virtualNetworks/net"), body)


def rule(name: str, priority: int, direction: str = "Outbound") -> dict[str, Any]:
    ends = {"sourceAddressPrefix": "*", "sourcePortRange": "*", "destinationAddressPrefix": "*"}
    words = {"access": "Allow", "protocol": "Tcp", "direction": direction, "destinationPortRange": "443"}
    return {"name": name, "properties": {**ends, **words, "priority": priority}}


def endpoint(manager: Manager, target: str, part: str, within: str = "a") -> tuple[int, Any]:
    link = {"name": "one", "properties": {"privateLinkServiceId": target, "groupIds": [part]}}
    subnet_id = {"id": path(manager, f"virtualNetworks/net/subnets/{within}")}
    body = {**HERE, "properties": {"subnet": subnet_id, "privateLinkServiceConnections": [link]}}
    return manager.call("PUT", path(manager, "privateEndpoints/pe"), body)


def part(manager: Manager, kind: str) -> str:
    _, found = manager.call("GET", manager.workspace)
    return str(found["properties"][kind])


def test_a_network_answers_with_its_subnets_and_each_has_an_id(manager: Manager) -> None:
    status, made = network(manager, subnet("a", "10.0.0.0/24"), subnet("b", "10.0.1.0/24"))
    assert status == 201
    assert [one["name"] for one in made["properties"]["subnets"]] == ["a", "b"]
    one = path(manager, "virtualNetworks/net/subnets/a")
    assert made["properties"]["subnets"][0]["id"] == one
    _, found = manager.call("GET", one)
    assert found["properties"]["addressPrefix"] == "10.0.0.0/24"
    assert network(manager, subnet("b", "10.0.1.0/24"))[0] == 200
    assert manager.call("GET", one)[1]["code"] == "ResourceNotFound"


@pytest.mark.parametrize(
    ("subnets", "code"),
    [
        ([subnet("a", "192.168.0.0/24")], "NetcfgSubnetRangeOutsideVnet"),
        ([subnet("a", "10.0.0.0/24"), subnet("b", "10.0.0.128/25")], "NetcfgSubnetRangesOverlap"),
        ([subnet("a", "10.0.0.1/24")], "InvalidAddressPrefixFormat"),
        ([subnet("a", "10.0.0.0/30")], "SubnetTooSmall"),
        ([subnet("a", "10.0.0.0/24", networkSecurityGroup={"id": "/no/such"})], "InvalidResourceReference"),
        ([subnet("a", "10.0.0.0/24", adressPrefix="10.0.0.0/24")], "InvalidRequestContent"),
    ],
)
def test_a_network_that_does_not_fit_together_is_refused(
    manager: Manager, subnets: list[dict[str, Any]], code: str
) -> None:
    assert network(manager, *subnets)[1]["code"] == code


def test_a_subnet_is_made_and_removed_by_itself(manager: Manager) -> None:
    network(manager, subnet("a", "10.0.0.0/24"))
    own = path(manager, "virtualNetworks/net/subnets/own")
    status, refused = manager.call("PUT", own, {"properties": {"addressPrefix": "10.0.0.0/25"}})
    assert (status, refused["code"]) == (400, "NetcfgSubnetRangesOverlap")
    assert manager.call("PUT", own, {"properties": {"addressPrefix": "10.0.2.0/24"}})[0] == 201
    assert manager.call("DELETE", own)[0] == 202
    manager.settle()
    assert manager.call("GET", own)[0] == 404


def test_what_has_an_address_keeps_its_subnet(manager: Manager) -> None:
    network(manager, subnet("a", "10.0.0.0/24"), subnet("b", "10.0.1.0/24"))
    assert endpoint(manager, part(manager, "storageAccount"), "blob")[0] == 201
    for refused in (
        manager.call("DELETE", path(manager, "virtualNetworks/net/subnets/a")),
        manager.call("DELETE", path(manager, "virtualNetworks/net")),
        network(manager, subnet("b", "10.0.1.0/24")),
    ):
        assert (refused[0], refused[1]["code"]) == (400, "InUseSubnetCannotBeDeleted")
    assert network(manager, subnet("a", "10.0.0.0/24"))[0] == 200, "the other one is free"
    manager.call("DELETE", path(manager, "privateEndpoints/pe"))
    manager.settle()
    assert manager.call("DELETE", path(manager, "virtualNetworks/net"))[0] == 202


def test_security_rules_are_judged_and_a_used_group_stays(manager: Manager) -> None:
    one = path(manager, "networkSecurityGroups/nsg")

    def put(*rules: dict[str, Any]) -> tuple[int, Any]:
        return manager.call("PUT", one, {**HERE, "properties": {"securityRules": list(rules)}})

    assert put(rule("a", 100), rule("b", 100))[1]["code"] == "SecurityRuleConflict"
    assert put(rule("a", 5))[1]["code"] == "SecurityRuleInvalidPriority"
    status, made = put(rule("a", 100), rule("b", 100, "Inbound"))
    assert (status, made["properties"]["securityRules"][0]["properties"]["priority"]) == (201, 100)
    network(manager, subnet("a", "10.0.0.0/24", networkSecurityGroup={"id": one}))
    assert manager.call("DELETE", one)[1]["code"] == "InUseNetworkSecurityGroupCannotBeDeleted"


def test_a_private_endpoint_leads_to_a_part_that_its_target_has(manager: Manager) -> None:
    network(manager, subnet("a", "10.0.0.0/24"))
    assert endpoint(manager, part(manager, "storageAccount"), "vault")[1]["code"] == "InvalidPrivateLinkServiceGroupId"
    assert endpoint(manager, f"{group(manager)}/providers/a/b/c", "blob")[1]["code"] == "PrivateLinkServiceNotFound"
    assert endpoint(manager, manager.workspace, "amlworkspace", "x")[1]["code"] == "InvalidResourceReference"
    registry = part(manager, "containerRegistry")
    assert endpoint(manager, registry, "registry")[1]["code"] == "RegistrySkuNotSupported"
    manager.call("PATCH", registry, {"sku": {"name": "Premium"}})
    status, made = endpoint(manager, registry, "registry")
    assert status == 201
    link = made["properties"]["privateLinkServiceConnections"][0]["properties"]
    assert link["privateLinkServiceConnectionState"]["status"] == "Approved"
    assert endpoint(manager, manager.workspace, "amlworkspace")[1]["code"] == "PrivateEndpointCannotBeUpdated"


def test_a_registry_is_replicated_in_the_premium_tier_and_then_goes_with_time(manager: Manager) -> None:
    registry = part(manager, "containerRegistry")
    other, body = f"{registry}/replications/westus", {"location": "westus"}
    assert manager.call("PUT", other, body)[1]["code"] == "SkuNotSupported"
    manager.call("PATCH", registry, {"sku": {"name": "Premium"}})
    status, made = manager.call("PUT", other, body)
    assert (status, "displayStatus" in made["properties"]["status"]) == (201, False)
    manager.settle()
    assert manager.call("GET", other)[1]["properties"]["status"]["displayStatus"] == "Ready"
    home = manager.call("GET", registry)[1]["location"]
    assert {one["name"] for one in manager.call("GET", f"{registry}/replications")[1]["value"]} == {"westus", home}
    status, going = manager.call("DELETE", registry)
    assert (status, going["properties"]["provisioningState"]) == (202, "Deleting")
    manager.settle()
    assert manager.call("GET", registry)[0] == 404


def test_an_account_has_the_connections_of_its_private_endpoints_and_refuses_or_ends_them(manager: Manager) -> None:
    network(manager, subnet("a", "10.0.0.0/24"))
    account = part(manager, "storageAccount")
    _, made = endpoint(manager, account, "blob")

    def seen() -> list[Any]:
        return list(manager.call("GET", account)[1]["properties"]["privateEndpointConnections"])

    one = seen()[0]
    state = "privateLinkServiceConnectionState"
    assert one["properties"]["privateEndpoint"] == {"id": made["id"]}
    assert one["properties"][state]["status"] == "Approved"
    assert manager.call("PUT", one["id"], {"properties": {state: {"status": "Perhaps"}}})[0] == 400
    assert manager.call("PUT", one["id"], {"properties": {state: {"status": "Rejected"}}})[0] == 200
    assert seen() == [manager.call("GET", one["id"])[1]]
    assert seen()[0]["properties"][state]["status"] == "Rejected"
    endpoint(manager, account, "blob")
    link = manager.call("GET", made["id"])[1]["properties"]["privateLinkServiceConnections"][0]
    assert link["properties"][state]["status"] == "Rejected", "the endpoint's owner does not approve it"
    assert manager.call("DELETE", one["id"])[0] == 200
    assert seen() == []
    assert manager.call("GET", one["id"])[0] == 404
    assert manager.call("GET", f"{account}/privateLinkResources")[1]["value"][0]["name"] == "blob"


def test_zones_are_global_linked_once_and_not_deleted_while_linked(manager: Manager) -> None:
    network(manager, subnet("a", "10.0.0.0/24"))
    zone = path(manager, "privateDnsZones/privatelink.blob.core.windows.net")
    assert manager.call("PUT", zone, HERE)[1]["code"] == "LocationNotAvailableForResourceType"
    assert manager.call("PUT", zone, GLOBAL)[0] == 202
    link = {**GLOBAL, "properties": {"virtualNetwork": {"id": path(manager, "virtualNetworks/net")}}}
    assert manager.call("PUT", f"{zone}/virtualNetworkLinks/one", link)[0] == 202
    assert manager.call("PUT", f"{zone}/virtualNetworkLinks/two", link)[1]["code"] == "Conflict"
    assert manager.call("DELETE", zone)[1]["code"] == "CannotDeleteResource"
    manager.call("DELETE", f"{zone}/virtualNetworkLinks/one")
    manager.settle()
    assert manager.call("DELETE", zone)[0] == 202


def test_a_zone_group_names_zones_that_exist(manager: Manager) -> None:
    network(manager, subnet("a", "10.0.0.0/24"))
    endpoint(manager, part(manager, "storageAccount"), "blob")
    zone = path(manager, "privateDnsZones/privatelink.blob.core.windows.net")
    config = {"name": "blob", "properties": {"privateDnsZoneId": zone}}
    own, body = (
        path(manager, "privateEndpoints/pe/privateDnsZoneGroups/default"),
        {"properties": {"privateDnsZoneConfigs": [config]}},
    )
    assert manager.call("PUT", own, body)[1]["code"] == "PrivateDnsZoneNotFound"
    manager.call("PUT", zone, GLOBAL)
    status, made = manager.call("PUT", own, body)
    assert (status, made["properties"]["provisioningState"]) == (201, "Updating")
    manager.settle()
    (shown,) = manager.call("GET", own)[1]["properties"]["privateDnsZoneConfigs"]
    assert shown["id"] == f"{own}/privateDnsZoneConfigs/blob"
    assert shown["properties"] == {"privateDnsZoneId": zone, "provisioningState": "Succeeded", "recordSets": []}
