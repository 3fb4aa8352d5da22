"""The endpoint of a running sandbox, and the variables that lead clients to it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

FOREIGN = (
    "ARM_CLIENT_SECRET",
    "ARM_CLIENT_CERTIFICATE_PATH",
    "ARM_USE_OIDC",
    "ARM_USE_MSI",
    "ARM_ENVIRONMENT",
    "AZURE_ENVIRONMENT",
    "ARM_AUXILIARY_TENANT_IDS",
)
"""Variables of a user's own login, or of another cloud's, which count for nothing here."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A running sandbox.

    Attributes:
        home: Its home folder (`amlstack.base.paths.home`).
        url: ``https://127.0.0.1:PORT``.
        pid, started: The server process, named for ever by its start time too.
        ca: PEM file of its own authority.
        bundle: PEM file of that authority and those of this machine.
        token: File with the federated token (mode 0600).
        tenant, client, subscription: Its ids.
        cloud: A name for azure-ai-ml's ``cloud=``.
        proxy: ``http://127.0.0.1:PORT``, under which Azure's own host names lead here.
    """

    home: Path
    url: str
    pid: int
    started: int
    ca: Path
    bundle: Path
    token: Path
    tenant: str
    client: str
    subscription: str
    cloud: str
    proxy: str = ""

    def environ(self) -> dict[str, str]:
        """Every variable that makes a client of Azure a client of this sandbox.

        They are to be assigned, not defaulted: a ``REQUESTS_CA_BUNDLE`` of the user's own would hide ours (the bundle
        holds this machine's authorities too, so other https keeps working).
        """
        hosts = [word for word in os.environ.get("NO_PROXY", os.environ.get("no_proxy", "")).split(",") if word]
        local = ",".join(dict.fromkeys([*hosts, "127.0.0.1", "localhost"]))
        return {
            "AMLSTACK_HOME": str(self.home),
            "AMLSTACK_ARM_ENDPOINT": self.url,
            # Where azure-ai-ml and az find the cloud's other addresses; az reads a list, and later versions are none.
            "ARM_CLOUD_METADATA_URL": f"{self.url}/metadata/endpoints?api-version=2019-05-01",
            "REGISTRY_DISCOVERY_ENDPOINT_URL": f"{self.url}/",
            "AZURE_AUTHORITY_HOST": self.url,
            "AZURE_TENANT_ID": self.tenant,
            "AZURE_CLIENT_ID": self.client,
            "AZURE_SUBSCRIPTION_ID": self.subscription,
            "AZURE_FEDERATED_TOKEN_FILE": str(self.token),
            # The chain of DefaultAzureCredential is narrowed: a login of the user's own must never come here.
            "AZURE_TOKEN_CREDENTIALS": "WorkloadIdentityCredential",
            "AZURE_CLIENT_SECRET": "",
            "AZURE_USERNAME": "",
            "ARM_SUBSCRIPTION_ID": self.subscription,
            "ARM_TENANT_ID": self.tenant,
            "ARM_CLIENT_ID": self.client,
            # Nor what azure-native and our provider sign in with.
            **dict.fromkeys(FOREIGN, ""),
            "REQUESTS_CA_BUNDLE": str(self.bundle),
            "SSL_CERT_FILE": str(self.bundle),
            "NO_PROXY": local,
            "no_proxy": local,
        }

    def azure_names(self) -> dict[str, str]:
        """With :meth:`environ`: what leads Azure's own host names here, for clients that take no other address.

        Accounts as ``NAME.blob.core.windows.net``, vaults as ``NAME.vault.azure.net``, and Entra ID. Over this proxy
        nothing else can be reached.
        """
        return {"HTTPS_PROXY": self.proxy, "https_proxy": self.proxy}
