"""Stack settings: models, and their reading with findings instead of tracebacks. Needs no Pulumi."""

from infra.settings.model.cluster import Cluster, ClusterIdentity, Nodes
from infra.settings.model.stack import (
    AzurePolicy,
    CuratedEnvironment,
    CustomEnvironment,
    DataAsset,
    Datastore,
    JobFile,
    Settings,
)
from infra.settings.model.workspace import Principal, Workspace, WorkspaceAccess
from infra.settings.reading import Reading, from_engine, parse, read_file
from infra.settings.repair import dotted
from infra.settings.stackfile import StackFile
