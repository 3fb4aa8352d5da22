"""Types, as Pulumi names them, of what a stack registers and of the parents that group it. Needs no Pulumi."""

RESOURCE_GROUP = "azure-native:resources:ResourceGroup"
STORAGE_ACCOUNT = "azure-native:storage:StorageAccount"
KEY_VAULT = "azure-native:keyvault:Vault"
LOGS = "azure-native:operationalinsights:Workspace"
INSIGHTS = "azure-native:applicationinsights:Component"
REGISTRY = "azure-native:containerregistry:Registry"
WORKSPACE = "azure-native:machinelearningservices:Workspace"
SECURITY_GROUP = "azure-native:network:NetworkSecurityGroup"
VIRTUAL_NETWORK = "azure-native:network:VirtualNetwork"
PRIVATE_ENDPOINT = "azure-native:network:PrivateEndpoint"
ZONE_GROUP = "azure-native:network:PrivateDnsZoneGroup"
PRIVATE_ZONE = "azure-native:privatedns:PrivateZone"
NETWORK_LINK = "azure-native:privatedns:VirtualNetworkLink"
IDENTITY = "azure-native:managedidentity:UserAssignedIdentity"
COMPUTE = "azure-native:machinelearningservices:Compute"
DATASTORE = "azure-native:machinelearningservices:Datastore"
POLICY_DEFINITION = "azure-native:authorization:PolicyDefinition"
POLICY_SET_DEFINITION = "azure-native:authorization:PolicySetDefinition"
POLICY_ASSIGNMENT = "azure-native:authorization:PolicyAssignment"
ROLE_ASSIGNMENT = "azure-native:authorization:RoleAssignment"
BLOB_CONTAINER = "azure-native:storage:BlobContainer"
FILE_SHARE = "azure-native:storage:FileShare"
HOLDS_DATA = (BLOB_CONTAINER, FILE_SHARE)
"""Of datastores: what jobs write to."""
BLOB_SERVICE = "azure-native:storage:BlobServiceProperties"
KEY = "azure-native:keyvault:Key"
DIAGNOSTIC_SETTING = "azure-native:monitor:DiagnosticSetting"
LOCK = "azure-native:authorization:ManagementLockByScope"
ENVIRONMENT = "amlstack:environments:Version"
COMPONENT = "amlstack:components:Version"
JOB = "amlstack:jobs:Job"
SCHEDULE = "amlstack:schedules:Schedule"

PROVIDERS = {
    "applicationinsights": "Microsoft.Insights",
    "containerregistry": "Microsoft.ContainerRegistry",
    "keyvault": "Microsoft.KeyVault",
    "machinelearningservices": "Microsoft.MachineLearningServices",
    "managedidentity": "Microsoft.ManagedIdentity",
    "monitor": "Microsoft.Insights",
    "network": "Microsoft.Network",
    "operationalinsights": "Microsoft.OperationalInsights",
    "privatedns": "Microsoft.Network",
    "storage": "Microsoft.Storage",
}
"""Module of a type → the resource provider that a subscription must have registered; every subscription has those of
the others. The network that Azure ML manages (``amlstack:network:…``) needs Microsoft.Network too
(learn.microsoft.com/azure/machine-learning/how-to-managed-network, 2026-11-24)."""

WORKSPACE_PARENT = "amlstack:infra:Workspace"
CLUSTERS = "amlstack:infra:Clusters"
"""Parent of the clusters, and of the roles of clusters with an identity of their own."""
JOBS = "amlstack:infra:Jobs"
"""Parent of jobs, sweeps and pipelines, and of the component versions that they name."""
SCHEDULES = "amlstack:infra:Schedules"
"""Parent of schedules, and of the component versions that they name."""
DATA = "amlstack:infra:Data"
"""Parent of datastores with the roles on their accounts, and of data assets."""
ACCESS = "amlstack:infra:Access"
"""Parent of the roles of people, groups and applications on the workspace."""
