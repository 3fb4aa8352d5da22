"""The stand-in's process against a running sandbox: what it makes, reads, refuses and heals."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from amlstack.rpc import UNKNOWN, decode
from tests.support.azure_native.small_arm import Answer, SmallArm
from tests.support.azure_native.stand_in_wire import StandIn, refusal, urn

if TYPE_CHECKING:
    from tests.support.azure_native.make_stand_in import MakeStandIn
    from tests.support.running import Sandbox

pytestmark = pytest.mark.tools

GROUP = "resources:ResourceGroup"
COMPUTE = "machinelearningservices:Compute"


def group(name: str) -> dict[str, Any]:
    return {"resourceGroupName": name, "location": "West Europe", "tags": {"amlstack.owner": "t"}}


def refused(call: Any, *words: Any) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as error:
        call(*words)
    return refusal(error.value)


@pytest.fixture
def plugin(stand_in: MakeStandIn, sandbox: Sandbox) -> StandIn:
    return stand_in(sandbox.environ)


def test_it_starts_without_what_is_slow_to_load() -> None:
    """The engine waits for the start at every preview."""
    slow = ("pulumi_azure_native", "azure", "pydantic", "starlette")
    text = f"import sys, amlstack.sandbox.azure_native.server; print([name for name in {slow} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_group_is_made_read_imported_and_deleted(plugin: StandIn) -> None:
    name = urn(GROUP, "a")
    made, state = plugin.create(name, group("rg-made"))
    assert made.endswith("/resourceGroups/rg-made")
    assert state["location"] == "westeurope"
    assert state["tags"] == {"amlstack.owner": "t"}
    assert state["name"] == "rg-made"
    assert state["azureApiVersion"] == "2024-03-01"

    found, inputs, again = plugin.read(name, made, plugin.inputs(name, group("rg-made")), state)
    assert (found, again) == (made, state)
    assert inputs["location"] == "West Europe"  # the program's own letters stay

    found, inputs, _ = plugin.read(name, made)
    assert inputs == {
        "resourceGroupName": "rg-made",
        "location": "westeurope",
        "tags": {"amlstack.owner": "t"},
        "azureApiVersion": "2024-03-01",
    }
    plugin.delete(name, made)
    assert plugin.read(name, made) == ("", {}, {})
    plugin.delete(name, made)


def test_what_exists_is_not_created_again(plugin: StandIn) -> None:
    plugin.create(urn(GROUP, "first"), group("rg-taken"))
    code, words = refused(plugin.create, urn(GROUP, "second"), group("rg-taken"))
    assert code is grpc.StatusCode.ALREADY_EXISTS
    assert words.startswith("cannot create already existing resource '/subscriptions/")


def test_a_create_that_was_cut_off_goes_on_and_only_until_the_engine_knows_of_it(
    stand_in: MakeStandIn, sandbox: Sandbox
) -> None:
    name, wanted = urn(GROUP, "cut"), group("rg-cut")
    killed = stand_in(sandbox.environ)
    made, _ = killed.create(name, wanted)  # and the engine never wrote it down
    killed.kill()

    after = stand_in(sandbox.environ)
    assert after.create(name, wanted)[0] == made
    assert refused(after.create, urn(GROUP, "another"), wanted)[0] is grpc.StatusCode.ALREADY_EXISTS
    # The same stack on another backend is another stack.
    elsewhere = stand_in({**sandbox.environ, "PULUMI_BACKEND_URL": "file:///elsewhere"})
    assert refused(elsewhere.create, name, wanted)[0] is grpc.StatusCode.ALREADY_EXISTS

    inputs = after.inputs(name, wanted)
    after.diff(name, made, inputs, inputs)  # the engine has it in its state
    assert refused(after.create, name, wanted)[0] is grpc.StatusCode.ALREADY_EXISTS


def test_a_refusal_of_the_service_is_passed_on_as_azure_native_words_it(plugin: StandIn) -> None:
    code, words = refused(
        plugin.create,
        urn(COMPUTE, "c"),
        {"resourceGroupName": "rg-lost", "workspaceName": "w", "computeName": "c", "location": "westeurope"},
    )
    assert code is grpc.StatusCode.FAILED_PRECONDITION
    assert words == 'Status=404 Code="ResourceGroupNotFound" Message="Resource group \'rg-lost\' could not be found."'


def test_an_unknown_type_function_and_schema_are_refused_by_name(plugin: StandIn) -> None:
    from pulumi.runtime.proto import provider_pb2

    code, words = refused(plugin.create, urn("network:RouteTable", "v"), {})
    assert code is grpc.StatusCode.UNIMPLEMENTED
    assert words.startswith("the sandbox does not stand in for azure-native:network:RouteTable.")
    token = "azure-native:storage:listStorageAccountKeys"
    _, words = refused(plugin.stub.Invoke, provider_pb2.InvokeRequest(tok=token))
    assert words == f"the sandbox does not stand in for the function {token}"
    code, _ = refused(plugin.stub.GetSchema, provider_pb2.GetSchemaRequest())
    assert code is grpc.StatusCode.UNIMPLEMENTED


def test_names_and_places_are_filled_in_at_check(stand_in: MakeStandIn, sandbox: Sandbox) -> None:
    plugin = stand_in(sandbox.environ)
    plugin.create(urn(GROUP, "place"), group("rg-place"))
    name = urn(COMPUTE, "cluster", parent="amlstack:infra:Clusters")
    inputs = plugin.inputs(name, {"resourceGroupName": "rg-place", "workspaceName": "w", "sku": None})
    assert inputs == {
        "resourceGroupName": "rg-place",
        "workspaceName": "w",
        "computeName": "cluster",
        "location": "westeurope",
        "azureApiVersion": "2025-12-01",
    }
    later = decode(plugin.check(name, {"resourceGroupName": UNKNOWN, "workspaceName": UNKNOWN}).inputs)
    assert later["location"] is UNKNOWN
    configured = stand_in(sandbox.environ, location="norwayeast")
    assert configured.inputs(urn(GROUP, "g"), {})["location"] == "norwayeast"
    assert configured.inputs(urn(GROUP, "g"), {})["__createBeforeDelete"] is True
    failures = plugin.check(urn(GROUP, "g"), {}).failures
    assert [failure.property for failure in failures] == ["location"]


def test_a_preview_asks_the_service_for_nothing_and_knows_what_was_given(plugin: StandIn) -> None:
    known = plugin.preview(urn(GROUP, "p"), group(UNKNOWN))
    assert known["location"] == "West Europe"
    assert known["name"] is UNKNOWN


def test_a_resource_that_was_accepted_and_then_failed_is_kept_with_its_id(
    stand_in: MakeStandIn, small_arm: SmallArm, small_environ: dict[str, str]
) -> None:
    from pulumi.runtime.proto import provider_pb2, status_pb2

    path = "/subscriptions/sub/resourceGroups/g"
    made = {"id": path, "name": "g", "location": "x", "properties": {"provisioningState": "Failed"}}
    small_arm.answers("GET", path, Answer(404, {"error": {"code": "NotFound", "message": "no"}}), Answer(200, made))
    small_arm.answers(
        "PUT", path, Answer(201, made, {"Azure-AsyncOperation": f"{small_arm.url}/operations/1", "retry-after-ms": "1"})
    )
    small_arm.answers(
        "GET", "/operations/1", Answer(200, {"status": "Failed", "error": {"code": "Quota", "message": "none"}})
    )
    plugin = stand_in(small_environ)
    with pytest.raises(grpc.RpcError) as error:
        plugin.create(urn(GROUP, "g"), {"resourceGroupName": "g", "location": "x"})
    trailing = dict(error.value.trailing_metadata())
    partial = provider_pb2.ErrorResourceInitFailed()
    assert status_pb2.Status.FromString(trailing["grpc-status-details-bin"]).details[0].Unpack(partial)
    assert partial.id == path
    assert list(partial.reasons) == ['Status=200 Code="Quota" Message="none"']
    assert decode(partial.properties)["properties"] == {"provisioningState": "Failed"}


def test_an_edit_that_the_service_refuses_is_planned_as_an_update_and_fails_as_one(plugin: StandIn) -> None:
    where = {"resourceGroupName": "rg-edit"}
    plugin.create(urn(GROUP, "edit"), group("rg-edit"))
    account = {**where, "accountName": "editaccount", "kind": "StorageV2", "sku": {"name": "Standard_LRS"}}
    storage, _ = plugin.create(urn("storage:StorageAccount", "a"), account)
    sku = {"family": "A", "name": "standard"}
    tenant = "0a3c1f6e-52b0-4f59-9d0e-7d1c5a4b2e10"
    vault = {**where, "vaultName": "edit-vault", "properties": {"tenantId": tenant, "sku": sku}}
    keys, state = plugin.create(urn("keyvault:Vault", "v"), vault)
    assert state["properties"]["accessPolicies"] == []
    workspace = {**where, "workspaceName": "ws-edit", "storageAccount": storage, "keyVault": keys}
    plugin.create(urn("machinelearningservices:Workspace", "w"), workspace)

    name = urn("machinelearningservices/v20250901:EnvironmentVersion", "e")
    inputs = {**where, "workspaceName": "ws-edit", "name": "torch", "version": "1", "properties": {"image": "one:1"}}
    made, state = plugin.create(name, inputs)
    assert made.endswith("/workspaces/ws-edit/environments/torch/versions/1")
    assert state["azureApiVersion"] == "2025-09-01"
    old, new = plugin.inputs(name, inputs), plugin.inputs(name, {**inputs, "properties": {"image": "two:1"}})
    planned = plugin.diff(name, made, old, new)
    assert (list(planned.diffs), list(planned.replaces)) == (["properties"], [])
    _, words = refused(plugin.update, name, made, state, new)
    assert "already registered and cannot be changed" in words
    assert words.startswith('Status=409 Code="UserError"')
