"""The transport below azure-core's pipeline: urllib3 alone, with the proxies and authorities that requests would take.

requests, azure-core's own transport, prepares each request anew (session settings, cookies, environment, hooks), which
takes as long as the exchange itself. Here the environment is read once for each host. A host behind a proxy is left to
azure-core's transport.
"""

from __future__ import annotations

import ssl
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import requests
import urllib3
from azure.core.exceptions import ServiceRequestError, ServiceResponseError
from azure.core.pipeline.transport import HttpTransport, RequestsTransport
from requests.utils import DEFAULT_CA_BUNDLE_PATH, select_proxy
from urllib3.exceptions import ConnectTimeoutError, HTTPError, NewConnectionError, SSLError
from urllib3.util.ssl_ import create_urllib3_context

if TYPE_CHECKING:
    from collections.abc import Mapping

    from azure.core.rest import HttpRequest

_TIMEOUT: Final = urllib3.Timeout(connect=300, read=300)
"""azure-core's own."""
_CONNECTIONS: Final = 32
"""Kept open for each host; the engine asks for this many operations at once on eight cores."""
_ENCODINGS: Final = {"Accept-Encoding": "gzip, deflate"}


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """An answer that was read to its end, as azure-core's policies expect one."""

    request: HttpRequest
    status_code: int
    reason: str
    headers: Mapping[str, str]
    content: bytes

    def text(self) -> str:
        """The body; all services of Azure Machine Learning answer in UTF-8."""
        return self.content.decode("utf-8-sig", "replace")


class LeanTransport(HttpTransport[Any, Any]):
    """Sends requests. Safe for use by several threads.

    Args:
        ca: PEM file of the authorities to trust; those of the environment when not given.
    """

    def __init__(self, ca: str | None = None) -> None:
        self._verify: str | bool = ca or True
        self._lock = threading.Lock()
        self._pools: dict[tuple[str, str], urllib3.HTTPConnectionPool | None] = {}
        self._manager: urllib3.PoolManager | None = None
        self._proxied = RequestsTransport(connection_verify=self._verify)

    def open(self) -> None:
        """Connections are made when they are needed."""

    def close(self) -> None:
        """Closes all connections."""
        with self._lock:
            self._pools.clear()
            if self._manager is not None:
                self._manager.clear()
        self._proxied.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def send(self, request: Any, **options: Any) -> Any:
        """The answer to one request, whatever its status; redirections are not followed.

        Raises:
            ServiceRequestError: No connection.
            ServiceResponseError: No answer, or half of one.
        """
        parts = urlsplit(request.url)
        pool = self._pool(parts.scheme, parts.netloc)
        if pool is None:
            answer = self._proxied.send(request, **options)
            whole = answer.read() if hasattr(answer, "read") else answer.body()
            return WholeAnswer(request, answer.status_code, answer.reason or "", answer.headers, whole)
        content = request.content
        try:
            raw = pool.urlopen(
                request.method,
                f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/",
                content.encode() if isinstance(content, str) else content,
                {**_ENCODINGS, **request.headers},
                retries=False,
                redirect=False,
                assert_same_host=False,
                timeout=_TIMEOUT,
            )
        except (NewConnectionError, ConnectTimeoutError, SSLError) as error:
            raise ServiceRequestError(error, error=error) from error
        except HTTPError as error:
            raise ServiceResponseError(error, error=error) from error
        return WholeAnswer(request, raw.status, raw.reason or "", raw.headers, raw.data)

    def _pool(self, scheme: str, netloc: str) -> urllib3.HTTPConnectionPool | None:
        """The connections to a host; None for a host behind a proxy."""
        with self._lock:
            if (scheme, netloc) not in self._pools:
                url = f"{scheme}://{netloc}/"
                with requests.Session() as session:
                    found = session.merge_environment_settings(url, {}, None, self._verify, None)
                proxied = select_proxy(url, found["proxies"])
                self._pools[scheme, netloc] = None if proxied else self._connections(found["verify"], url)
            return self._pools[scheme, netloc]

    def _connections(self, verify: Any, url: str) -> urllib3.HTTPConnectionPool:
        if self._manager is None:
            authorities = verify if isinstance(verify, str) else DEFAULT_CA_BUNDLE_PATH
            # One context for all connections: reading the authorities takes longer than a handshake.
            context = create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED)
            try:
                context.load_verify_locations(**{"capath" if Path(authorities).is_dir() else "cafile": authorities})
            except OSError as error:
                message = f"the authorities to trust cannot be read from {authorities}: {error}"
                raise ServiceRequestError(message, error=error) from error
            self._manager = urllib3.PoolManager(maxsize=_CONNECTIONS, ssl_context=context)
        return self._manager.connection_from_url(url)
