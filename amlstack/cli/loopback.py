"""A client of the sandbox's resource manager for a process that lives as long as one job.

azure-core, azure-identity and what they load take as long to import as the rest of a rehearsal's own work. The sandbox
asks for little of what they do: a token for a federated assertion, JSON over one TLS connection on the loopback.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from amlstack.provider.arm import ACTING_HEADER, ArmClient, ArmError, Response, no_answer, parsed

if TYPE_CHECKING:
    from amlstack.sandbox.server.daemon import Endpoint

_PAUSES = (0.0, 0.2, 0.8, 3.2, None)
"""Seconds after each broken attempt: a server that is started again comes back under the same address."""

PATIENCE = 300.0
"""Seconds for an answer: the machine may be busy with the very job."""

EARLY = 60.0
"""Seconds before its end at which a token is no longer used."""

_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_BROKEN = (OSError, http.client.HTTPException)


@dataclass(slots=True)
class _Token:
    text: str
    until: float


class LoopbackArm(ArmClient):
    """Asks the resource manager of one sandbox, over one connection that is kept.

    Args:
        endpoint: The sandbox.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint.url)
        self._sandbox = endpoint
        self._context = ssl.create_default_context(cafile=str(endpoint.ca))
        self._connection: http.client.HTTPSConnection | None = None
        self._tokens: dict[str, _Token] = {}

    def exchange(self, method: str, url: str, body: Any, *, acting: bool = False) -> tuple[Response, str]:
        """See `ArmClient.exchange`; repeated when the connection breaks.

        That is safe: all that a rehearsal posts (for a token, for a place to upload to, a cancel) may be said twice.

        Raises:
            ArmError: No connection, no token, or a URL that is not this sandbox's.
        """
        if not url.startswith(f"{self.endpoint}/"):
            raise ArmError(0, "EndpointInvalid", f"{urlsplit(url).netloc} is not the sandbox at {self.endpoint}")
        with self._lock:
            headers = {"Accept": "application/json", "Authorization": f"Bearer {self._token(self.endpoint)}"}
            if acting:
                headers[ACTING_HEADER] = self._token(self.ml_audience)
            content = None
            if body is not None:
                content = json.dumps(body).encode()
                headers["Content-Type"] = "application/json"
            return self._send(method, url, content, headers)

    def close(self) -> None:
        """Lets the connection go."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _token(self, audience: str) -> str:
        known = self._tokens.get(audience)
        if known is None or known.until < time.time():
            form = {
                "grant_type": "client_credentials",
                "client_id": self._sandbox.client,
                "client_assertion_type": _ASSERTION,
                "client_assertion": self._sandbox.token.read_text(),
                "scope": f"{audience}/.default",
            }
            url = f"{self.endpoint}/{self._sandbox.tenant}/oauth2/v2.0/token"
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            answer, text = self._send("POST", url, urlencode(form).encode(), headers)
            if answer.status != 200:
                told = answer.body.get("error_description") if isinstance(answer.body, dict) else None
                raise ArmError(0, "NoCredential", f"no token from the sandbox ({answer.status}): {told or text[:300]}")
            until = time.time() + float(answer.body["expires_in"]) - EARLY
            known = self._tokens[audience] = _Token(answer.body["access_token"], until)
        return known.text

    def _send(self, method: str, url: str, content: bytes | None, headers: dict[str, str]) -> tuple[Response, str]:
        for pause in _PAUSES:
            try:
                connection = self._connected()
                connection.request(method, url.removeprefix(self.endpoint), content, headers)
                raw = connection.getresponse()
                text = raw.read().decode()
            except _BROKEN as error:
                self.close()
                if pause is None:
                    raise no_answer(url, error) from None
                time.sleep(pause)
                continue
            found = {name.lower(): value for name, value in raw.headers.items()}
            return Response(raw.status, parsed(text), found, url), text
        raise AssertionError  # pragma: no cover - the last attempt returns or raises

    def _connected(self) -> http.client.HTTPSConnection:
        if self._connection is None:
            parts = urlsplit(self.endpoint)
            # Straight to the loopback: http.client knows no proxies of the environment.
            connection = http.client.HTTPSConnection(parts.netloc, timeout=PATIENCE, context=self._context)
            connection.connect()
            self._connection = connection
        return self._connection
