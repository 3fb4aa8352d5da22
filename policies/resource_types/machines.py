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

CLASSIC: Mapping[str, tuple[Path, ...]] = {
    "azure:batch/pool:Pool": _at("vmSize"),
    "azure:compute/linuxVirtualMachine:LinuxVirtualMachine": _at("size"),
    "azure:compute/linuxVirtualMachineScaleSet:LinuxVirtualMachineScaleSet": _at("sku"),
    "azure:compute/orchestratedVirtualMachineScaleSet:OrchestratedVirtualMachineScaleSet": _at("skuName"),
    "azure:compute/virtualMachine:VirtualMachine": _at("vmSize"),
    "azure:compute/windowsVirtualMachine:WindowsVirtualMachine": _at("size"),
    "azure:compute/windowsVirtualMachineScaleSet:WindowsVirtualMachineScaleSet": _at("sku"),
    "azure:containerservice/kubernetesCluster:KubernetesCluster": _at("defaultNodePool.vmSize"),
    "azure:containerservice/kubernetesClusterNodePool:KubernetesClusterNodePool": _at("vmSize"),
    "azure:machinelearning/computeInstance:ComputeInstance": _at("virtualMachineSize"),
}
"""Types of the classic Azure provider."""


def places(props: Any, path: Path) -> Iterator[Path]:
    """The paths at which something stands, each `EACH` replaced by what is there; what is not known ends a path.

    Args:
        props: A resource's properties.
        path: With `EACH` in it.
    """
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
