"""What the service takes although azure-native's generated classes do not have it: data, each row with its source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SENT = "azure-ai-ml 1.35 puts it on the wire, beside the classes of its REST client"

OLDER = "a property of job outputs in other versions of the REST interface"

OLDER_POLICY = "a property of the policy in other versions of the REST interface"


@dataclass(frozen=True, slots=True)
class Allowance:
    """One property more on a class: its wire name, its type as a Python annotation, and where that is known from."""

    owner: str
    name: str
    hint: Any
    source: str


@dataclass(frozen=True, slots=True)
class Variant:
    """One class more in a discriminated union: the class it stands beside, its tag, its fields (none is required)."""

    beside: str
    tag: str
    value: str
    fields: tuple[tuple[str, Any], ...]
    source: str


LOOSE_MAPS = frozenset({"properties"})
"""Maps of strings in which whole numbers are taken as their digits: azure-ai-ml 1.35 sends ``hash_version`` as one."""

ANY_CASE = frozenset({"goal", "rule", "frequency", "weekDays"})
"""Properties whose words are taken in any letter case: azure-ai-ml 1.35 sends ``minimize``, ``sobol``, ``monday``."""

ID_MAPS = frozenset({"userAssignedIdentities"})
"""Lists of ids in azure-native's classes that are maps on the wire: from each id to an object."""

WIRE_NAMES = {
    ("IPRuleArgs", "iPAddressOrRange"): "value",
    ("VirtualNetworkRuleArgs", "virtualNetworkResourceId"): "id",
}
"""Class and property of azure-native → its name on the wire, where the two differ below the top of a body: the REST
specifications' ``x-ms-client-name``."""

_OUTPUTS = ("UriFolder", "UriFile", "MLTable", "MLFlowModel", "CustomModel", "TritonModel")

PROPERTIES: tuple[Allowance, ...] = (
    Allowance("QueueSettingsArgs", "priority", int, SENT),
    Allowance("JobResourceConfigurationArgs", "locations", Sequence[str], SENT),
    Allowance("JobResourceConfigurationArgs", "maxInstanceCount", int, SENT),
    Allowance("SweepJobArgs", "resources", Any, SENT),
    Allowance("RandomSamplingAlgorithmArgs", "logbase", Any, SENT),
    Allowance("TruncationSelectionPolicyArgs", "excludeFinishedJobs", bool, OLDER_POLICY),
    *(Allowance(f"{kind}Args", "parentJobName", str, SENT) for kind in ("CommandJob", "SweepJob", "PipelineJob")),
    *(Allowance(f"{kind}JobOutputArgs", "assetVersion", str, OLDER) for kind in _OUTPUTS),
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
    ),
)
