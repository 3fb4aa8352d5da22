"""Azure Resource Manager over REST: our bytes on the wire unchanged, Entra ID, retries, long-running operations.

The client is azure-core's pipeline with azure-identity's `DefaultAzureCredential`; there is no logging policy in it, so
that neither tokens nor signed URLs can reach a log. Used by the provider and by the command line.
"""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode, urljoin, urlsplit

from amlstack.scrub import scrub

if TYPE_CHECKING:
    from collections.abc import Mapping

    from azure.core.credentials import TokenCredential

API_VERSION: Final = "2025-12-01"
"""Of Microsoft.MachineLearningServices; the default of azure-native 3.29 and azure-ai-ml 1.35."""

PUBLIC_ENDPOINT: Final = "https://management.azure.com"
ENDPOINT_VARIABLE: Final = "AMLSTACK_ARM_ENDPOINT"

_DEFAULT_DELAY: Final = 2.0
_LONGEST_DELAY: Final = 60.0
_UNFINISHED: Final = frozenset({"inprogress", "running", "accepted", "creating", "updating", "deleting", "notstarted"})


class ArmError(Exception):
    """The service refused, or could not be asked.

    Attributes:
        status: HTTP status; 0 when there was no answer at all.
        code: The service's error code, e.g. ``ResourceNotFound``; ours are ``ConnectionFailed`` and ``NoCredential``.
        message: The service's own words, without anything secret.
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        self.status = status
        self.code = code
        self.message = scrub(message)
        super().__init__(f"{self.code} ({status}): {self.message}" if status else self.message)


class InterruptedWaitError(Exception):
    """The engine asked for running operations to end while one was being waited for."""


@dataclass(frozen=True, slots=True)
class Response:
    """An answer with a status below 400, or one of those that the caller allowed.

    Attributes:
        status: HTTP status.
        body: Parsed JSON; ``{}`` when there is none.
        headers: Names in lower case.
        url: The absolute URL that answered.
    """

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    url: str = ""

    @property
    def delay(self) -> float | None:
        """Seconds after which the service wants to be asked again; ``None`` when it does not say."""
        for name, unit in (("retry-after-ms", 0.001), ("x-ms-retry-after-ms", 0.001), ("retry-after", 1.0)):
            try:
                value = float(self.headers.get(name, "")) * unit
            except ValueError:
                continue
            if value > 0:
                return min(value, _LONGEST_DELAY)
        return None


def endpoint(configured: str | None = None) -> str:
    """Where ARM is: the configured endpoint, else ``AMLSTACK_ARM_ENDPOINT``, else Azure's public cloud.

    Raises:
        ArmError: It is no https URL; tokens are sent over nothing else.
    """
    chosen = (configured or os.environ.get(ENDPOINT_VARIABLE) or PUBLIC_ENDPOINT).rstrip("/")
    parts = urlsplit(chosen)
    if parts.scheme != "https" or not parts.netloc or parts.path:
        raise ArmError(0, "EndpointInvalid", f"{chosen} is no ARM endpoint: give https://host, without a path")
    return chosen


class ArmClient:
    """Asks ARM. Safe for use by several threads.

    Args:
        arm_endpoint: ``https://host``, without a path.
        credential: Any azure-core token credential; `DefaultAzureCredential` when not given, made at the first call.
    """

    def __init__(self, arm_endpoint: str, credential: TokenCredential | None = None) -> None:
        self.endpoint = arm_endpoint
        self._credential = credential
        self._lock = threading.Lock()
        self._pipeline: Any = None

    def get(self, path: str, api_version: str = API_VERSION, **options: Any) -> Response:
        """GET; see `request`."""
        return self.request("GET", path, api_version, **options)

    def put(self, path: str, body: Any, api_version: str = API_VERSION, **options: Any) -> Response:
        """PUT a JSON body; see `request`."""
        return self.request("PUT", path, api_version, body=body, **options)

    def post(self, path: str, body: Any = None, api_version: str = API_VERSION, **options: Any) -> Response:
        """POST, with a JSON body if there is one; see `request`."""
        return self.request("POST", path, api_version, body=body, **options)

    def patch(self, path: str, body: Any, api_version: str | None = API_VERSION, **options: Any) -> Response:
        """PATCH a JSON body; see `request`."""
        return self.request("PATCH", path, api_version, body=body, **options)

    def delete(self, path: str, api_version: str = API_VERSION, **options: Any) -> Response:
        """DELETE; see `request`."""
        return self.request("DELETE", path, api_version, **options)

    def request(
        self,
        method: str,
        path: str,
        api_version: str | None = API_VERSION,
        *,
        body: Any = None,
        query: Mapping[str, str] | None = None,
        allow: tuple[int, ...] = (),
    ) -> Response:
        """One exchange, with retries of what may be repeated.

        Args:
            method: HTTP method.
            path: ``/subscriptions/…``, or an absolute https URL for what the service itself has named.
            api_version: Added to the query; ``None`` for data-plane calls, which have none.
            body: Sent as JSON.
            query: Further query parameters.
            allow: Statuses of 400 and above that are answers to the caller, not errors.

        Raises:
            ArmError: Any other status of 400 and above, no connection, no credential.
        """
        response, text = self.exchange(method, self.url(path, api_version, query), body)
        if response.status >= 400 and response.status not in allow:
            raise error_of(response, text)
        return response

    def exchange(self, method: str, url: str, body: Any) -> tuple[Response, str]:
        """Sends a request and reads its answer, whatever its status; a subclass may carry it otherwise.

        Args:
            method: HTTP method.
            url: Absolute, with its query.
            body: Sent as JSON; None for no body.

        Returns:
            The answer, and its text.

        Raises:
            ArmError: No connection, no credential.
        """
        # Imported late: a preview that asks nothing should not pay for it.
        from azure.core.exceptions import AzureError, ClientAuthenticationError  # noqa: PLC0415
        from azure.core.rest import HttpRequest  # noqa: PLC0415

        request = HttpRequest(method, url, json=body)
        request.headers["Accept"] = "application/json"
        try:
            raw = self._run(request)
            text = raw.text()
        except ClientAuthenticationError as error:
            raise ArmError(0, "NoCredential", _no_credential(str(error))) from None
        except AzureError as error:
            raise no_answer(url, error) from None
        headers = {name.lower(): value for name, value in raw.headers.items()}
        return Response(raw.status_code, parsed(text), headers, request.url), text

    def url(self, path: str, api_version: str | None, query: Mapping[str, str] | None = None) -> str:
        """The absolute URL of a path, with its query.

        Raises:
            ArmError: An absolute URL that is not https.
        """
        if path.startswith("/"):
            url = self.endpoint + quote(path, safe="/:@!$&'()*+,;=-._~%")
        elif path.startswith("https://"):
            url = path
        else:
            raise ArmError(0, "EndpointInvalid", f"{path.split('?', 1)[0]} is no https URL: tokens are not sent there")
        parameters = {**({"api-version": api_version} if api_version else {}), **(query or {})}
        if not parameters:
            return url
        return f"{url}{'&' if urlsplit(url).query else '?'}{urlencode(parameters, safe='$', quote_via=quote)}"

    def finish(self, response: Response, cancelled: threading.Event | None = None) -> Response:
        """Waits for the end of the long-running operation that an answer has started, if it has.

        Returns:
            The final answer; ``response`` itself when nothing was started.

        Raises:
            ArmError: The operation failed or was cancelled.
            InterruptedWaitError: ``cancelled`` was set.
        """
        operation = response.headers.get("azure-asyncoperation")
        if operation:
            return self._finish_operation(response, urljoin(response.url, operation), cancelled)
        location = response.headers.get("location")
        while response.status == 202 and location:
            pause(response.delay or _DEFAULT_DELAY, cancelled)
            response = self.request("GET", urljoin(response.url or self.endpoint, location), None)
            location = response.headers.get("location", location)
        return response

    def _finish_operation(self, response: Response, operation: str, cancelled: threading.Event | None) -> Response:
        current = response
        while True:
            status = str(current.body.get("status", "") if current is not response else "InProgress")
            if status.lower() == "succeeded":
                return current
            if status.lower() not in _UNFINISHED:
                raise error_of(current, f"the operation ended {status}")
            pause(current.delay or _DEFAULT_DELAY, cancelled)
            current = self.request("GET", operation, None)

    def _run(self, request: Any) -> Any:
        with self._lock:
            if self._pipeline is None:
                self._pipeline = self._build()
        return self._pipeline.send_request(request)

    def _build(self) -> Any:
        from azure.core import PipelineClient  # noqa: PLC0415
        from azure.core.pipeline.policies import (  # noqa: PLC0415
            BearerTokenCredentialPolicy,
            RetryPolicy,
            UserAgentPolicy,
        )

        if self._credential is None:
            from azure.identity import DefaultAzureCredential  # noqa: PLC0415

            self._credential = DefaultAzureCredential()
        policies = [
            UserAgentPolicy("amlstack"),
            RetryPolicy(retry_total=5, retry_connect=3, retry_backoff_factor=0.4, retry_backoff_max=20),
            BearerTokenCredentialPolicy(self._credential, f"{self.endpoint}/.default"),
        ]
        return PipelineClient(self.endpoint, policies=policies)


def pause(seconds: float, cancelled: threading.Event | None) -> None:
    """Waits, but no longer than until ``cancelled`` is set.

    Raises:
        InterruptedWaitError: It was set.
    """
    if cancelled is None:
        time.sleep(seconds)
    elif cancelled.wait(seconds):
        raise InterruptedWaitError


def no_answer(url: str, error: Exception) -> ArmError:
    """The typed error of a connection that could not be made, or broke."""
    return ArmError(0, "ConnectionFailed", f"no answer from {urlsplit(url).netloc}: {error}")


def error_of(response: Response, fallback: str = "") -> ArmError:
    """The typed error of an answer; ARM wraps it in ``error``, the data plane does not always."""
    body = response.body if isinstance(response.body, dict) else {}
    inner = body.get("error")
    error: dict[str, Any] = inner if isinstance(inner, dict) else body
    code = str(error.get("code") or f"Http{response.status}")
    message = str(error.get("message") or fallback.strip()[:500] or "the service gave no reason")
    details = [str(item.get("message")) for item in error.get("details") or () if isinstance(item, dict)]
    more = [text for text in details if text and text != "None" and text not in message]
    return ArmError(response.status, code, " ".join((message, *more)))


def parsed(text: str) -> Any:
    """The JSON of an answer; ``{}`` when there is none."""
    try:
        return json.loads(text) if text.strip() else {}
    except ValueError:
        return {}


def _no_credential(message: str) -> str:
    first = message.strip().splitlines()[0] if message.strip() else "no credential"
    return f"no Entra ID token ({first[:300]}); sign in with `az login`, or set the variables of a workload identity"
