"""Stack settings: models, and their reading with findings instead of tracebacks. Needs no Pulumi."""

from infra.settings.model import (
    AzurePolicy,
    Cluster,
    ClusterIdentity,
    CuratedEnvironment,
    CustomEnvironment,
    DataAsset,
    Datastore,
    JobFile,
    Nodes,
    Principal,
    Settings,
    Workspace,
    WorkspaceAccess,
)
from infra.settings.reading import Reading, from_engine, parse, read_file, read_stack_file
from infra.settings.repair import dotted
from infra.settings.stackfile import NAMESPACE, StackFile

__all__ = [
    "NAMESPACE",
    "AzurePolicy",
    "Cluster",
    "ClusterIdentity",
    "CuratedEnvironment",
    "CustomEnvironment",
    "DataAsset",
    "Datastore",
    "JobFile",
    "Nodes",
    "Principal",
    "Reading",
    "Settings",
    "StackFile",
    "Workspace",
    "WorkspaceAccess",
    "dotted",
    "from_engine",
    "parse",
    "read_file",
    "read_stack_file",
]
