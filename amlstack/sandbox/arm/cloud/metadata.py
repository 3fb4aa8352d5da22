"""Metadata that Azure's clients read before they sign in: the cloud's endpoints and its sign-in service.

One document serves them all: azure-ai-ml and az (``ARM_CLOUD_METADATA_URL``), azurerm (``metadata_host``), azure-native
3.8 and newer (``metadataHost``). Each reads what it knows of it:

- azure-ai-ml 1.35: name, portal, resourceManager, authentication.loginEndpoint, suffixes.storage; it looks for
  resourceManager inside the document's own address, and makes the audience of Azure ML of the portal's domain.
- az 2.91: a list where ``ARM_CLOUD_METADATA_URL`` names the address, one object for ``az cloud register``.
- azure-native 3.8: also microsoftGraphResourceId, authentication.audiences, suffixes.keyVaultDns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from amlstack.sandbox.arm.entra import TENANT, resource_manager
from amlstack.sandbox.arm.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

PATH: Final = "/metadata/endpoints"
CLOUD: Final = "amlstack-sandbox"
"""Its name."""
_ONE_OBJECT: Final = "2022-09-01"
"""The first api-version whose answer is no list."""


def answer(base: str, path: str, query: Mapping[str, str]) -> Any:
    """The document at a path, or None where there is none; none of them asks for a token.

    Args:
        base: ``https://127.0.0.1:PORT``.
        path: Of the request.
        query: Its parameters.

    Raises:
        Refused: The api-version is missing.
    """
    if path.rstrip("/") == PATH:
        version = query.get("api-version")
        if not version:
            message = "The api-version query parameter (?api-version=) is required for all requests."
            raise Refused(400, "MissingApiVersionParameter", message)
        return cloud(base) if version >= _ONE_OBJECT else [cloud(base)]
    tenant, _, rest = path.strip("/").partition("/")
    if rest in ("v2.0/.well-known/openid-configuration", ".well-known/openid-configuration"):
        return _openid(base, tenant)
    if path == "/common/discovery/instance":
        return {
            "tenant_discovery_endpoint": f"{base}/{TENANT}/v2.0/.well-known/openid-configuration",
            "api-version": "1.1",
            "metadata": [],
        }
    return None


def cloud(base: str) -> dict[str, Any]:
    """The cloud's endpoints; what the sandbox does not have is not named, so that no client calls Azure for it."""
    host = base.removeprefix("https://")
    return {
        "name": CLOUD,
        "portal": "https://portal.azure.com/",
        "authentication": {
            "loginEndpoint": base,
            "audiences": list(resource_manager(base)),
            "tenant": TENANT,
            "identityProvider": "AAD",
        },
        "resourceManager": base,
        "graph": base,
        "graphAudience": base,
        "microsoftGraphResourceId": base,
        "activeDirectoryDataLake": base,
        "batch": base,
        "gallery": base,
        "sqlManagement": base,
        "media": base,
        "vmImageAliasDoc": f"{base}/aliases.json",
        "suffixes": {
            "storage": "core.windows.net",
            "keyVaultDns": "vault.azure.net",
            "acrLoginServer": "azurecr.io",
            "sqlServerHostname": host,
            "azureDataLakeStoreFileSystem": host,
            "azureDataLakeAnalyticsCatalogAndJob": host,
        },
    }


def _openid(base: str, tenant: str) -> dict[str, Any]:
    """What a client of Entra ID reads of a tenant before it asks for a token."""
    root = f"{base}/{TENANT if tenant in ('common', 'organizations') else tenant}"
    return {
        "issuer": f"{root}/v2.0",
        "token_endpoint": f"{root}/oauth2/v2.0/token",
        "authorization_endpoint": f"{root}/oauth2/v2.0/authorize",
        "device_authorization_endpoint": f"{root}/oauth2/v2.0/devicecode",
        "jwks_uri": f"{root}/discovery/v2.0/keys",
        "token_endpoint_auth_methods_supported": ["client_secret_post", "private_key_jwt"],
        "response_types_supported": ["code", "id_token"],
        "subject_types_supported": ["pairwise"],
        "id_token_signing_alg_values_supported": ["HS256"],
    }
