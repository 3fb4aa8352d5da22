"""Workload identity without azure-identity, which takes a quarter of a second to load: one exchange of tokens.

The same request as azure-identity 1.27's ``WorkloadIdentityCredential`` makes (OAuth 2.0 client credentials with a
federated assertion, learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow).
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

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
        tenant: Whose tokens are asked for; that of the environment when not given.
        environ: Where tenant, client and file are named.
    """

    def __init__(self, authority: str, tenant: str | None = None, environ: Mapping[str, str] = os.environ) -> None:
        own, self._client, self._file = (environ[name] for name in _VARIABLES)
        self._tenant = tenant or own
        self._authority = (authority if "://" in authority else f"https://{authority}").rstrip("/")
        self._lock = threading.Lock()
        self._tokens: dict[tuple[str, str], AccessToken] = {}

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
        from azure.core.credentials import AccessToken  # noqa: PLC0415 - as all here: not for a preview
        from azure.core.exceptions import ClientAuthenticationError  # noqa: PLC0415
        from azure.core.rest import HttpRequest  # noqa: PLC0415

        from amlstack.provider.arm.transport import LeanTransport  # noqa: PLC0415

        try:
            assertion = Path(self._file).read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise ClientAuthenticationError(f"AZURE_FEDERATED_TOKEN_FILE cannot be read: {error}") from None
        form = {
            "grant_type": "client_credentials",
            "client_id": self._client,
            "client_assertion_type": _ASSERTION,
            "client_assertion": assertion,
            "scope": scope,
        }
        began = int(time.time())
        with LeanTransport() as transport:
            url, kind = f"{self._authority}/{tenant}/oauth2/v2.0/token", "application/x-www-form-urlencoded"
            raw = transport.send(HttpRequest("POST", url, content=urlencode(form), headers={"Content-Type": kind}))
            answer = parsed(raw.text())
        token = answer.get("access_token") if isinstance(answer, dict) else None
        if not isinstance(token, str):
            words = answer.get("error_description") if isinstance(answer, dict) else None
            raise ClientAuthenticationError(f"workload identity: {words or f'it answered {raw.status_code}'}")
        return AccessToken(token, began + int(answer.get("expires_in") or 0))
