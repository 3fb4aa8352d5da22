"""The one ARM client, signed in to a sandbox. Without azure-identity, which takes a quarter of a second to load."""

from __future__ import annotations

import json
import os
import ssl
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

from amlstack.provider.arm import ArmClient, ArmError, Response

if TYPE_CHECKING:
    from azure.core.credentials import AccessToken

    from amlstack.sandbox.server.endpoint import Endpoint

PATIENCE = 60.0
"""Seconds for a token: the machine may be busy with the very job."""


class SandboxCredential:
    """Exchanges the sandbox's federated token for access tokens, each kept until shortly before its end."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._tokens: dict[str, AccessToken] = {}

    def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        """See azure-core's ``TokenCredential``.

        Raises:
            ArmError: The sandbox gives no token.
        """
        from azure.core.credentials import AccessToken

        (scope,) = scopes
        known = self._tokens.get(scope)
        if known is None or known.expires_on < time.time() + PATIENCE:
            answer = self._asked(scope)
            known = AccessToken(answer["access_token"], int(time.time()) + int(answer["expires_in"]))
            self._tokens[scope] = known
        return known

    def _asked(self, scope: str) -> Any:
        form = {
            "grant_type": "client_credentials",
            "client_id": self._endpoint.client,
            "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            "client_assertion": self._endpoint.token.read_text(),
            "scope": scope,
        }
        url = f"{self._endpoint.url}/{self._endpoint.tenant}/oauth2/v2.0/token"
        context = ssl.create_default_context(cafile=str(self._endpoint.ca))
        # Straight to the loopback: no proxy of the environment.
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        try:
            with opener.open(url, urlencode(form).encode(), timeout=PATIENCE) as answer:
                return json.load(answer)
        except (OSError, ValueError) as error:
            raise ArmError(0, "NoCredential", f"no token from the sandbox: {error}") from None


class SandboxArm(ArmClient):
    """Asks one sandbox and nothing else: its tokens go nowhere else."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint.url, SandboxCredential(endpoint), ca=str(endpoint.ca))

    def exchange(self, method: str, url: str, body: Any, *, acting: bool = False) -> tuple[Response, str]:
        """See `ArmClient.exchange`.

        Raises:
            ArmError: Also for a URL that is not this sandbox's.
        """
        if not url.startswith(f"{self.endpoint}/"):
            raise ArmError(0, "EndpointInvalid", f"{urlsplit(url).netloc} is not the sandbox at {self.endpoint}")
        return super().exchange(method, url, body, acting=acting)


def connect(endpoint: Endpoint) -> SandboxArm:
    """A client of a running sandbox; this process becomes one, and the user's own cloud is out of its sight."""
    os.environ.update(endpoint.environ())
    return SandboxArm(endpoint)
