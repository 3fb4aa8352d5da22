"""The data plane of a workspace, and files behind signed addresses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from amlstack.base.credentials import scrub
from amlstack.provider.arm import exchange
from amlstack.provider.arm.exchange import ArmError, Attempts, Response, no_answer

if TYPE_CHECKING:
    from azure.core.pipeline.transport import RequestsTransport

    from amlstack.provider.arm.client import ArmClient

_DATA: Final = "dataversion", "data", "1.5.0"
_MODELS: Final = "models", "modelregistry", "1.0.0"


class DataPlane:
    """Asks the data plane of workspaces. Safe for use by several threads.

    Args:
        arm: A client of their resource manager; the data plane takes the same tokens.
    """

    def __init__(self, arm: ArmClient) -> None:
        self._arm = arm
        self._lock = threading.Lock()
        self._hosts: dict[str, str] = {}

    def base(self, workspace: str) -> str:
        """The host as ``https://host``: the workspace names a discovery document, that names the host.

        Raises:
            ArmError: One of the two cannot be read, or names no https host.
        """
        with self._lock:
            known = self._hosts.get(workspace)
        if known:
            return known
        discovery = (self._arm.get(workspace).body.get("properties") or {}).get("discoveryUrl")
        if not discovery:
            raise ArmError(0, "NoDiscoveryUrl", f"the workspace {workspace} names no data plane (discoveryUrl)")
        base = str(self._arm.request("GET", str(discovery), None).body.get("api") or "").rstrip("/")
        if urlsplit(base).scheme != "https":
            raise ArmError(0, "NoDiscoveryUrl", f"the workspace {workspace} names no https data plane")
        with self._lock:
            self._hosts[workspace] = base
        return base

    def details(self, workspace: str, run: str) -> dict[str, Any] | None:
        """Run history's words on a run: ``status``, ``startTimeUtc``, ``error``, ``logFiles`` (name → signed URL).

        Returns:
            None where run history knows no such run: one that was accepted a moment ago may not be there yet.

        Raises:
            ArmError: Anything else than 404.
        """
        answer = self._arm.request("GET", f"{self._runs(workspace)}/{run}/details", None, allow=(404,))
        return None if answer.status == 404 or not isinstance(answer.body, dict) else answer.body

    def children(self, workspace: str, run: str) -> list[dict[str, Any]]:
        """The trials of a sweep or the steps of a pipeline, in the service's order; none of a job.

        Raises:
            ArmError: They cannot be read to their end.
        """
        below = self._arm.rows(f"{self._runs(workspace)}/{run}/children", None, allow=(404,))
        return [one for one in below if one.get("runId")]

    def outputs(self, workspace: str, run: str) -> dict[str, tuple[str, str]]:
        """The named outputs of a run: name → (type, ``azureml://…`` address), as azure-ai-ml looks them up.

        Raises:
            ArmError: They cannot be asked for.
        """
        host = self.base(workspace)
        answer = self._arm.post(f"{host}/history/v1.0{workspace}/rundata", _wanted(run), None).body
        metadata = answer.get("runMetadata") if isinstance(answer, dict) else None
        listed = (metadata or {}).get("outputs")
        ids = {
            str(name): (str(entry.get("type") or ""), str(entry["assetId"]))
            for name, entry in (listed if isinstance(listed, dict) else {}).items()
            if isinstance(entry, dict) and entry.get("assetId")
        }
        places = self._places(workspace, [asset for _, asset in ids.values()])
        return {name: (kind, places[asset]) for name, (kind, asset) in ids.items() if asset in places}

    def _places(self, workspace: str, assets: list[str]) -> dict[str, str]:
        host, found = self.base(workspace), dict[str, str]()
        for is_model, (noun, plane, version) in ((False, _DATA), (True, _MODELS)):
            some = [asset for asset in assets if ("/models/" in asset) is is_model]
            if not some:
                continue
            path = f"{host}/{plane}/v1.0{workspace}/{noun}/batchGetResolvedUris"
            values: Mapping[str, Any] = self._arm.post(path, {"values": some}, version).body.get("values") or {}
            found |= {asset: str(value.get("uri") or value.get("path") or "") for asset, value in values.items()}
        return {asset: uri for asset, uri in found.items() if uri}

    def tracked(self, workspace: str, run: str) -> dict[str, dict[str, Any]]:
        """The ``params`` of a run in MLflow, and the last value of each of its ``metrics``, by name.

        Raises:
            ArmError: It cannot be asked for. A run that MLflow does not know has logged nothing.
        """
        path = f"{self._mlflow(workspace)}/runs/get"
        answer = self._arm.request("GET", path, None, query={"run_id": run}, allow=(404,))
        data = ((answer.body or {}).get("run") or {}).get("data") or {} if answer.status == 200 else {}
        return {kind: {str(one["key"]): one["value"] for one in data.get(kind) or ()} for kind in ("params", "metrics")}

    def history(self, workspace: str, run: str, metrics: list[str]) -> list[tuple[int, int]]:
        """Moment (milliseconds) and step of each value of the first of these metrics that was logged by steps.

        Raises:
            ArmError: It cannot be asked for.
        """
        path = f"{self._mlflow(workspace)}/metrics/get-history"
        for metric in metrics:
            query = {"run_id": run, "metric_key": metric}
            body = self._arm.request("GET", path, None, query=query, allow=(404,)).body
            found = [(int(one["timestamp"]), int(one.get("step") or 0)) for one in (body or {}).get("metrics") or ()]
            if len({step for _, step in found}) > 1:
                return found
        return []

    def _mlflow(self, workspace: str) -> str:
        return f"{self.base(workspace)}/mlflow/v1.0{workspace}/api/2.0/mlflow"

    def _runs(self, workspace: str) -> str:
        return f"{self.base(workspace)}/history/v1.0{workspace}/runs"


def _wanted(run: str) -> dict[str, Any]:
    return {"runId": run, "selectRunMetadata": True, "selectRunDefinition": True, "selectJobSpecification": True}


CHUNK: Final = 4 * 1024 * 1024
"""Bytes that are asked for at once."""
_BEYOND: Final = 416
"""The status for a range that begins at the end of the file, or after it."""


class SignedFiles:
    """Reads them, over connections that are kept. Safe for use by several threads.

    Args:
        ca: PEM file of the authorities to trust; those of the environment when not given.
        cancelled: Ends every wait when it is set.
        announce: Takes the messages of requests that wait.
    """

    def __init__(
        self,
        ca: str | None = None,
        *,
        cancelled: threading.Event | None = None,
        announce: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._ca, self._cancelled, self._announce = ca, cancelled, announce
        self._lock = threading.Lock()
        self._transport: RequestsTransport | None = None

    def read(self, url: str, offset: int = 0) -> Iterator[bytes]:
        """The bytes of a file from a place on, part by part, to its end as it is now.

        Raises:
            ArmError: It cannot be read; a signature that has ended is a 403, a file that is gone a 404.
        """
        if urlsplit(url).scheme != "https":
            raise ArmError(0, "EndpointInvalid", f"{scrub(url).partition('?')[0]} is no https address")
        while True:
            status, part = self._part(url, offset)
            if status == _BEYOND:
                return
            if status != 206:  # all of it, whatever was asked for
                yield part[offset:]
                return
            if part:
                yield part
            offset += len(part)
            if len(part) < CHUNK:
                return

    def _part(self, url: str, offset: int) -> tuple[int, bytes]:
        content: list[bytes] = []

        def once() -> tuple[Response, str]:
            exchange.load_azure_core()
            from azure.core.exceptions import AzureError  # noqa: PLC0415
            from azure.core.rest import HttpRequest  # noqa: PLC0415

            headers = {"Range": f"bytes={offset}-{offset + CHUNK - 1}"}
            try:
                raw = self._connections().send(HttpRequest("GET", url, headers=headers))
                content[:] = [raw.read()]
            except (AzureError, OSError) as error:
                raise no_answer(url, error) from None
            return Response(raw.status_code, {}, {name.lower(): value for name, value in raw.headers.items()}, url), ""

        words = f"GET {urlsplit(url).path.rpartition('/')[2]}"
        response, _ = Attempts(words, False, self._cancelled, self._announce).run(once)
        if response.status >= 400 and response.status != _BEYOND:
            raise ArmError(response.status, f"Http{response.status}", f"{words} was answered with {response.status}")
        return response.status, content[0]

    def _connections(self) -> RequestsTransport:
        with self._lock:
            if self._transport is None:
                self._transport = exchange.make_transport(self._ca)
            return self._transport
