"""The provider's resources; ``classes.pyi`` has their inputs and outputs."""

from __future__ import annotations

from amlstack.resources.base import ProviderResource


class SnapshotResource(ProviderResource):
    """A folder of code, uploaded once for each content and registered under its hash."""

    kind = "amlstack:code:Snapshot"


class DataUploadResource(ProviderResource):
    """A file or folder of this machine in a datastore, below the hash of its content, as azure-ai-ml uploads inputs."""

    kind = "amlstack:data:Upload"


class DataVersionResource(ProviderResource):
    """A version of a data asset; what it says about its data never changes."""

    kind = "amlstack:data:Version"


class EnvironmentVersionResource(ProviderResource):
    """An environment whose version is the hash of its content."""

    kind = "amlstack:environments:Version"


class ComponentVersionResource(ProviderResource):
    """A component of a pipeline's own file, registered under a version made from its content."""

    kind = "amlstack:components:Version"


class JobResource(ProviderResource):
    """A training run, exactly once for each identity."""

    kind = "amlstack:jobs:Job"


class ScheduleResource(ProviderResource):
    """A schedule, which starts a job again and again; edited in place, disabled before it is deleted."""

    kind = "amlstack:schedules:Schedule"


class NetworkIsolation(ProviderResource):
    """Decides which isolation a workspace gets, before it is written; refused at preview where Azure takes no step."""

    kind = "amlstack:network:Isolation"


class ManagedNetwork(ProviderResource):
    """The outbound rules of a managed network, all of them, and its provisioning, which clusters wait for."""

    kind = "amlstack:network:Managed"


class StackRecord(ProviderResource):
    """The random id by which a stack knows its runs; a new one is not known at preview."""

    kind = "amlstack:stack:Record"


class StackKeeper(ProviderResource):
    """Refuses the end of a stack before anything is deleted; declare it last, after everything else."""

    kind = "amlstack:stack:Keeper"
