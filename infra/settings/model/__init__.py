"""Settings in ``Pulumi.<stack>.yaml``, namespace ``amlstack:``.

The field descriptions are the reference documentation; docs/settings.md is made from them.
"""

from infra.settings.model.cluster import Cluster, ClusterIdentity, Nodes, Ssh
from infra.settings.model.jobs import (
    CuratedEnvironment,
    CustomEnvironment,
    DataAsset,
    Datastore,
    Environment,
    JobFile,
)
from infra.settings.model.network import NetworkSettings, OutboundRule, VirtualNetwork
from infra.settings.model.stack import AzurePolicy, Include, Settings
from infra.settings.model.workspace import (
    ApplicationInsights,
    ContainerRegistry,
    Diagnostics,
    Encryption,
    KeyVault,
    LogAnalytics,
    Principal,
    PublicNetwork,
    ResourceGroup,
    ServerlessCompute,
    StorageAccount,
    Workspace,
    WorkspaceAccess,
    WorkspaceIdentity,
)

__all__ = [
    "ApplicationInsights",
    "AzurePolicy",
    "Cluster",
    "ClusterIdentity",
    "ContainerRegistry",
    "CuratedEnvironment",
    "CustomEnvironment",
    "DataAsset",
    "Datastore",
    "Diagnostics",
    "Encryption",
    "Environment",
    "Include",
    "JobFile",
    "KeyVault",
    "LogAnalytics",
    "NetworkSettings",
    "Nodes",
    "OutboundRule",
    "Principal",
    "PublicNetwork",
    "ResourceGroup",
    "ServerlessCompute",
    "Settings",
    "Ssh",
    "StorageAccount",
    "VirtualNetwork",
    "Workspace",
    "WorkspaceAccess",
    "WorkspaceIdentity",
]
