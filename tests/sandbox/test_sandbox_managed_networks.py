"""The managed network of a workspace: modes, rules, provisioning, and what it means for computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.sandbox.sandbox_client import ROOT, cluster, workspace_bodies

if TYPE_CHECKING:
    from tests.support.sandbox.manager import Manager

OPEN, APPROVED = "AllowInternetOutbound", "AllowOnlyApprovedOutbound"
HOST = {"type": "FQDN", "destination": "files.example.com"}


def isolate(manager: Manager, mode: str, **more: Any) -> tuple[int, Any]:
    network = {"isolationMode": mode, **more}
    return manager.call("PATCH", manager.workspace, {"properties": {"managedNetwork": network}})


def put_rule(manager: Manager, name: str, rule: dict[str, Any]) -> tuple[int, Any]:
    return manager.call("PUT", f"{manager.workspace}/outboundRules/{name}", {"properties": rule})


def to(manager: Manager, part: str = "storageAccount", target: str = "blob") -> dict[str, Any]:
    _, found = manager.call("GET", manager.workspace)
    destination = {"serviceResourceId": found["properties"][part], "subresourceTarget": target}
    return {"type": "PrivateEndpoint", "destination": destination}


def shown(manager: Manager) -> dict[str, Any]:
    network: dict[str, Any] = manager.call("GET", manager.workspace)[1]["properties"]["managedNetwork"]
    return network


def provision(manager: Manager) -> tuple[int, Any]:
    return manager.call("POST", f"{manager.workspace}/provisionManagedNetwork", {"includeSpark": False})


def test_a_workspace_without_a_managed_network_shows_none_and_provisions_none(manager: Manager) -> None:
    assert "managedNetwork" not in manager.call("GET", manager.workspace)[1]["properties"]
    assert provision(manager)[1]["code"] == "ManagedNetworkDisabled"
    assert put_rule(manager, "a", HOST)[1]["code"] == "InvalidRequestContent"


def test_isolation_only_gets_stricter(manager: Manager) -> None:
    assert isolate(manager, OPEN)[0] == 202
    assert isolate(manager, "Disabled")[1]["code"] == "ManagedNetworkIsolationModeNotSupported"
    assert isolate(manager, APPROVED)[0] == 202
    assert isolate(manager, OPEN)[1]["code"] == "ManagedNetworkIsolationModeNotSupported"


def test_isolation_is_not_turned_on_beside_computes(manager: Manager) -> None:
    manager.call("PUT", f"{manager.workspace}/computes/gpu", cluster())
    status, refused = isolate(manager, OPEN)
    assert (status, refused["code"]) == (400, "ManagedNetworkCannotBeEnabled")
    assert "gpu" in refused["message"]


def test_a_put_without_rules_and_status_keeps_them(manager: Manager) -> None:
    isolate(manager, OPEN)
    put_rule(manager, "data", to(manager))
    provision(manager)
    manager.settle()
    group = manager.workspace.partition("/providers/")[0]
    path, body = workspace_bodies(group, "space-1")[-1]
    stale = {"isolationMode": OPEN, "status": {"status": "Inactive"}}
    status, _ = manager.call(
        "PUT", group + path, {**body, "properties": {**body["properties"], "managedNetwork": stale}}
    )
    assert status == 200
    assert shown(manager)["status"]["status"] == "Active"
    assert "data" in shown(manager)["outboundRules"]


@pytest.mark.parametrize(
    ("mode", "rule", "good"),
    [
        (OPEN, HOST, False),
        (OPEN, {"type": "ServiceTag", "destination": {"serviceTag": "DataFactory"}}, False),
        (APPROVED, HOST, True),
        (APPROVED, {"type": "ServiceTag", "destination": {"serviceTag": "DataFactory"}}, True),
        (APPROVED, {"type": "FQDN", "destination": "other.blob.core.windows.net"}, False),
        (APPROVED, {"type": "FQDN"}, False),
        (APPROVED, {"type": "Fqdn", "destination": "files.example.com"}, True),
        (APPROVED, {"type": "Host", "destination": "files.example.com"}, False),
        (
            OPEN,
            {"type": "PrivateEndpoint", "destination": {"serviceResourceId": "/no", "subresourceTarget": "x"}},
            False,
        ),
    ],
)
def test_rules_are_judged_by_the_mode(manager: Manager, mode: str, rule: dict[str, Any], good: bool) -> None:
    isolate(manager, mode)
    assert (put_rule(manager, "a", rule)[0] == 200) is good


def test_provisioning_takes_its_time_and_makes_rules_active(manager: Manager) -> None:
    isolate(manager, APPROVED)
    put_rule(manager, "host", HOST)
    before = shown(manager)
    assert (before["status"]["status"], {rule["status"] for rule in before["outboundRules"].values()}) == (
        "Inactive",
        {"Inactive"},
    )
    own = before["outboundRules"]["__SYS_ST_AzureMonitor"]
    assert own["destination"] == {"serviceTag": "AzureMonitor", "protocol": "*", "portRanges": "*"}
    assert own["category"] == "Required"
    assert provision(manager)[0] == 202
    assert provision(manager)[0] == 202
    under_way = [one.kind for one in manager.store.operations.running(manager.workspace)]
    assert under_way.count("provision") == 1, "a second one joins the first"
    manager.settle()
    found = shown(manager)
    assert (found["status"]["status"], found["outboundRules"]["host"]["status"]) == ("Active", "Active")
    required = [name for name, rule in found["outboundRules"].items() if rule["category"] == "Required"]
    assert any("blob" in name for name in required), "what the workspace stands on is reached by endpoints of its own"
    assert put_rule(manager, "later", HOST)[1]["properties"]["status"] == "Active"


def test_rules_are_listed_with_those_of_the_service_and_one_goes_by_an_operation(manager: Manager) -> None:
    isolate(manager, APPROVED)
    put_rule(manager, "host", HOST)
    rules = f"{manager.workspace}/outboundRules"
    listed = {row["name"]: row["properties"]["category"] for row in manager.call("GET", rules)[1]["value"]}
    assert (listed["host"], listed["__SYS_ST_AzureMonitor"]) == ("UserDefined", "Required")
    assert manager.call("GET", f"{rules}/HOST")[1]["id"] == f"{manager.workspace.rpartition('/')[2]}/outboundRules/host"
    assert manager.call("DELETE", f"{rules}/host")[0] == 202
    (operation,) = manager.store.operations.running(f"{rules}/host")
    manager.settle()
    result = f"{ROOT}/providers/Microsoft.MachineLearningServices/operationResults/{operation.id}"
    left = manager.call("GET", result)[1]
    assert "host" not in left["properties"]["managedNetwork"]["outboundRules"]
    assert manager.call("GET", f"{rules}/host")[0] == 404


def test_a_managed_network_has_all_nodes_in_it(manager: Manager) -> None:
    isolate(manager, OPEN)
    elsewhere = cluster()
    elsewhere["properties"]["properties"]["subnet"] = {"id": "/subscriptions/s/x"}
    refused = manager.call("PUT", f"{manager.workspace}/computes/gpu", elsewhere)[1]
    assert refused["code"] == "ManagedNetworkCustomSubnetNotSupported"
    refused = manager.call("PUT", f"{manager.workspace}/computes/gpu", {**cluster(), "location": "westus"})[1]
    assert refused["code"] == "ManagedNetworkCrossRegionComputeNotSupported"


def test_the_first_compute_takes_the_network_along(manager: Manager) -> None:
    isolate(manager, OPEN)
    assert manager.call("PUT", f"{manager.workspace}/computes/gpu", cluster())[0] == 201
    manager.settle()
    assert shown(manager)["status"]["status"] == "Active"


def test_a_cluster_is_in_a_subnet_that_exists(manager: Manager) -> None:
    body = cluster()
    body["properties"]["properties"]["subnet"] = {"id": f"{manager.workspace}/no/such"}
    assert manager.call("PUT", f"{manager.workspace}/computes/gpu", body)[1]["code"] == "SubnetNotFound"
