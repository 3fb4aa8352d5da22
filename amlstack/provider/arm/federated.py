"""Workload identity without azure-identity, which takes a quarter of a second to load: one exchange of tokens.

The same request as azure-identity 1.27's ``WorkloadIdentityCredential`` makes (OAuth 2.0 client credentials with a
federated assertion, learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow).
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from amlstack.provider.arm import azure_core
from amlstack.provider.arm.answers import parsed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from azure.core.credentials import AccessToken

_ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_METHOD: Final = "WorkloadIdentityCredential"
_VARIABLES: Final = ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE")
_PROXY: Final = "AZURE_KUBERNETES_TOKEN_PROXY"
"""Sends the exchange through a proxy of the cluster's own: left to azure-identity."""
_MARGIN: Final = 300.0
"""Seconds before its end at which a token is asked for anew."""


def chosen(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment narrows `DefaultAzureCredential` to workload identity, and names all that it needs."""
    method = environ.get("AZURE_TOKEN_CREDENTIALS", "").casefold() == _METHOD.casefold()
    return method and all(environ.get(name) for name in _VARIABLES) and not environ.get(_PROXY)


class FederatedCredential:
    """Exchanges the token of a file for access tokens. Safe for use by several threads.

    Args:
        authority: Where to sign in: a host, or ``https://host``.
        tenant: Whose tokens are asked for.
        client: Who asks.
        file: Holds the federated token; read at each exchange.
        ca: PEM file of the authorities to trust; those of the environment when not given.
    """

    def __init__(self, authority: str, tenant: str, client: str, file: Path, ca: str | None = None) -> None:
        self._tenant, self._client, self._file, self._ca = tenant, client, file, ca
        self._authority = (authority if "://" in authority else f"https://{authority}").rstrip("/")
        self._lock = threading.Lock()
        self._tokens: dict[tuple[str, str], AccessToken] = {}

    @classmethod
    def of_environment(cls, authority: str, tenant: str | None = None) -> Self:
        """As `chosen` has found it; for another tenant where one is given."""
        own, client, file = (os.environ[name] for name in _VARIABLES)
        return cls(authority, tenant or own, client, Path(file))

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        """A token for one scope; see azure-core's ``TokenCredential``.

        Raises:
            ClientAuthenticationError: The token cannot be read, or is not taken.
            AzureError: No answer.
        """
        (scope,) = scopes
        tenant = str(options.get("tenant_id") or self._tenant)
        with self._lock:
            known = self._tokens.get((scope, tenant))
            if known is None or known.expires_on < time.time() + _MARGIN:
                known = self._tokens[scope, tenant] = self._exchanged(scope, tenant)
            return known

    def _exchanged(self, scope: str, tenant: str) -> AccessToken:
        azure_core.load()
        from azure.core.credentials import AccessToken  # noqa: PLC0415 - as all here: not for a preview
        from azure.core.exceptions import ClientAuthenticationError  # noqa: PLC0415
        from azure.core.rest import HttpRequest  # noqa: PLC0415

        try:
            assertion = self._file.read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise ClientAuthenticationError(f"the federated token cannot be read: {error}") from None
        form = {
            "grant_type": "client_credentials",
            "client_id": self._client,
            "client_assertion_type": _ASSERTION,
            "client_assertion": assertion,
            "scope": scope,
        }
        began = int(time.time())
        url = f"{self._authority}/{tenant}/oauth2/v2.0/token"
        with azure_core.transport(self._ca) as transport:
            raw = transport.send(HttpRequest("POST", url, data=form))
            raw.read()
            answer = parsed(raw.text())
        token = answer.get("access_token") if isinstance(answer, dict) else None
        if not isinstance(token, str):
            words = answer.get("error_description") if isinstance(answer, dict) else None
            raise ClientAuthenticationError(f"workload identity: {words or f'it answered {raw.status_code}'}")
        return AccessToken(token, began + int(answer.get("expires_in") or 0))
