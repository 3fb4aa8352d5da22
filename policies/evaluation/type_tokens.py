"""Type tokens of the resources that rules speak about: azure-native's, the classic provider's and our own."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from policies.evaluation.compute_subjects import MACHINES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.evaluation.facts import Path

_AZURE_NATIVE = re.compile(
    r"(?:azure-native(?:_[a-z]+_v\w+)?|azure-nextgen):(?P<module>\w+)(?:/(?:v\w+|latest))?:(?P<type>\w+)"
)
AZAPI = re.compile(r"azapi:(?:[\w/]+:)?\w*(?:Resource|ResourceAction)")
"""azapi's resources, bridged from Terraform's provider, in whatever module the bridge puts them."""
_TERRAFORM = re.compile(
    r"azure:machinelearning/compute(?:Cluster|Instance):Compute(?P<classic>Cluster|Instance)|"
    r"azurerm:(?:[\w/]+:)?MachineLearningCompute(?P<bridged>Cluster|Instance)",
    re.IGNORECASE,
)
OWN_COMPONENT = "amlstack:components:Version"
OWN_ENVIRONMENT = "amlstack:environments:Version"
OWN_JOBS: Mapping[str, Path] = {
    "amlstack:jobs:Job": ("body", "properties"),
    "amlstack:schedules:Schedule": ("body", "properties", "action", "jobDefinition"),
}
"""Resources of our own that hold a job, and where."""

_OURS = frozenset({*OWN_JOBS, OWN_ENVIRONMENT, OWN_COMPONENT})
_JUDGED = {
    *(("machinelearningservices", kind) for kind in MACHINES),
    ("machinelearningservices", "Compute"),
    ("machinelearningservices", "MachineLearningCompute"),
    ("machinelearningservices", "Job"),
    ("machinelearningservices", "EnvironmentVersion"),
    ("machinelearningservices", "ComponentVersion"),
    ("blueprint", "Assignment"),
    ("solutions", "Application"),
    ("resources", "Resource"),
    ("resources", "ResourceGroup"),
    ("network", "VirtualNetwork"),
}
_TEMPLATES = re.compile(
    r"(?:DeploymentAt|DeploymentStack|TemplateSpecVersion|TemplateArtifact|PolicyDefinition)\w*|"
    r"ApplicationDefinition|ContentTemplate|VendorSkus|ManagementConfiguration"
)
"""Types of azure-native that hold a template, in whatever module; beside ``resources:Deployment``."""
CLASSIC_TEMPLATE = re.compile(
    r"(?:azure|azurerm):(?:[\w/]+:)?(?:\w*TemplateDeployment|ManagedApplication(?:Definition)?|BlueprintAssignment)|"
    r"azure:(?:managedapplication/(?:definition:Definition|application:Application)|blueprint/assignment:Assignment)"
)


@lru_cache(maxsize=1024)  # a stack has few types and many resources
def judged(resource_type: str, *, everything: bool = False) -> bool:
    """Whether any rule may speak about resources of a type; cheap, so that the others are never read.

    Args:
        resource_type: Pulumi's type token.
        everything: Whether a rule on all Azure resources (tags, regions) is configured.
    """
    if resource_type in _OURS or terraform_compute(resource_type):
        return True
    kind = azure_native_type(resource_type)
    if kind is None:
        return any(known.fullmatch(resource_type) is not None for known in (CLASSIC_TEMPLATE, AZAPI))
    return everything or kind in _JUDGED or holds_template(*kind)


@lru_cache(maxsize=1024)
def holds_template(module: str, kind: str) -> bool:
    """Whether a type of azure-native is given an ARM template."""
    return (module, kind) == ("resources", "Deployment") or _TEMPLATES.fullmatch(kind) is not None


@lru_cache(maxsize=1024)
def terraform_compute(resource_type: str) -> str:
    """``cluster`` or ``instance`` for a compute of Terraform, classic or bridged anew; empty for the rest."""
    token = _TERRAFORM.fullmatch(resource_type)
    return "" if token is None else (token["classic"] or token["bridged"]).lower()


@lru_cache(maxsize=1024)
def azure_native_type(resource_type: str) -> tuple[str, str] | None:
    """Module and type of a token of azure-native's; None for any other."""
    token = _AZURE_NATIVE.fullmatch(resource_type)
    return None if token is None else (token["module"], token["type"])
