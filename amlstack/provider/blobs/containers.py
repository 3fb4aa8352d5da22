"""Containers in which blobs are written and read, and those behind datastores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from amlstack.provider.arm import THROTTLED, InterruptedWaitError, Response, azure_core, pause
from amlstack.provider.arm.answers import THROTTLED_PAUSE, THROTTLED_SECONDS
from amlstack.rpc import ProviderError

if TYPE_CHECKING:
    from amlstack.provider.resource import Call, Services

AT_ONCE: Final = 8 * 1024 * 1024
"""Bytes of a file that is sent with one request, out of memory."""
_BLOCK: Final = 4 * 1024 * 1024
_RETRIES: Final = 5
_READS: Final = frozenset({"GET", "HEAD"})
BACKOFF: Final = (1, 2)
"""Seconds before a block is sent again: the first number, and the base of the power that is added each time."""
JITTER: Final = 1
"""Seconds by which that varies, so that parallel blocks do not come back together."""


STORAGE: Final = "https://storage.azure.com"
"""Whom a token for blobs is for, in every cloud."""
WRITER: Final = "Storage Blob Data Contributor"


@dataclass(frozen=True, slots=True)
class ContainerAccess:
    """A container, and what opens it: a signature, an account's key, or else the caller's own right.

    Attributes:
        url: Without a signature.
        signature: The query that opens it; empty for none.
        key: Of the account; empty for none.
    """

    url: str
    signature: str = field(default="", repr=False)
    key: str = field(default="", repr=False)

    @property
    def is_signed(self) -> bool:
        """True where its address opens it."""
        return bool(self.signature)


def remedy(error: Exception) -> str:
    """The remedy where the caller itself has no right to write blobs; empty for other errors."""
    if getattr(error, "status_code", None) not in (401, 403):
        return ""
    return f". Whoever deploys needs the role `{WRITER}` on the storage account"


def container(services: Services, call: Call, access: ContainerAccess) -> Any:
    """A client of a container, with the storage client's own retries.

    Args:
        services: The engine's log and its wish to end.
        call: Whose progress it is.
        access: The container.
    """
    azure_core.load()
    with azure_core.LOADING:  # 0.15 s, needed for an upload only
        from azure.core.pipeline.transport import RequestsTransport  # noqa: PLC0415
        from azure.storage.blob import ContainerClient, ExponentialRetry  # noqa: PLC0415

    cancelled = services.cancelled

    class Transport(RequestsTransport):  # type: ignore[misc]  # it is loaded late, and has no type then
        """Sends nothing more once the engine wants to end; reads again what was throttled, as the client does not."""

        def send(self, request: Any, **options: Any) -> Any:
            waited = 0.0
            while True:
                if cancelled.is_set():
                    raise InterruptedWaitError
                answer = super().send(request, **options)
                if answer.status_code != THROTTLED or request.method not in _READS:
                    return answer
                headers = {name.lower(): value for name, value in answer.headers.items()}
                seconds = Response(THROTTLED, {}, headers).retry_after or THROTTLED_PAUSE
                waited += seconds
                if waited > THROTTLED_SECONDS:
                    return answer
                answer.internal_response.close()
                services.host.status(f"the storage asks to wait {seconds:.0f} s (429, too many requests)", call.urn)
                pause(seconds, cancelled)

    class Retries(ExponentialRetry):
        """The storage client's own retries, announced, with sleeps that can be interrupted."""

        def sleep(self, settings: Any, transport: Any) -> None:  # noqa: ARG002
            if seconds := self.get_backoff_time(settings):
                services.host.status(
                    f"the storage does not answer as it should; asking it again in {seconds:.0f} s", call.urn
                )
                pause(seconds, cancelled)

    initial, base = BACKOFF
    retries = Retries(initial_backoff=initial, increment_base=base, retry_total=_RETRIES, random_jitter_range=JITTER)
    credential = None if access.is_signed else access.key or services.arm.credential
    return ContainerClient.from_container_url(
        f"{access.url}?{access.signature}" if access.is_signed else access.url,
        credential=credential,
        transport=Transport(),
        retry_policy=retries,
        max_single_put_size=AT_ONCE,
        max_block_size=_BLOCK,
    )


_ACCOUNTS = "providers/Microsoft.Storage/storageAccounts"
_STORAGE_API = "2024-01-01"
_CONTAINERS = {"AzureBlob": "containerName", "AzureDataLakeGen2": "filesystem"}
"""Types that hold blobs, with the property that names the container."""
_OWN = frozenset({"None", "AccountKey", "Sas"})


def datastore_access(services: Services, workspace: str, datastore: str) -> ContainerAccess:
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
