"""The provider's resources as typed classes for Pulumi programs.

Inputs and outputs are those of ``amlstack/provider/schema.json``. Ids of what is registered are composed from names and
content, so that they are known at preview; order comes from ``depends_on``.
"""

from __future__ import annotations

from amlstack.resources.base import OnEdit, Wait
from amlstack.resources.classes import (
    ComponentVersionResource,
    DataUploadResource,
    DataVersionResource,
    EnvironmentVersionResource,
    JobResource,
    ManagedNetwork,
    NetworkIsolation,
    ScheduleResource,
    SnapshotResource,
    StackKeeper,
    StackRecord,
)
from amlstack.resources.guard import RunsGuard

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
