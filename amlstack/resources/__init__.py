"""The provider's resources as typed classes for Pulumi programs.

Inputs and outputs are those of ``amlstack/provider/schema.json``. Ids of what is registered are composed from names and
content, so that they are known at preview; order comes from ``depends_on``.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from amlstack.resources.assets import (
    ComponentVersionResource,
    DataUploadResource,
    DataVersionResource,
    EnvironmentVersionResource,
    SnapshotResource,
)
from amlstack.resources.base import OnEdit, ProviderResource, Wait
from amlstack.resources.network import ManagedNetwork, NetworkIsolation
from amlstack.resources.runs import JobResource, ScheduleResource
from amlstack.resources.stack import RunsGuard, StackKeeper, StackRecord

__all__ = [
    "ComponentVersionResource",
    "DataUploadResource",
    "DataVersionResource",
    "EnvironmentVersionResource",
    "JobResource",
    "ManagedNetwork",
    "NetworkIsolation",
    "OnEdit",
    "RunsGuard",
    "ScheduleResource",
    "SnapshotResource",
    "StackKeeper",
    "StackRecord",
    "Wait",
]

_FORMER = {
    "Snapshot": SnapshotResource,
    "EnvironmentVersion": EnvironmentVersionResource,
    "ComponentVersion": ComponentVersionResource,
    "Job": JobResource,
    "Schedule": ScheduleResource,
}
"""Names until 0.1.0. Programs that import them go on; a stack's state knows none of these names, only type tokens."""

if not TYPE_CHECKING:  # so that a checker of types still finds a misspelt name

    def __getattr__(name: str) -> type[ProviderResource]:
        if (found := _FORMER.get(name)) is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        warnings.warn(f"amlstack.resources.{name} is now {found.__name__}", DeprecationWarning, stacklevel=2)
        return found
