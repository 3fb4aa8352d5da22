"""Why the pack leaves what else in azure-native is named like a VM size or a template; a test holds the list complete.

Keys are patterns over ``module:Type path``, the path in the wire's words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_PREMISES = "machines on the customer's own premises, in sizes of their own"
_BARE = "bare metal in sizes of its own"
_SERVICE = "nodes of a managed service, in names of the service's own"
_NO_SIZE = "no size: it describes another resource"
_KIND = "names a kind of replication or migration, no size"

SIZES: Mapping[str, str] = {
    "awsconnector:*": "mirrors what runs in AWS",
    "azurefleet:Fleet *vmAttributes.*": "bounds within which Azure chooses sizes",
    "azurefleet:Fleet vmSizesProfile": "the list around the sizes, which are judged",
    "azurelargeinstance:*": _BARE,
    "azurestackhci:*": _PREMISES,
    "baremetalinfrastructure:*": _BARE,
    "compute:CapacityReservation sku": "the object around the size, which is judged",
    "compute:ProximityPlacementGroup intent.vmSizes": "an intent: the machines that are placed are judged",
    "compute:VirtualMachineScaleSet skuProfile.vmSizes": "the list around the sizes, which are judged",
    "computebulkactions:BulkAction properties.vmAttributes.excludedVmSizes": "names what is not used",
    "computebulkactions:BulkAction properties.vmSizesProfile": "the list around the sizes, which are judged",
    "containerservice:*.virtualMachineNodesStatus.size": "what Azure reports, no input that counts",
    "containerservice:* virtualMachineNodesStatus.size": "what Azure reports, no input that counts",
    "cosmosdb:*": _SERVICE,
    "datareplication:*": _KIND,
    "dbformysql:Server sku.name": _SERVICE,
    "hdinsight:Cluster properties.computeIsolationProperties.hostSku": "hosts that isolate the nodes, which are judged",
    "iotoperations:*": "nodes of a graph of data, no machines",
    "machinelearningservices:BatchDeployment properties.resources.instanceType": "names a type of its compute",
    "machinelearningservices:Compute properties.properties.defaultInstanceType": "a name of the cluster's own",
    "machinelearningservices:Compute properties.properties.instanceTypes": "a name of the cluster's own",
    "machinelearningservices:Compute properties.properties.nodeSize": "a size of Synapse Spark (Small, Medium, Large)",
    "migrate:*": "assesses or moves machines; those that are created are judged",
    "networkcloud:*": _PREMISES,
    "recoveryservices:*": "recovers machines that exist; what they were created with was judged",
    "synapse:BigDataPool nodeSize": "a size of Synapse Spark (Small, Medium, Large)",
    "*vmSizeProperties*": _NO_SIZE,
    "web:AppServiceEnvironment multiSize": _SERVICE,
}
"""Properties that are named like a VM size."""

TEMPLATES: Mapping[str, str] = {
    "awsconnector:*": "a template of AWS",
    "app:*": "a template of containers",
    "appplatform:*": "a template of containers",
    "desktopvirtualization:HostPool vmTemplate": "a description for the portal; the machines are deployed by others",
    "hybridnetwork:*.networkFunctionTemplate": "no ARM template: what a network function consists of",
    "hybridnetwork:VendorSkus networkFunctionTemplate": "no ARM template; its sizes are judged",
    "iotcentral:App template": "names a template of the service",
}
"""Properties that are named like a template and hold no ARM template."""

TERRAFORM: Mapping[str, str] = {
    "appplatform:*": "no machines: bounds of a cache",
    "appservice:Plan sku.size": _SERVICE,
    "avs:*": _SERVICE,
    "cognitive:Deployment sku.size": _SERVICE,
    "containerapp:*": "a template of containers",
    "containerservice:RegistryTask logTemplate": "a template of a log's name",
    "cosmosdb:*": _SERVICE,
    "datafactory:TriggerTumblingWindow *": "no size of a machine",
    "desktopvirtualization:HostPool vmTemplate": "a description for the portal; the machines are deployed by others",
    "hdinsight:* computeIsolation.hostSku": "hosts that isolate the nodes, which are judged",
    "iot:*": "a template of keys",
    "iotcentral:Application template": "names a template of the service",
    "postgresql:*": _SERVICE,
    "proximity:PlacementGroup allowedVmSizes": "an intent: the machines that are placed are judged",
    "servicefabric:Cluster nodeTypes": "nodes that lie in scale sets, which are judged",
    "siterecovery:*": "recovers machines that exist; what they were created with was judged",
    "storage:*": "the size of a file",
    "synapse:SparkPool nodeSize": "a size of Synapse Spark (Small, Medium, Large)",
}
"""Properties of Terraform's provider that are named like a VM size or a template, by the classic provider's names."""
