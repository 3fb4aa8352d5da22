"""Azure's clouds: where each has its resource manager and its sign-in, and what its tokens are for.

The sources are azure-core's and azure-ai-ml's own tables (azure-ai-ml 1.35 ``_azure_environments.py``, azure-identity's
``AzureAuthorityHosts``), read on 2026-11-22.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from amlstack.provider.arm.answers import ArmError

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    """

    name: str
    endpoint: str
    authority: str
    ml_audience: str
    studio: str


PUBLIC: Final = Cloud(
    "public",
    "https://management.azure.com",
    "login.microsoftonline.com",
    "https://ml.azure.com",
    "https://ml.azure.com",
)
CLOUDS: Final = (
    PUBLIC,
    Cloud(
        "usgovernment", "https://management.usgovcloudapi.net", "login.microsoftonline.us", "https://ml.azure.us",
        "https://ml.azure.us",
    ),
    Cloud(
        "china", "https://management.chinacloudapi.cn", "login.chinacloudapi.cn", "https://ml.azure.cn",
        "https://studio.ml.azure.cn",
    ),
)  # fmt: skip
PUBLIC_ENDPOINT: Final = PUBLIC.endpoint
_OTHER_NAMES: Final = {
    "azurecloud": "public",
    "azurepublic": "public",
    "usgov": "usgovernment",
    "azureusgovernment": "usgovernment",
    "azureusgovernmentcloud": "usgovernment",
    "usgovernmentl4": "usgovernment",
    "azurechinacloud": "china",
}
"""The names that azure-native and the Azure CLI use too."""


def named(name: str) -> Cloud:
    """The cloud of that name, in any letter case.

    Raises:
        ArmError: There is none.
    """
    wanted = _OTHER_NAMES.get(name.casefold(), name.casefold())
    found = next((cloud for cloud in CLOUDS if cloud.name == wanted), None)
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


def of_endpoint(arm_endpoint: str, cloud: Cloud = PUBLIC) -> Cloud:
    """The cloud that an endpoint belongs to; ``cloud`` when it is none of Azure's own."""
    return next((one for one in CLOUDS if one.endpoint == arm_endpoint.rstrip("/").casefold()), cloud)
