"""What a person writes into ``Pulumi.<stack>.yaml``, namespace ``amlstack:``.

The field descriptions are the reference documentation; docs/settings.md is made from them.
"""

from infra.settings.model.access import Principal, WorkspaceAccess
from infra.settings.model.azure_policy import AzurePolicy
from infra.settings.model.cluster import Cluster, ClusterIdentity, Nodes, Ssh
from infra.settings.model.data_asset import DataAsset
from infra.settings.model.datastore import Datastore
from infra.settings.model.environment import (
    CURATED_TAG,
    CUSTOM_TAG,
    CuratedEnvironment,
    CustomEnvironment,
    Environment,
)
from infra.settings.model.job_file import JobFile
from infra.settings.model.network import NetworkSettings, OutboundRule, VirtualNetwork
from infra.settings.model.stack import Include, Settings
from infra.settings.model.workspace import ResourceGroup, Workspace
from infra.settings.model.workspace.parts import (
    ApplicationInsights,
    ContainerRegistry,
    KeyVault,
    LogAnalytics,
    StorageAccount,
)
from infra.settings.model.workspace.security import (
    Diagnostics,
    Encryption,
    PublicNetwork,
    ServerlessCompute,
    WorkspaceIdentity,
)

__all__ = [
    "CURATED_TAG",
    "CUSTOM_TAG",
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
