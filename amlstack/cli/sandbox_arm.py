"""The one ARM client, signed in to a sandbox. Without azure-identity, which takes a quarter of a second to load."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from amlstack.provider.arm import ArmClient, ArmError, Response
from amlstack.provider.arm.sign_in import FederatedCredential

if TYPE_CHECKING:
    from amlstack.sandbox.server.daemon import Endpoint


class SandboxArm(ArmClient):
    """Asks one sandbox and nothing else: its tokens go nowhere else."""

    def __init__(self, endpoint: Endpoint) -> None:
        ca = str(endpoint.ca)
        credential = FederatedCredential(endpoint.url, endpoint.tenant, endpoint.client, endpoint.token, ca)
        super().__init__(endpoint.url, credential, ca=ca)

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
