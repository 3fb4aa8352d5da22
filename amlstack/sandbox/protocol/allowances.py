"""Keys that the service takes although azure-native's generated classes lack them: data, each row with its source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SENT = "azure-ai-ml 1.35 puts it on the wire, beside the classes of its REST client"

OLDER = "a property of job outputs in other versions of the REST interface"

ANSWERED = "Azure was recorded to answer it of every version (azure-sdk-assets, test_component, 2026-03-27)"

OF_WORKSPACES = "Azure was recorded to answer it of every workspace (azure-powershell, Get-AzMLWorkspace, 2025-11-04)"

OLDER_POLICY = "a property of the policy in other versions of the REST interface"


SINCE_2022_12 = frozenset(
    {
        *("2022-12-01-preview", "2023-02-01-preview", "2023-04-01-preview", "2023-06-01-preview"),
        *("2023-08-01-preview", "2024-01-01-preview", "2024-04-01-preview"),
    }
)
"""The api-versions in whose models (azure-ai-ml 1.30, ``_restclient``) a first group of these properties is; none of
the others there has them: 2022-10-01, 2023-04-01, 2023-10-01, 2024-07-01-preview, 2024-10-01-preview."""
SINCE_2023_02 = SINCE_2022_12 - {"2022-12-01-preview"}
SINCE_2023_04 = SINCE_2023_02 - {"2023-02-01-preview"}
SINCE_2023_08 = SINCE_2023_04 - {"2023-04-01-preview", "2023-06-01-preview"}
COMMANDS = frozenset({"2025-01-01-preview"})
"""The api-version by which azure-ai-ml 1.35 sends command jobs, these properties among the rest."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """One property more on a class.

    Attributes:
        owner: The class.
        name: Its wire name.
        hint: Its type as a Python annotation.
        source: Where that is known from.
        versions: The api-versions that know it; None where that is not known, and all take it.
    """

    owner: str
    name: str
    hint: Any
    source: str
    versions: frozenset[str] | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    """One class more in a discriminated union: the class it stands beside, its tag, its fields (none is required)."""

    beside: str
    tag: str
    value: str
    fields: tuple[tuple[str, Any], ...]
    source: str
    versions: frozenset[str] | None = None


LOOSE_MAPS = frozenset({"properties"})
"""Maps of strings in which whole numbers are taken as their digits: azure-ai-ml 1.35 sends ``hash_version`` as one."""

ID_MAPS = frozenset({"userAssignedIdentities"})
"""Lists of ids in azure-native's classes that are maps on the wire: from each id to an object."""

WIRE_NAMES = {("IPRuleArgs", "iPAddressOrRange"): "value", ("VirtualNetworkRuleArgs", "virtualNetworkResourceId"): "id"}
"""Class and property of azure-native → its name on the wire, where the two differ below the top of a body: the REST
specifications' ``x-ms-client-name``."""

_OUTPUTS = ("UriFolder", "UriFile", "MLTable", "MLFlowModel", "CustomModel", "TritonModel")

_OF_INSTANCES = ("enableOSPatching", "enableRootAccess", "releaseQuotaOnStop")

_DATA = ("UriFolderDataVersion", "UriFileDataVersion", "MLTableData")

ANSWERED_ONLY = {
    "AmlComputeArgs": frozenset({"provisioningWarnings"}),
    "AmlComputePropertiesArgs": frozenset({"enableBatchPrivateLink"}),
    "WorkspaceArgs": frozenset(
        {
            *("allowRoleAssignmentOnRG", "softDeleteEnabled", "linkedModelInventoryArmId", "creationTime"),
            *("EnableSoftwareBillOfMaterials", "sdkTelemetryAppInsightsKey", "sasGetterUri"),
        }
    ),
}
"""By class, what Azure was recorded to answer although azure-native's classes lack it (azure-powershell,
New-AzMLWorkspaceCompute and Get-AzMLWorkspace, 2025-11-04): a PUT of an answer may have it."""

PROPERTIES: tuple[Allowance, ...] = (
    Allowance("QueueSettingsArgs", "priority", int, SENT, SINCE_2023_02 | COMMANDS),
    Allowance("JobResourceConfigurationArgs", "locations", Sequence[str], SENT, SINCE_2023_02 | COMMANDS),
    Allowance("JobResourceConfigurationArgs", "maxInstanceCount", int, SENT, SINCE_2023_04 | COMMANDS),
    Allowance("SweepJobArgs", "resources", Any, SENT, SINCE_2023_08),
    Allowance("RandomSamplingAlgorithmArgs", "logbase", Any, SENT, SINCE_2022_12),
    Allowance("TruncationSelectionPolicyArgs", "excludeFinishedJobs", bool, OLDER_POLICY),
    *(Allowance(f"{kind}Args", "parentJobName", str, SENT) for kind in ("CommandJob", "SweepJob", "PipelineJob")),
    *(Allowance("ComputeInstancePropertiesArgs", name, Any, SENT) for name in _OF_INSTANCES),
    Allowance("WorkspaceArgs", "ipAllowlist", Sequence[str], OF_WORKSPACES),
    Allowance("WorkspaceArgs", "networkAcls", Any, OF_WORKSPACES),
    Allowance("ComponentVersionPropertiesArgs", "stage", str, ANSWERED),
    *(Allowance(f"{kind}Args", "autoDeleteSetting", Any, SENT, SINCE_2023_04) for kind in _DATA),
    *(Allowance(f"{kind}JobOutputArgs", "assetVersion", str, OLDER, SINCE_2022_12 | COMMANDS) for kind in _OUTPUTS),
)

VARIANTS: tuple[Variant, ...] = (
    Variant(
        "PyTorchArgs",
        "distributionType",
        "Ray",
        (
            ("address", str),
            ("dashboardPort", int),
            ("headNodeAdditionalArgs", str),
            ("includeDashboard", bool),
            ("port", int),
            ("workerNodeAdditionalArgs", str),
        ),
        SENT,
        SINCE_2023_04 | COMMANDS,
    ),
)
