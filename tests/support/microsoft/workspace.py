"""The workspace that Microsoft's tests find in their own subscription, laid out in a sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.support.sandbox.sandbox_client import Arm, cluster

if TYPE_CHECKING:
    from tests.support.running import Sandbox

NAME: Final = "sdkv2tests"
"""Of the workspace, its group and its storage account."""
CLUSTERS: Final = {
    **dict.fromkeys(("cpu-cluster", "testCompute", "cpucluster", "automl-cpu-cluster"), "Standard_D2s_v3"),
    **dict.fromkeys(("siloCompute1", "siloCompute2", "siloCompute3", "aggCompute"), "Standard_D2s_v3"),
    "gpu-cluster": "Standard_NC6s_v3",
}
STORES: Final = ("silo_datastore1", "silo_datastore2", "silo_datastore3", "agg_datastore")
IDENTITIES: Final = ("uai-mhe", "uai-mhe2")


def lay_out(sandbox: Sandbox) -> dict[str, str]:
    """Makes it; the variables by which the tests' conftest finds it."""
    arm = Arm(sandbox.endpoint)
    workspace = arm.make_workspace(NAME, keys=True)
    for name, size in CLUSTERS.items():
        arm.finish(arm.put(f"{workspace}/computes/{name}", cluster(size, maxNodeCount=6)))
    account = f"{workspace.partition('/providers/')[0]}/providers/Microsoft.Storage/storageAccounts/{NAME}"
    assert arm.put(f"{account}/blobServices/default/containers/testblob", {}).status in {200, 201}
    for name in STORES:
        credentials = {"credentialsType": "None"}
        store = {"datastoreType": "AzureBlob", "accountName": NAME, "containerName": name.replace("_", "-")}
        body = {"properties": {**store, "credentials": credentials}}
        assert arm.put(f"{workspace}/datastores/{name}", body).status in {200, 201}
    for name in IDENTITIES:
        path = (
            f"{workspace.partition('/providers/')[0]}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{name}"
        )
        assert arm.put(path, {"location": "eastus"}).status in {200, 201}
    key = arm.call("POST", f"{workspace}/datastores/workspaceblobstore/listSecrets", {}).body["key"]
    return {
        **dict.fromkeys(("ML_TEST_STORAGE_ACCOUNT_PRIMARY_KEY", "ML_TEST_STORAGE_ACCOUNT_SECONDARY_KEY"), key),
        "ML_SUBSCRIPTION_ID": sandbox.environ["AZURE_SUBSCRIPTION_ID"],
        "ML_RESOURCE_GROUP": NAME,
        "ML_WORKSPACE_NAME": NAME,
        "ML_FEATURE_STORE_NAME": NAME,
        "ML_TEST_STORAGE_ACCOUNT_NAME": NAME,
    }
