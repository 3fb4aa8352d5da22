"""Signing in to one of Azure's clouds, by the same settings and variables as azure-native, in the same order.

The sources of the clouds are azure-core's and azure-ai-ml's own tables (azure-ai-ml 1.35 ``_azure_environments.py``,
azure-identity's ``AzureAuthorityHosts``), read on 2026-11-22.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

from amlstack.provider.arm import exchange
from amlstack.provider.arm.exchange import ArmError, parsed

if TYPE_CHECKING:
    from azure.core.credentials import AccessToken, TokenCredential

ENDPOINT_VARIABLE: Final = "AMLSTACK_ARM_ENDPOINT"


@dataclass(frozen=True, slots=True)
class Cloud:
    """One of Azure's clouds.

    Attributes:
        name: As ``azure-native:environment`` names it.
        endpoint: Its resource manager, ``https://host``.
        authority: Host of its Entra ID.
        ml_audience: Whom tokens for Azure Machine Learning itself are for.
        studio: Address of the studio.
        also: Other names of it, which azure-native and the Azure CLI use too.
    """

    name: str
    endpoint: str
    authority: str
    ml_audience: str
    studio: str
    also: tuple[str, ...]


_DATA: Final = json.loads(Path(__file__).with_name("sign_in.json").read_text("utf-8"))
CLOUDS: Final = tuple(Cloud(**{**row, "also": tuple(row["also"])}) for row in _DATA["clouds"])
PUBLIC: Final = CLOUDS[0]
PUBLIC_ENDPOINT: Final = PUBLIC.endpoint


def cloud_named(name: str) -> Cloud:
    """The cloud of that name, in any letter case.

    Raises:
        ArmError: There is none.
    """
    found = next((cloud for cloud in CLOUDS if name.casefold() in (cloud.name, *cloud.also)), None)
    if found is None:
        known = ", ".join(cloud.name for cloud in CLOUDS)
        raise ArmError(0, "EnvironmentInvalid", f"{name!r} is no cloud of Azure: `environment` is one of {known}")
    return found


def endpoint(configured: str | None = None, cloud: Cloud = PUBLIC, environ: Mapping[str, str] | None = None) -> str:
    """ARM's address: the configured endpoint, else ``AMLSTACK_ARM_ENDPOINT``, else the cloud's.

    Raises:
        ArmError: It is no https URL; tokens are sent over nothing else.
    """
    environ = os.environ if environ is None else environ
    chosen = (configured or environ.get(ENDPOINT_VARIABLE) or cloud.endpoint).rstrip("/")
    parts = urlsplit(chosen)
    if parts.scheme != "https" or not parts.netloc or parts.path:
        raise ArmError(0, "EndpointInvalid", f"{chosen} is no ARM endpoint: give https://host, without a path")
    return chosen


def cloud_at(arm_endpoint: str, cloud: Cloud = PUBLIC) -> Cloud:
    """The cloud that an endpoint belongs to; ``cloud`` when it is none of Azure's own."""
    return next((one for one in CLOUDS if one.endpoint == arm_endpoint.rstrip("/").casefold()), cloud)


_ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_METHOD: Final = "WorkloadIdentityCredential"
_VARIABLES: Final = ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_FEDERATED_TOKEN_FILE")
_PROXY: Final = "AZURE_KUBERNETES_TOKEN_PROXY"
"""Sends the exchange through a proxy of the cluster's own: left to azure-identity."""
_MARGIN: Final = 300.0
"""Seconds before its end at which a token is asked for anew."""


def federated_is_chosen(environ: Mapping[str, str] = os.environ) -> bool:
    """True where the environment narrows `DefaultAzureCredential` to workload identity, and names all that it needs."""
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
        exchange.load_azure_core()
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
        with exchange.make_transport(self._ca) as transport:
            raw = transport.send(HttpRequest("POST", url, data=form))
            raw.read()
            answer = parsed(raw.text())
        token = answer.get("access_token") if isinstance(answer, dict) else None
        if not isinstance(token, str):
            words = answer.get("error_description") if isinstance(answer, dict) else None
            raise ClientAuthenticationError(f"workload identity: {words or f'it answered {raw.status_code}'}")
        return AccessToken(token, began + int(answer.get("expires_in") or 0))


VARIABLES: Final[Mapping[str, tuple[str, ...]]] = {
    setting: tuple(names.split()) for setting, names in _DATA["variables"].items()
}
"""Setting → the environment variables that stand in for it, the first that is set."""

SECRET: Final = ("clientSecret", "clientCertificatePassword", "oidcToken", "oidcRequestToken")
"""Settings that only their owner may read."""

_EXCHANGE: Final = "api://AzureADTokenExchange"
_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class SignIn:
    """The way to sign in: the settings of `VARIABLES` that are given, none of them empty."""

    values: Mapping[str, str]

    @classmethod
    def read(cls, settings: Mapping[str, str], environ: Mapping[str, str] | None = None) -> SignIn:
        """From settings by name, else from the environment."""
        environ = os.environ if environ is None else environ
        found = {
            name: settings[name] if name in settings else next(filter(None, map(environ.get, variables)), "")
            for name, variables in VARIABLES.items()
        }
        return cls({name: value for name, value in found.items() if value})

    def on(self, name: str) -> bool:
        """True where a setting that is true or false is true."""
        return self.values.get(name, "").casefold() == "true"

    @property
    def cloud(self) -> Cloud:
        """The cloud of ``environment``, else Azure's public one.

        Raises:
            ArmError: There is no such cloud.
        """
        return cloud_named(self.values["environment"]) if "environment" in self.values else PUBLIC

    def credential(self, cloud: Cloud) -> TokenCredential:
        """The credential of the first method that is configured; azure-native's order.

        Args:
            cloud: Where to sign in; ``AZURE_AUTHORITY_HOST`` counts before it.

        Raises:
            ArmError: A method is configured, but not all that it needs, or with what azure-identity does not take.
        """
        # Without any handler Python prints the dozen lines of what was tried; the error says what matters.
        if not (log := logging.getLogger("azure.identity")).handlers:
            log.addHandler(logging.NullHandler())
        try:
            return self._chosen(cloud)
        except (OSError, ValueError) as error:
            raise ArmError(0, "NoCredential", f"what is configured for signing in cannot be used: {error}") from None

    def _chosen(self, cloud: Cloud) -> TokenCredential:
        values, authority = self.values, os.environ.get("AZURE_AUTHORITY_HOST") or cloud.authority
        if self.on("useDefaultAzureCredential"):
            return self._default(authority)
        if path := values.get("clientCertificatePath"):
            from azure.identity import CertificateCredential  # noqa: PLC0415 - as all here: not for a preview

            password = values.get("clientCertificatePassword")
            try:
                return CertificateCredential(
                    *self._principal("a client certificate"), path, password=password, **self._options(authority)
                )
            except (OSError, ValueError) as error:
                raise ArmError(0, "NoCredential", f"the client certificate {path} cannot be read: {error}") from None
        if secret := values.get("clientSecret"):
            from azure.identity import ClientSecretCredential  # noqa: PLC0415

            return ClientSecretCredential(*self._principal("a client secret"), secret, **self._options(authority))
        if self.on("useOidc"):
            from azure.identity import ClientAssertionCredential  # noqa: PLC0415

            principal = self._principal("OpenID Connect")
            return ClientAssertionCredential(*principal, self._assertion(), authority=authority)
        if self.on("useMsi"):
            from azure.identity import ManagedIdentityCredential  # noqa: PLC0415

            return ManagedIdentityCredential(client_id=values.get("clientId"))
        return self._default(authority)

    def _default(self, authority: str) -> TokenCredential:
        tenant = self.values.get("tenantId")
        if federated_is_chosen():
            return FederatedCredential.of_environment(authority, tenant)
        from azure.identity import DefaultAzureCredential  # noqa: PLC0415

        if not tenant:
            return DefaultAzureCredential(authority=authority)
        allowed = [tenant, *self._auxiliary()]
        # Of several tenants that the Azure CLI is signed in to, the one that the stack names.
        chain = DefaultAzureCredential(authority=authority, additionally_allowed_tenants=allowed)
        return _OfTenant(chain, tenant)

    def _principal(self, method: str) -> tuple[str, str]:
        """Tenant and client."""
        missing = [name for name in ("tenantId", "clientId") if not self.values.get(name)]
        if missing:
            words = " and ".join(f"azure-native:{name} ({VARIABLES[name][0]})" for name in missing)
            raise ArmError(0, "NoCredential", f"signing in with {method} needs {words}")
        return self.values["tenantId"], self.values["clientId"]

    def _options(self, authority: str) -> dict[str, Any]:
        host = urlsplit(authority).netloc or authority
        # Another host than Azure's own (a private cloud, a sandbox) is none that Azure's public one could vouch for.
        private = host not in {cloud.authority for cloud in CLOUDS}
        return {
            "authority": authority,
            "disable_instance_discovery": private or self.on("disableInstanceDiscovery"),
            "additionally_allowed_tenants": self._auxiliary(),
        }

    def _auxiliary(self) -> list[str]:
        text = self.values.get("auxiliaryTenantIds", "[]")
        try:
            found = json.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, list):
            raise ArmError(0, "NoCredential", "azure-native:auxiliaryTenantIds is no JSON list of tenant ids")
        return [str(tenant) for tenant in found]

    def _assertion(self) -> Any:
        """Gives the federated token, at each use."""
        values = self.values
        if token := values.get("oidcToken"):
            return lambda: token
        if path := values.get("oidcTokenFilePath"):
            return lambda: _from_file(path)
        url, bearer = values.get("oidcRequestUrl"), values.get("oidcRequestToken")
        if url and bearer:
            audience = values.get("oidcAudience", _EXCHANGE)
            return lambda: _from_issuer(url, bearer, audience)
        needs = "oidcToken, oidcTokenFilePath, or oidcRequestUrl and oidcRequestToken"
        raise ArmError(0, "NoCredential", f"signing in with OpenID Connect needs one of azure-native:{needs}")


class _OfTenant:
    """A credential whose tokens are of one tenant, unless another is asked for."""

    def __init__(self, credential: TokenCredential, tenant: str) -> None:
        self._credential = credential
        self._tenant = tenant

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        """A token for scopes."""
        return self._credential.get_token(*scopes, **{**options, "tenant_id": options.get("tenant_id") or self._tenant})


def _from_file(path: str) -> str:
    from azure.core.exceptions import ClientAuthenticationError  # noqa: PLC0415

    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise ClientAuthenticationError(f"the file of the OIDC token cannot be read: {error}") from None


def _from_issuer(url: str, bearer: str, audience: str) -> str:
    import requests  # noqa: PLC0415
    from azure.core.exceptions import ClientAuthenticationError  # noqa: PLC0415

    if urlsplit(url).scheme != "https":
        raise ClientAuthenticationError("oidcRequestUrl is no https URL: its token is sent over nothing else")
    headers = {"Accept": "application/json", "Authorization": f"Bearer {bearer}"}
    try:
        answer = requests.get(url, params={"audience": audience}, headers=headers, timeout=_SECONDS)
        token = answer.json().get("value") if answer.ok else None
    except (requests.RequestException, ValueError, AttributeError) as error:
        raise ClientAuthenticationError(f"no OIDC token from {urlsplit(url).netloc}: {type(error).__name__}") from None
    if not isinstance(token, str) or not token:
        raise ClientAuthenticationError(f"no OIDC token from {urlsplit(url).netloc}: it answered {answer.status_code}")
    return token
