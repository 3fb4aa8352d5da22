"""Private endpoints: what they lead to, and the private DNS zones in which their names are: facts with their sources.

Sources: learn.microsoft.com/azure/private-link/private-endpoint-dns and
learn.microsoft.com/azure/machine-learning/how-to-custom-dns (2026-11-22).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.names import Part


@dataclass(frozen=True, slots=True)
class Link:
    """One private endpoint.

    Attributes:
        part: Which part of the workspace it leads to.
        group: The sub-resource, in Azure's word.
        why: What fails without it in a network without public access.
    """

    part: Part
    group: str
    why: str


LINKS: Final[Mapping[str, Link]] = {
    "workspace": Link("workspace", "amlworkspace", "Nodes, the studio and `amlstack` itself talk to the workspace."),
    "blob": Link("storage", "blob", "Code, inputs, outputs and checkpoints are blobs."),
    "file": Link("storage", "file", "The workspace keeps notebooks and the files of compute instances on a share."),
    "dfs": Link("storage", "dfs", "Datastores of Data Lake Storage Gen2 go by this name."),
    "vault": Link("key_vault", "vault", "The workspace keeps secrets of connections and datastores there."),
    "registry": Link("registry", "registry", "Nodes pull the images of the workspace's environments."),
}
"""By the words of the settings."""

ZONES: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "public": {
        "workspace": ("privatelink.api.azureml.ms", "privatelink.notebooks.azure.net"),
        "blob": ("privatelink.blob.core.windows.net",),
        "file": ("privatelink.file.core.windows.net",),
        "dfs": ("privatelink.dfs.core.windows.net",),
        "vault": ("privatelink.vaultcore.azure.net",),
        "registry": ("privatelink.azurecr.io",),
    },
    "usgovernment": {
        "workspace": ("privatelink.api.ml.azure.us", "privatelink.notebooks.usgovcloudapi.net"),
        "blob": ("privatelink.blob.core.usgovcloudapi.net",),
        "file": ("privatelink.file.core.usgovcloudapi.net",),
        "dfs": ("privatelink.dfs.core.usgovcloudapi.net",),
        "vault": ("privatelink.vaultcore.usgovcloudapi.net",),
        "registry": ("privatelink.azurecr.us",),
    },
    "china": {
        "workspace": ("privatelink.api.ml.azure.cn", "privatelink.notebooks.chinacloudapi.cn"),
        "blob": ("privatelink.blob.core.chinacloudapi.cn",),
        "file": ("privatelink.file.core.chinacloudapi.cn",),
        "dfs": ("privatelink.dfs.core.chinacloudapi.cn",),
        "vault": ("privatelink.vaultcore.azure.cn",),
        "registry": ("privatelink.azurecr.cn",),
    },
}
"""Zones of each endpoint, by cloud, as ``azure-native:environment`` names it."""


def known_zones() -> frozenset[str]:
    """The names of all zones."""
    return frozenset(zone for cloud in ZONES.values() for zones in cloud.values() for zone in zones)
