"""Types, as Pulumi names them, of what a stack registers and of the parents that group it."""

COMPUTE = "azure-native:machinelearningservices:Compute"
ROLE_ASSIGNMENT = "azure-native:authorization:RoleAssignment"
ENVIRONMENT = "amlstack:environments:Version"
COMPONENT = "amlstack:components:Version"
JOB = "amlstack:jobs:Job"
SCHEDULE = "amlstack:schedules:Schedule"

WORKSPACE_PARENT = "amlstack:infra:Workspace"
CLUSTERS = "amlstack:infra:Clusters"
JOBS = "amlstack:infra:Jobs"
SCHEDULES = "amlstack:infra:Schedules"

FORMER_CLUSTER = "amlstack:infra:RdmaCluster"
FORMER_ENVIRONMENT = "amlstack:infra:Environment"
FORMER_JOB = "amlstack:infra:Training"
FORMER_SCHEDULE = "amlstack:infra:Timetable"
"""Components that stacks of earlier versions have around each single resource."""
