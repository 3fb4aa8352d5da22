"""Whom the stand-in speaks to: a sandbox on this machine, and never anything else."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from amlstack.rpc import ProviderError

if TYPE_CHECKING:
    from collections.abc import Mapping


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
