"""A workspace's datastores: which container each of them is, and how to write there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.provider.blobs.client import ContainerAccess
from amlstack.rpc import ProviderError

if TYPE_CHECKING:
    from amlstack.provider.resource import Services

_ACCOUNTS = "providers/Microsoft.Storage/storageAccounts"
_STORAGE_API = "2024-01-01"
_CONTAINERS = {"AzureBlob": "containerName", "AzureDataLakeGen2": "filesystem"}
"""Types that hold blobs, with the property that names the container."""
_OWN = frozenset({"None", "AccountKey", "Sas"})


def access(services: Services, workspace: str, datastore: str) -> ContainerAccess:
    """The container of a datastore, opened as azure-ai-ml opens it.

    One that keeps a key or a signature hands it out; at one that goes by identities the caller's own right counts.

    Args:
        services: For requests to the workspace.
        workspace: ARM id of the workspace.
        datastore: Name of the datastore.

    Raises:
        ArmError: The workspace cannot be asked.
        ProviderError: There is no such datastore, or it holds no blobs.
    """
    place = f"{workspace}/datastores/{datastore}"
    answer = services.arm.get(place, allow=(404,))
    if answer.status == 404:
        services.runs.require_workspace(workspace)
        raise ProviderError(f"the workspace has no datastore {datastore}")
    properties: dict[str, Any] = answer.body["properties"]
    kind = str(properties.get("datastoreType"))
    if kind not in _CONTAINERS:
        raise ProviderError(
            f"the datastore {datastore} is of the type {kind}; data of this machine go to one of "
            f"{' or '.join(_CONTAINERS)}"
        )
    url = f"{_account(services, workspace, properties)}/{properties[_CONTAINERS[kind]]}"
    credentials = str((properties.get("credentials") or {}).get("credentialsType") or "None")
    if credentials == "None" or credentials not in _OWN:
        return ContainerAccess(url)
    secrets = services.arm.post(f"{place}/listSecrets", {}).body
    return ContainerAccess(url, str(secrets.get("sasToken") or "").lstrip("?"), str(secrets.get("key") or ""))


def _account(services: Services, workspace: str, properties: dict[str, Any]) -> str:
    """The address of a datastore's storage account: as the account has it where its id is known."""
    account = str(properties["accountName"])
    subscription, group = properties.get("subscriptionId"), properties.get("resourceGroup")
    known = f"/subscriptions/{subscription}/resourceGroups/{group}/{_ACCOUNTS}/{account}"
    if not subscription or not group:
        owner = services.arm.get(workspace, allow=(404,)).body
        known = str((owner.get("properties") or {}).get("storageAccount") or "") if isinstance(owner, dict) else ""
    if known.rpartition("/")[2].casefold() == account.casefold():
        # An account in a DNS zone of its own, or in another cloud, has another address than its name says.
        found = services.arm.get(known, _STORAGE_API, allow=(403, 404))
        endpoints = (found.body.get("properties") or {}).get("primaryEndpoints") or {} if found.status == 200 else {}
        if endpoints.get("blob"):
            return str(endpoints["blob"]).rstrip("/")
    protocol, endpoint = properties.get("protocol") or "https", properties.get("endpoint") or "core.windows.net"
    return f"{protocol}://{account}.blob.{endpoint}"
