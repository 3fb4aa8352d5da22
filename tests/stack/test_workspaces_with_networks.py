"""The network of a workspace through a stack's whole life: the managed one, and the team's own, by the real engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base.paths import PROJECT
from tests.support.sandbox.sandbox_client import Arm

if TYPE_CHECKING:
    from tests.support.engine_result import Result
    from tests.support.harness import Stack
    from tests.support.running import MakeStack, Sandbox

pytestmark = pytest.mark.engine


def made(stack: MakeStack, sandbox: Sandbox, name: str, network: dict[str, Any] | None) -> Stack:
    one = stack(PROJECT, sandbox=sandbox)
    one.set("amlstack:location", "westeurope").set("amlstack:resource_group", f"rg-{name}")
    one.set("amlstack:workspace", {"name": f"ws-{name}", **({"network": network} if network else {})})
    one.set("amlstack:protect", "false")
    one.set("amlstack:clusters", [{"name": "gpu", "size": "Standard_ND96asr_v4", "nodes": {"max": 2}}])
    return one


def state_of(one: Stack, kind: str) -> dict[str, Any]:
    (found,) = (each["outputs"] for each in one.resources(kind).values())
    outputs: dict[str, Any] = found
    return outputs


def changed(result: Result) -> dict[str, str]:
    return {step.name: step.op for step in result.ok().planned if step.op not in {"same", "refresh"}}


def test_a_managed_network_is_provisioned_before_the_first_cluster(stack: MakeStack, sandbox: Sandbox) -> None:
    rules = [{"name": "data", "service_tag": "DataFactory"}, {"name": "files", "fqdn": "files.example.com"}]
    network = {"isolation": "only_approved", "firewall": "basic", "rules": rules, "package_hosts": ["pypi.org"]}
    one = made(stack, sandbox, "managed", network)
    arm = Arm(sandbox.endpoint)
    lake = f"{arm.make_group('rg-lake')}/providers/Microsoft.Storage/storageAccounts/lakeofrules"
    body = {"location": "westeurope", "kind": "StorageV2", "sku": {"name": "Standard_LRS"}}
    arm.finish(arm.put(lake, body))
    one.set("amlstack:datastores", [{"name": "lake", "account": lake, "container": "corpora"}])

    up = one.up(preview=True).ok()
    order = [step.name for step in up.done]
    assert order.index("isolation") < order.index("workspace") < order.index("network") < order.index("gpu")
    found = state_of(one, "network:Managed")
    assert (found["status"], set(found["rules"])) == (
        "Active",
        {"data", "files", "packages-pypi-org", "data-lakeofrules-blob"},
    )
    approves = one.resources("RoleAssignment")["workspace-approver-on-lakeofrules"]["inputs"]
    assert approves["scope"] == lake.lstrip("/")
    assert order.index("workspace-approver-on-lakeofrules") < order.index("network")
    one.set("amlstack:workspace.network.rules", rules[:1])
    assert changed(one.up()) == {"network": "update"}
    one.set("amlstack:workspace.description", "another one")
    assert changed(one.up()) == {"workspace": "update"}
    # The workspace, written whole, brings no rule back; nor is what Azure adds to its network a change.
    assert changed(one.preview("--refresh")) == {}

    # The network that the workspace has, where the settings say nothing of it.
    one.set("amlstack:workspace.network", None).set("amlstack:clusters[0].location", "northeurope")
    assert "cluster gpu is in northeurope, the workspace in westeurope" in one.preview().failed().output
    one.set("amlstack:clusters[0].location", None).set("amlstack:workspace.network", {"isolation": "off"})
    assert "isolation cannot go from only_approved to off" in one.preview().failed().output


def test_an_old_workspace_keeps_the_network_that_it_has(stack: MakeStack, sandbox: Sandbox) -> None:
    one = made(stack, sandbox, "default", None)
    one.set("amlstack:workspace.network", {"isolation": "off"})
    one.up().ok()
    assert "managedNetwork" not in one.resources("Workspace")["workspace"]["inputs"]
    # Nothing asks for a network any more, and none is forced on it.
    one.set("amlstack:workspace.network", None)
    one.up().ok()
    assert state_of(one, "network:Isolation")["mode"] == "Disabled"
    assert "managedNetwork" not in one.resources("Workspace")["workspace"]["inputs"]
    one.set("amlstack:workspace.network", {"isolation": "allow_internet_outbound"})
    assert (
        "computes: gpu. Azure turns a managed network on only where there is no compute"
        in one.preview().failed().output
    )


def test_a_network_of_ones_own_holds_nodes_and_private_endpoints(stack: MakeStack, sandbox: Sandbox) -> None:
    vnet = {"address_space": ["10.20.0.0/16"], "compute": "10.20.0.0/22", "endpoints": "10.20.4.0/26"}
    one = made(stack, sandbox, "own", {"isolation": "off", "vnet": vnet})

    one.up(preview=True).ok()
    targets = {"workspace", "blob", "file", "dfs", "vault", "registry"}
    assert set(one.resources("network:PrivateEndpoint")) == {f"endpoint-{target}" for target in targets}
    assert len(one.resources("privatedns:PrivateZone")) == len(one.resources("privatedns:VirtualNetworkLink")) == 7
    subnet = one.resources("machinelearningservices:Compute")["gpu"]["inputs"]["properties"]["properties"]["subnet"]
    assert subnet["id"].endswith("/virtualNetworks/vnet-ws-own/subnets/compute")
    assert one.resources("containerregistry:Registry")["registry"]["inputs"]["sku"]["name"] == "Premium"
    assert one.refresh().ok().changes == {}

    one.set("amlstack:workspace.network.vnet.internet", value=False)
    one.set("amlstack:workspace.network.vnet.private_endpoints", sorted(targets - {"dfs"}))
    assert changed(one.up()) == {
        "nsg-nodes": "update",
        "endpoint-dfs": "delete",
        "endpoint-dfs-zones": "delete",
        "privatelink.dfs.core.windows.net": "delete",
        "privatelink.dfs.core.windows.net-link": "delete",
    }
    one.destroy().ok()
    assert one.resources() == {}
