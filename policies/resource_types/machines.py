"""Resources beside training clusters and jobs that ask for nodes of a VM size, and where they name it.

No job of Azure Machine Learning spans their nodes, so they are judged by what is true of a size anywhere: whether Azure
still gives out nodes of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from policies.evaluation.facts import Unknown, dig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policies.evaluation.facts import Path

EACH = "*"
"""In a path: every element of a list, every value of a mapping."""


@dataclass(frozen=True, slots=True)
class Machines:
    """Where a type names its sizes.

    Attributes:
        arm: Its type in ARM templates, in small letters.
        paths: Where, in azure-native's properties.
        inner: Whether azure-native leaves out the ``properties`` that ARM has around them.
    """

    arm: str
    paths: tuple[Path, ...]
    inner: bool = True


def _at(*dotted: str) -> tuple[Path, ...]:
    return tuple(tuple(one.split(".")) for one in dotted)


_MANUAL = "virtualMachinesProfile.scale.manual.*.size"
MACHINES: Mapping[tuple[str, str], Machines] = {
    ("azurefleet", "Fleet"): Machines("microsoft.azurefleet/fleets", _at("vmSizesProfile.*.name")),
    ("batch", "Pool"): Machines("microsoft.batch/batchaccounts/pools", _at("vmSize")),
    ("compute", "CapacityReservation"): Machines(
        "microsoft.compute/capacityreservationgroups/capacityreservations", _at("sku.name")
    ),
    ("compute", "VirtualMachine"): Machines("microsoft.compute/virtualmachines", _at("hardwareProfile.vmSize")),
    ("compute", "VirtualMachineScaleSet"): Machines(
        "microsoft.compute/virtualmachinescalesets", _at("sku.name", "skuProfile.vmSizes.*.name")
    ),
    ("compute", "VirtualMachineScaleSetVM"): Machines(
        "microsoft.compute/virtualmachinescalesets/virtualmachines", _at("hardwareProfile.vmSize")
    ),
    ("computebulkactions", "BulkAction"): Machines(
        "microsoft.computebulkactions/locations/launchbulkinstancesoperations",
        _at("properties.vmSizesProfile.*.name", "properties.vmAttributes.allowedVMSizes.*"),
        inner=False,
    ),
    ("containerservice", "AgentPool"): Machines(
        "microsoft.containerservice/managedclusters/agentpools", _at("vmSize", _MANUAL)
    ),
    ("containerservice", "Fleet"): Machines("microsoft.containerservice/fleets", _at("hubProfile.agentProfile.vmSize")),
    ("containerservice", "ManagedCluster"): Machines(
        "microsoft.containerservice/managedclusters",
        _at("agentPoolProfiles.*.vmSize", f"agentPoolProfiles.*.{_MANUAL}"),
    ),
    ("datafactory", "IntegrationRuntime"): Machines(
        "microsoft.datafactory/factories/integrationruntimes",
        _at("properties.computeProperties.nodeSize", "properties.typeProperties.computeProperties.nodeSize"),
        inner=False,
    ),
    ("datafactory", "LinkedService"): Machines(
        "microsoft.datafactory/factories/linkedservices",
        tuple(
            path
            for name in ("newClusterNodeType", "newClusterDriverNodeType", "headNodeSize", "dataNodeSize",
                         "zookeeperNodeSize")
            for path in (("properties", name), ("properties", "typeProperties", name))
        ),
        inner=False,
    ),
    ("devtestlab", "Formula"): Machines("microsoft.devtestlab/labs/formulas", _at("formulaContent.size")),
    ("devtestlab", "VirtualMachine"): Machines("microsoft.devtestlab/labs/virtualmachines", _at("size")),
    ("discovery", "NodePool"): Machines(
        "microsoft.discovery/supercomputers/nodepools", _at("properties.vmSize"), inner=False
    ),
    ("hdinsight", "Application"): Machines(
        "microsoft.hdinsight/clusters/applications",
        _at("properties.computeProfile.roles.*.hardwareProfile.vmSize"),
        inner=False,
    ),
    ("hdinsight", "Cluster"): Machines(
        "microsoft.hdinsight/clusters", _at("properties.computeProfile.roles.*.hardwareProfile.vmSize"), inner=False
    ),
    ("machinelearningservices", "FeaturesetVersion"): Machines(
        "microsoft.machinelearningservices/workspaces/featuresets/versions",
        _at(
            "properties.materializationSettings.resource.instanceType",
            "featuresetVersionProperties.materializationSettings.resource.instanceType",
        ),
        inner=False,
    ),
    ("machinelearningservices", "InferenceGroup"): Machines(
        "microsoft.machinelearningservices/workspaces/inferencepools/groups",
        _at("properties.nodeSkuType", "inferenceGroupProperties.nodeSkuType"),
        inner=False,
    ),
    ("machinelearningservices", "Schedule"): Machines(
        "microsoft.machinelearningservices/workspaces/schedules",
        tuple(
            (*before, "action", "monitorDefinition", "computeConfiguration", "instanceType")
            for before in (("properties",), ("scheduleProperties",))
        ),
        inner=False,
    ),
    ("machinelearningservices", "OnlineDeployment"): Machines(
        "microsoft.machinelearningservices/workspaces/onlineendpoints/deployments",
        _at("properties.instanceType", "onlineDeploymentProperties.instanceType"),
        inner=False,
    ),
    ("network", "InterconnectGroup"): Machines("microsoft.network/interconnectgroups", _at("subgroupProfile.vmSize")),
    ("redhatopenshift", "OpenShiftCluster"): Machines(
        "microsoft.redhatopenshift/openshiftclusters", _at("masterProfile.vmSize", "workerProfiles.*.vmSize")
    ),
    ("servicefabric", "NodeType"): Machines("microsoft.servicefabric/managedclusters/nodetypes", _at("vmSize")),
    ("hybridnetwork", "VendorSkus"): Machines(
        "microsoft.hybridnetwork/vendors/vendorskus",
        _at("networkFunctionTemplate.networkFunctionRoleConfigurations.*.virtualMachineSize"),
    ),
    ("synapse", "IntegrationRuntime"): Machines(
        "microsoft.synapse/workspaces/integrationruntimes",
        _at("properties.computeProperties.nodeSize", "properties.typeProperties.computeProperties.nodeSize"),
        inner=False,
    ),
    ("workloads", "SapVirtualInstance"): Machines(
        "microsoft.workloads/sapvirtualinstances",
        _at(
            *(
                f"configuration.infrastructureConfiguration.{tier}virtualMachineConfiguration.vmSize"
                for tier in ("", "applicationServer.", "centralServer.", "databaseServer.")
            )
        ),
    ),
    ("virtualmachineimages", "VirtualMachineImageTemplate"): Machines(
        "microsoft.virtualmachineimages/imagetemplates", _at("vmProfile.vmSize", "vmProfile.vnetConfig.proxyVmSize")
    ),
}  # fmt: skip
"""azure-native's types by module and type."""

OF_ARM: Mapping[str, Machines] = {one.arm: one for one in MACHINES.values()}

COMPUTES: Mapping[str, str] = {
    "computeinstance": "vmSize",
    "aks": "agentVmSize",
    "virtualmachine": "virtualMachineSize",
}
"""Kinds of computes of Azure ML beside training clusters, in small letters, and the property that names their size."""

_ROLES = "roles.*.vmSize"
_SAP = "virtualMachineConfiguration.virtualMachineSize"
NO_MACHINES = frozenset({"kubernetes", "datafactory", "hdinsight", "databricks", "datalakeanalytics", "synapsespark"})
"""Kinds of computes that name no size; one of another name is read as a training cluster."""

TERRAFORM: tuple[tuple[str, str, tuple[Path, ...]], ...] = (
    ("batch/pool:Pool", "batch_pool", _at("vmSize")),
    ("compute/capacityReservation:CapacityReservation", "capacity_reservation", _at("sku.name")),
    ("compute/linuxVirtualMachine:LinuxVirtualMachine", "linux_virtual_machine", _at("size")),
    ("compute/linuxVirtualMachineScaleSet:LinuxVirtualMachineScaleSet", "linux_virtual_machine_scale_set", _at("sku")),
    ("compute/orchestratedVirtualMachineScaleSet:OrchestratedVirtualMachineScaleSet",
     "orchestrated_virtual_machine_scale_set",
     _at("skuName", "skuProfile.vmSizes.*", "skuProfile.virtualMachineSizes.*.name")),
    ("compute/scaleSet:ScaleSet", "virtual_machine_scale_set", _at("sku.name")),
    ("compute/virtualMachine:VirtualMachine", "virtual_machine", _at("vmSize")),
    ("compute/windowsVirtualMachine:WindowsVirtualMachine", "windows_virtual_machine", _at("size")),
    ("compute/windowsVirtualMachineScaleSet:WindowsVirtualMachineScaleSet", "windows_virtual_machine_scale_set",
     _at("sku")),
    ("containerservice/kubernetesCluster:KubernetesCluster", "kubernetes_cluster", _at("defaultNodePool.vmSize")),
    ("containerservice/kubernetesClusterNodePool:KubernetesClusterNodePool", "kubernetes_cluster_node_pool",
     _at("vmSize")),
    ("datafactory/integrationRuntimeSsis:IntegrationRuntimeSsis", "data_factory_integration_runtime_azure_ssis",
     _at("nodeSize")),
    ("datafactory/linkedServiceAzureDatabricks:LinkedServiceAzureDatabricks",
     "data_factory_linked_service_azure_databricks",
     _at("newClusterConfig.nodeType", "newClusterConfig.driverNodeType")),
    ("devcenter/managedDevOpsPool:ManagedDevOpsPool", "managed_devops_pool",
     _at("virtualMachineScaleSetFabric.skuName")),
    ("devtest/linuxVirtualMachine:LinuxVirtualMachine", "dev_test_linux_virtual_machine", _at("size")),
    ("devtest/windowsVirtualMachine:WindowsVirtualMachine", "dev_test_windows_virtual_machine", _at("size")),
    ("hdinsight/hBaseCluster:HBaseCluster", "hdinsight_hbase_cluster", _at(_ROLES)),
    ("hdinsight/hadoopCluster:HadoopCluster", "hdinsight_hadoop_cluster", _at(_ROLES)),
    ("hdinsight/interactiveQueryCluster:InteractiveQueryCluster", "hdinsight_interactive_query_cluster", _at(_ROLES)),
    ("hdinsight/kafkaCluster:KafkaCluster", "hdinsight_kafka_cluster", _at(_ROLES)),
    ("hdinsight/sparkCluster:SparkCluster", "hdinsight_spark_cluster", _at(_ROLES)),
    ("machinelearning/computeCluster:ComputeCluster", "machine_learning_compute_cluster", ()),
    ("machinelearning/computeInstance:ComputeInstance", "machine_learning_compute_instance", _at("virtualMachineSize")),
    ("redhatopenshift/cluster:Cluster", "redhat_openshift_cluster", _at("mainProfile.vmSize", "workerProfile.vmSize")),
    ("servicefabric/managedCluster:ManagedCluster", "service_fabric_managed_cluster", _at("nodeTypes.*.vmSize")),
    ("workloadssap/singleNodeVirtualInstance:SingleNodeVirtualInstance", "workloads_sap_single_node_virtual_instance",
     _at(f"singleServerConfiguration.{_SAP}")),
    ("workloadssap/threeTierVirtualInstance:ThreeTierVirtualInstance", "workloads_sap_three_tier_virtual_instance",
     _at(*(f"threeTierConfiguration.{tier}Configuration.{_SAP}"
           for tier in ("applicationServer", "centralServer", "databaseServer")))),
)  # fmt: skip
"""Types of Terraform's provider azurerm: the classic Azure provider's token, the provider's own name, where sizes are.

A training cluster has a reader of its own, and no place here. Source: pulumi-azure 6.40.1 and the documentation of the
provider hashicorp/azurerm, read on 2026-11-24.
"""

CLASSIC: Mapping[str, tuple[Path, ...]] = {f"azure:{token}": paths for token, _, paths in TERRAFORM}
"""By the classic provider's type token."""

AZURERM: Mapping[str, tuple[Path, ...]] = {name.replace("_", ""): paths for _, name, paths in TERRAFORM}
"""By the type's name in small letters, as a bridge made anew from Terraform's provider writes it."""


def places(props: Any, path: Path) -> Iterator[Path]:
    """The paths at which something stands, each `EACH` replaced by what is there; what is not known ends a path.

    Args:
        props: A resource's properties.
        path: With `EACH` in it.
    """
    for end in range(1, len(path)):
        # Terraform's blocks are lists, also where there is one of a kind.
        if path[end] == EACH or EACH in path[:end] or path[end].isdigit():
            continue
        if isinstance(blocks := dig(props, *path[:end]), list):
            for index in range(len(blocks)):
                yield from places(props, (*path[:end], str(index), *path[end:]))
            return
    if EACH not in path:
        if dig(props, *path) is not None:
            yield path
        return
    at = path.index(EACH)
    before, after = path[:at], path[at + 1 :]
    listed = dig(props, *before)
    if isinstance(listed, Unknown):
        yield before
    elif isinstance(listed, list | Mapping):
        for key in listed if isinstance(listed, Mapping) else map(str, range(len(listed))):
            yield from places(props, (*before, str(key), *after))
