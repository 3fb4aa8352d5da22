"""ARM REST to a sandbox on this machine, and to nothing else: connections, a bearer token, long-running operations."""

from __future__ import annotations

import http.client
import ipaddress
import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from amlstack.rpc import ErrorCode, ProviderError


@dataclass(frozen=True, slots=True)
class SandboxTarget:
    """A sandbox and the identity to speak with.

    Attributes:
        endpoint: ``https://127.0.0.1:PORT`` of the resource manager.
        authority: The same of its Entra ID.
        tenant, client: Ids.
        token_file: File with the federated token.
        bundle: PEM file of the authorities to trust.
        subscription: Its id.
    """

    endpoint: str
    authority: str
    tenant: str
    client: str
    token_file: Path
    bundle: Path
    subscription: str

    @classmethod
    def of(cls, environ: Mapping[str, str], config: Mapping[str, str]) -> SandboxTarget:
        """Reads the variables that ``Endpoint.environ()`` gives; the stack's settings come first where they exist.

        Raises:
            ProviderError: A variable is missing, or an address is not one of this machine.
        """
        endpoint = environ.get("AMLSTACK_ARM_ENDPOINT", "")
        refuse_unless_loopback("AMLSTACK_ARM_ENDPOINT", endpoint)
        authority = _needed(environ, "AZURE_AUTHORITY_HOST")
        refuse_unless_loopback("AZURE_AUTHORITY_HOST", authority)
        subscription = config.get("subscriptionId") or environ.get("ARM_SUBSCRIPTION_ID", "")
        return cls(
            endpoint=endpoint.rstrip("/"),
            authority=authority.rstrip("/"),
            tenant=config.get("tenantId") or _needed(environ, "AZURE_TENANT_ID"),
            client=config.get("clientId") or _needed(environ, "AZURE_CLIENT_ID"),
            token_file=Path(_needed(environ, "AZURE_FEDERATED_TOKEN_FILE")),
            bundle=Path(_needed(environ, "SSL_CERT_FILE")),
            subscription=subscription or _needed(environ, "AZURE_SUBSCRIPTION_ID"),
        )


def refuse_unless_loopback(what: str, address: str) -> None:
    """Refuses every address that is not https on this machine.

    Raises:
        ProviderError: Says which address, and what to do on a real stack.
    """
    if not _is_loopback(address):
        seen = f"is '{address}'" if address else "is not set"
        raise ProviderError(
            f"{what} {seen}, and the sandbox's stand-in for azure-native speaks only https to a sandbox on this "
            "machine, never to Azure. Start the sandbox (make up, amlstack sandbox up), or take "
            "amlstack/sandbox/bin off PATH so that the engine finds the real azure-native plugin."
        )


def _is_loopback(address: str) -> bool:
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
    return parts.scheme == "https" and local and parts.username is None


def _needed(environ: Mapping[str, str], name: str) -> str:
    if value := environ.get(name):
        return value
    raise ProviderError(f"{name} is not set; the sandbox gives it together with AMLSTACK_ARM_ENDPOINT")


RETRIED = frozenset({408, 429, 500, 502, 503, 504})
ATTEMPTS = 5
POLL_SECONDS = 1.0
"""Between two polls when the service names no delay."""
SOCKET_SECONDS = 60.0
_RENEW_SECONDS = 300.0
_UNFINISHED = frozenset({"accepted", "creating", "updating", "deleting", "running", "inprogress", "provisioning"})


class ServiceError(ProviderError):
    """The service refused; the text is as azure-native passes it on."""

    def __init__(self, status: int, code: str, message: str) -> None:
        shown = f'Code="{code}" ' if code else ""
        super().__init__(f'Status={status} {shown}Message="{message}"')
        self.http_status = status
        self.service_code = code


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its parsed body."""

    status: int
    headers: Mapping[str, str]
    body: Any


@dataclass(slots=True)
class Patience:
    """The time limit of an operation, whether the engine still wants it, and where its progress goes."""

    cancelled: threading.Event
    seconds: float
    announce: Callable[[str], None]
    started: float = field(default_factory=time.monotonic)

    def rest(self, seconds: float) -> None:
        """Waits between two polls.

        Raises:
            ProviderError: The engine gave up, or the time is over.
        """
        left = self.started + self.seconds - time.monotonic()
        if self.cancelled.wait(min(seconds, max(left, 0))):
            raise ProviderError("the operation was cancelled; the resource may still be changing", ErrorCode.CANCELLED)
        if left <= 0:
            raise ProviderError("operation timed out", ErrorCode.DEADLINE_EXCEEDED)


class Arm:
    """A client of one sandbox, for many threads."""

    def __init__(self, target: SandboxTarget) -> None:
        self._target = target
        self._lock = threading.Lock()
        self._signing_in = threading.Lock()
        self._idle: dict[str, list[http.client.HTTPSConnection]] = {}
        self._token = ("", 0.0)
        try:
            # The sandbox's own authority comes first; to read the machine's hundred others takes 0.05 s of CPU.
            own = target.bundle.read_text("ascii", "ignore").partition("-----END CERTIFICATE-----")
            self._tls = ssl.create_default_context(cadata="".join(own[:2]))
        except OSError as error:
            raise ProviderError(f"SSL_CERT_FILE {target.bundle} cannot be read: {error}") from None

    def close(self) -> None:
        """Lets the idle connections go."""
        with self._lock:
            for connection in (each for idle in self._idle.values() for each in idle):
                connection.close()
            self._idle.clear()

    @property
    def subscription(self) -> str:
        """The subscription that new ids lie in."""
        return self._target.subscription

    def call(
        self,
        method: str,
        path: str,
        version: str,
        patience: Patience,
        *,
        body: Any = None,
        query: Mapping[str, str] | None = None,
    ) -> Answer:
        """One call, repeated while the service asks for it.

        Raises:
            ServiceError: A status from 400 on.
            ProviderError: The sandbox does not answer.
        """
        url = f"{path}?{urlencode({'api-version': version, **(query or {})})}"
        return self._repeated(method, url, patience, body)

    def put(
        self, path: str, version: str, body: Any, patience: Patience, query: Mapping[str, str] | None = None
    ) -> str:
        """Creates or updates a resource and waits until it is there; returns its id in the service's letters."""
        answer = self.call("PUT", path, version, patience, body=body, query=query)
        named = answer.body.get("id", path) if isinstance(answer.body, dict) else path
        try:
            self._settle(answer, path, version, patience)
        except ProviderError as error:
            raise AcceptedError(named, error) from error
        return str(named)

    def delete(self, path: str, version: str, query: Mapping[str, str], patience: Patience) -> None:
        """Deletes a resource and waits until it is gone; one that is not there counts as deleted."""
        try:
            answer = self.call("DELETE", path, version, patience, query=query)
            if answer.status == 202:
                self._poll(answer, patience)
        except ServiceError as error:
            if error.http_status != 404:
                raise

    def read(self, path: str, version: str, patience: Patience) -> dict[str, Any] | None:
        """A resource as it stands, None when there is none."""
        try:
            answer = self.call("GET", path, version, patience)
        except ServiceError as error:
            if error.http_status == 404:
                return None
            raise
        return answer.body if isinstance(answer.body, dict) and answer.body else None

    def _settle(self, answer: Answer, path: str, version: str, patience: Patience) -> None:
        if answer.headers.get("azure-asyncoperation") or answer.status == 202:
            self._poll(answer, patience)
            return
        # The service may accept a second PUT while the first still works: then only the resource itself says so.
        body = answer.body
        while (state := _state(body)).lower() in _UNFINISHED:
            patience.announce(f"{state}…")
            patience.rest(_pause(answer.headers))
            body = self.read(path, version, patience)
        if state.lower() in {"failed", "canceled"}:
            raise ProviderError(f"the resource ended as {state}", ErrorCode.UNKNOWN)

    def _poll(self, answer: Answer, patience: Patience) -> None:
        status = answer.headers.get("azure-asyncoperation")
        url = self._own(status or answer.headers.get("location", ""))
        while url:
            patience.rest(_pause(answer.headers))
            answer = self._repeated("GET", url, patience)
            state = answer.body.get("status", "") if status and isinstance(answer.body, dict) else ""
            if status and state.lower() in {"failed", "canceled"}:
                error = (answer.body.get("error") or {}) if isinstance(answer.body, dict) else {}
                raise ServiceError(answer.status, error.get("code", ""), error.get("message", f"ended as {state}"))
            if state.lower() == "succeeded" or (not status and answer.status != 202):
                return
            patience.announce(f"{state or 'working'}…")

    def _own(self, url: str) -> str:
        """A polling address, checked to be this sandbox's own: the token goes nowhere else."""
        if url and not url.startswith(f"{self._target.endpoint}/"):
            raise ProviderError(f"the operation is to be followed at {url}, which is not {self._target.endpoint}")
        return url.removeprefix(self._target.endpoint)

    def _repeated(self, method: str, url: str, patience: Patience, body: Any = None) -> Answer:
        headers = {"Accept": "application/json", "Authorization": f"Bearer {self._bearer()}"}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        for attempt in range(1, ATTEMPTS + 1):
            answer = self._send(self._target.endpoint, method, url, headers, data)
            if answer.status not in RETRIED or attempt == ATTEMPTS:
                break
            patience.rest(_pause(answer.headers, 0.2 * 2**attempt))
        if answer.status >= 400:
            error = answer.body.get("error", {}) if isinstance(answer.body, dict) else {}
            raise ServiceError(answer.status, error.get("code", ""), error.get("message", str(answer.body or "")))
        return answer

    def _bearer(self) -> str:
        with self._signing_in:
            token, until = self._token
            if time.monotonic() < until:
                return token
            form = {
                "grant_type": "client_credentials",
                "client_id": self._target.client,
                "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
                "client_assertion": _secret(self._target),
                "scope": f"{self._target.endpoint}/.default",
            }
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            url = f"/{self._target.tenant}/oauth2/v2.0/token"
            answer = self._send(self._target.authority, "POST", url, headers, urlencode(form).encode())
            if answer.status != 200:
                reason = answer.body.get("error_description", "") if isinstance(answer.body, dict) else ""
                raise ProviderError(f"the sandbox's Entra ID gave no token ({answer.status}): {reason}")
            lasts = max(float(answer.body["expires_in"]) - _RENEW_SECONDS, 1.0)
            self._token = (str(answer.body["access_token"]), time.monotonic() + lasts)
            return self._token[0]

    def _send(self, origin: str, method: str, url: str, headers: Mapping[str, str], data: bytes | None) -> Answer:
        for fresh in (False, True):
            connection = self._take(origin, fresh=fresh)
            try:
                connection.request(method, url, data, dict(headers))
                response = connection.getresponse()
                content = response.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                # An idle connection that the server closed meanwhile: every call here may be sent twice.
                if fresh:
                    raise ProviderError(
                        f"the sandbox at {origin} does not answer ({type(error).__name__}: {error}); "
                        "look with `amlstack sandbox status`, then run the same command again",
                        ErrorCode.UNAVAILABLE,
                    ) from None
                continue
            with self._lock:
                self._idle.setdefault(origin, []).append(connection)
            named = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, named, _parsed(content))
        raise AssertionError("unreachable")

    def _take(self, origin: str, *, fresh: bool) -> http.client.HTTPSConnection:
        with self._lock:
            if (idle := self._idle.get(origin)) and not fresh:
                return idle.pop()
        parts = urlsplit(origin)
        host, port = parts.hostname or "", parts.port or 443
        return http.client.HTTPSConnection(host, port, timeout=SOCKET_SECONDS, context=self._tls)


class AcceptedError(Exception):
    """The service took the request, and then something went wrong: the resource exists in some state."""

    def __init__(self, resource_id: str, cause: ProviderError) -> None:
        super().__init__(cause.message)
        self.resource_id = resource_id
        self.cause = cause


def _state(body: Any) -> str:
    inner = body.get("properties") if isinstance(body, dict) else None
    return str(inner.get("provisioningState", "")) if isinstance(inner, dict) else ""


def _pause(headers: Mapping[str, str], otherwise: float = POLL_SECONDS) -> float:
    """Seconds until the next try, as the service asks."""
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        if headers.get(name, "").isdigit():
            return int(headers[name]) / 1000
    after = headers.get("retry-after", "")
    return float(after) if after.isdigit() else otherwise


def _parsed(content: bytes) -> Any:
    try:
        return json.loads(content) if content else None
    except ValueError:
        return content.decode(errors="replace")


def _secret(target: SandboxTarget) -> str:
    try:
        return target.token_file.read_text("utf-8").strip()
    except OSError as error:
        raise ProviderError(f"the sandbox's token file {target.token_file} cannot be read: {error}") from None
