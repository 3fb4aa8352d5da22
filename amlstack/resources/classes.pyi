"""Made from amlstack/provider/schema.json by `make docs`."""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from amlstack.resources.base import OnEdit, ProviderResource, Wait


class SnapshotResource(ProviderResource):
    """A folder of code, uploaded once for each content and registered under its hash.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace.
        path: The folder; .amlignore, else .gitignore, in it is honoured.
        content_hash: Content hash as azure-ai-ml computes it (version 202208); computed when not given.
        beside: Folders of Python packages that travel along under their own names, separated as on PATH.
        opts: Pulumi's own options.

    Attributes:
        workspace: ARM id of the workspace.
        path: The folder.
        hash: Content hash.
        beside: Folders of packages that travelled along.
        code_id: ARM id of the code version.
        files: How many files it holds.
        bytes: Their size together.
    """

    workspace: pulumi.Output[str]
    path: pulumi.Output[str]
    hash: pulumi.Output[str]
    beside: pulumi.Output[str]
    code_id: pulumi.Output[str]
    files: pulumi.Output[int]
    bytes: pulumi.Output[int]
    def __init__(
        self,
        resource_name: str,
        *,
        workspace: pulumi.Input[str],
        path: pulumi.Input[str],
        content_hash: pulumi.Input[str] | None = None,
        beside: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None: ...


class DataUploadResource(ProviderResource):
    """A file or folder of this machine in a datastore, below the hash of its content, as azure-ai-ml uploads inputs.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace.
        path: The file or folder; .amlignore, else .gitignore, in a folder is honoured.
        content_hash: Hash of the content as azure-ai-ml computes it for inputs; computed when not given.
        datastore: Name of the datastore. Default: workspaceblobstore.
        opts: Pulumi's own options.

    Attributes:
        workspace: ARM id of the workspace.
        path: The file or folder.
        hash: Hash of the content.
        datastore: Name of the datastore.
        uri: Where a job reads it, without a slash at its end.
        indicator: The blob whose metadata say that the upload is complete.
        files: How many files it holds.
        bytes: Their size together.
    """

    workspace: pulumi.Output[str]
    path: pulumi.Output[str]
    hash: pulumi.Output[str]
    datastore: pulumi.Output[str]
    uri: pulumi.Output[str]
    indicator: pulumi.Output[str]
    files: pulumi.Output[int]
    bytes: pulumi.Output[int]
    def __init__(
        self,
        resource_name: str,
        *,
        workspace: pulumi.Input[str],
        path: pulumi.Input[str],
        content_hash: pulumi.Input[str] | None = None,
        datastore: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None: ...


class DataVersionResource(ProviderResource):
    """A version of a data asset; what it says about its data never changes.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace.
        name: Name of the data asset.
        version: Version.
        body: ARM properties of the version: dataType, dataUri, description, tags, …
        opts: Pulumi's own options.

    Attributes:
        workspace: ARM id of the workspace.
        name: Name of the data asset.
        version: Version.
        body: ARM properties.
        data_id: ARM id of the version.
    """

    workspace: pulumi.Output[str]
    name: pulumi.Output[str]
    version: pulumi.Output[str]
    body: pulumi.Output[Mapping[str, Any]]
    data_id: pulumi.Output[str]
    def __init__(
        self,
        resource_name: str,
        *,
        workspace: pulumi.Input[str],
        name: pulumi.Input[str],
        version: pulumi.Input[str],
        body: pulumi.Input[Mapping[str, Any]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None: ...


class EnvironmentVersionResource(ProviderResource):
    """An environment whose version is the hash of its content.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace.
        name: Name of the environment.
        body: ARM properties of the environment version: image, condaFile, …
        opts: Pulumi's own options.

    Attributes:
        workspace: ARM id of the workspace.
        name: Name of the environment.
        body: ARM properties.
        environment_id: ARM id of the environment version.
        version: Sixteen hex digits of the content's hash.
    """

    workspace: pulumi.Output[str]
    name: pulumi.Output[str]
    body: pulumi.Output[Mapping[str, Any]]
    environment_id: pulumi.Output[str]
    version: pulumi.Output[str]
    def __init__(
        self,
        resource_name: str,
        *,
        workspace: pulumi.Input[str],
        name: pulumi.Input[str],
        body: pulumi.Input[Mapping[str, Any]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None: ...


class ComponentVersionResource(ProviderResource):
    """A component of a pipeline's own file, registered under a version made from its content.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace.
        name: Name of the component.
        version: Version, made from its content.
        body: ARM properties of the component version: componentSpec, …
        opts: Pulumi's own options.

    Attributes:
        workspace: ARM id of the workspace.
        name: Name of the component.
        version: Version, made from its content.
        body: ARM properties.
        component_id: ARM id of the component version.
    """

    workspace: pulumi.Output[str]
    name: pulumi.Output[str]
    version: pulumi.Output[str]
    body: pulumi.Output[Mapping[str, Any]]
    component_id: pulumi.Output[str]
    def __init__(
        self,
        resource_name: str,
        *,
        workspace: pulumi.Input[str],
        name: pulumi.Input[str],
        version: pulumi.Input[str],
        body: pulumi.Input[Mapping[str, Any]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None: ...


class JobResource(ProviderResource):
    """A training run, exactly once for each identity.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace.
        name: Name of the job; the run's id is this and ten hex digits.
        declaration: What the person wrote; identity.
        code_hash: Content hash of the code; identity.
        code_files: Files and folders of the code with digests, for naming what changed; no part of the identity.
        rerun: Any word; another word is another run.
        body: The ARM job body, {"properties": {…}}, sent as it is; display name, description and tags can be edited.
        on_edit: OnEdit
        wait: Wait
        delete_history: Delete the record and its history with the resource.
        after: What must have completed before the run is submitted: {job, run, status} each. No identity.
        awaited_by: Names of the jobs that come after this one, for messages. No identity.
        placed_on: Ids of what the run lives on; replacing one of them is treated like an edit of an active run. No identity.
        stack_id: Random id of the stack, part of the owner but not of the identity.
        opts: Pulumi's own options.

    Attributes:
        workspace: ARM id of the workspace.
        name: Name of the job.
        declaration: What the person wrote.
        code_hash: Content hash of the code.
        code_files: Files and folders of the code with digests.
        rerun: The rerun word.
        body: The body the run was created with, its metadata as edited since.
        on_edit: OnEdit
        wait: Wait
        delete_history: Whether the record goes with the resource.
        after: What must have completed before.
        awaited_by: What comes after.
        placed_on: Ids of what the run lives on.
        stack_id: Random id of the stack that created it.
        job_id: ARM id of the run.
        status: As last seen.
        owner: project/stack that created it.
        identity: Digest of what it runs, without the owner.
        gone: The record was deleted outside; the run is not repeated.
        experiment_name: The experiment that it belongs to.
        environment_id: The environment it was submitted with, its label resolved.
        services: Endpoints of Studio, tracking and others.
    """

    workspace: pulumi.Output[str]
    name: pulumi.Output[str]
    declaration: pulumi.Output[Any]
    code_hash: pulumi.Output[str]
    code_files: pulumi.Output[Mapping[str, str]]
    rerun: pulumi.Output[str]
    body: pulumi.Output[Mapping[str, Any]]
    on_edit: pulumi.Output[OnEdit]
    wait: pulumi.Output[Wait]
    delete_history: pulumi.Output[bool]
    after: pulumi.Output[Sequence[pulumi.Input[Any]]]
    awaited_by: pulumi.Output[Sequence[pulumi.Input[str]]]
    placed_on: pulumi.Output[Sequence[pulumi.Input[str]]]
    stack_id: pulumi.Output[str]
    job_id: pulumi.Output[str]
    status: pulumi.Output[str]
    owner: pulumi.Output[str]
    identity: pulumi.Output[str]
    gone: pulumi.Output[bool]
    experiment_name: pulumi.Output[str]
    environment_id: pulumi.Output[str]
    services: pulumi.Output[Mapping[str, str]]
    def __init__(
        self,
        resource_name: str,
        *,
        workspace: pulumi.Input[str],
        name: pulumi.Input[str],
        declaration: pulumi.Input[Any],
        body: pulumi.Input[Mapping[str, Any]],
        code_hash: pulumi.Input[str] | None = None,
        code_files: pulumi.Input[Mapping[str, str]] | None = None,
        rerun: pulumi.Input[str] | None = None,
        on_edit: pulumi.Input[OnEdit] | None = None,
        wait: pulumi.Input[Wait] | None = None,
        delete_history: pulumi.Input[bool] | None = None,
        after: pulumi.Input[Sequence[pulumi.Input[Any]]] | None = None,
        awaited_by: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        placed_on: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        stack_id: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None: ...


class ScheduleResource(ProviderResource):
    """A schedule, which starts a job again and again; edited in place, disabled before it is deleted.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace.
        name: Name of the schedule in the workspace.
        body: The ARM schedule body, {"properties": {…}}, sent as it is but for the owner's mark.
        opts: Pulumi's own options.

    Attributes:
        workspace: ARM id of the workspace.
        name: Name of the schedule.
        body: The body as it was written last.
        schedule_id: ARM id of the schedule.
        owner: project/stack that wrote it last.
        enabled: Whether it starts anything, as last seen.
        drifted: Property paths that were changed outside, as the last refresh saw them.
        settled: Digests of what the service answered after the last write; a refresh compares with them.
    """

    workspace: pulumi.Output[str]
    name: pulumi.Output[str]
    body: pulumi.Output[Mapping[str, Any]]
    schedule_id: pulumi.Output[str]
    owner: pulumi.Output[str]
    enabled: pulumi.Output[bool]
    drifted: pulumi.Output[Sequence[pulumi.Input[str]]]
    settled: pulumi.Output[Any]
    def __init__(
        self,
        resource_name: str,
        *,
        workspace: pulumi.Input[str],
        name: pulumi.Input[str],
        body: pulumi.Input[Mapping[str, Any]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None: ...


class NetworkIsolation(ProviderResource):
    """Decides which isolation a workspace gets, before it is written; refused at preview where Azure takes no step.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace, which may not exist yet.
        wanted: Disabled, AllowInternetOutbound or AllowOnlyApprovedOutbound.
        given: Whether the settings ask for it; otherwise a workspace that exists keeps what it has.
        excluded: What of the stack cannot be in a managed network, a sentence each.
        opts: Pulumi's own options.

    Attributes:
        workspace: ARM id of the workspace.
        wanted: What the stack asks for.
        given: Whether the settings ask for it.
        excluded: What cannot be in a managed network.
        mode: What the workspace gets.
    """

    workspace: pulumi.Output[str]
    wanted: pulumi.Output[str]
    given: pulumi.Output[bool]
    excluded: pulumi.Output[Sequence[pulumi.Input[str]]]
    mode: pulumi.Output[str]
    def __init__(
        self,
        resource_name: str,
        *,
        workspace: pulumi.Input[str],
        wanted: pulumi.Input[str],
        given: pulumi.Input[bool],
        excluded: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None: ...


class ManagedNetwork(ProviderResource):
    """The outbound rules of a managed network, all of them, and its provisioning, which clusters wait for.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace.
        mode: Its isolation; nothing is done for Disabled.
        rules: Outbound rules by name, as workspaces/outboundRules has them under properties.
        opts: Pulumi's own options.

    Attributes:
        workspace: ARM id of the workspace.
        mode: Its isolation.
        rules: Outbound rules by name.
        status: Active once it is provisioned, Disabled without a managed network.
    """

    workspace: pulumi.Output[str]
    mode: pulumi.Output[str]
    rules: pulumi.Output[Mapping[str, Any]]
    status: pulumi.Output[str]
    def __init__(
        self,
        resource_name: str,
        *,
        workspace: pulumi.Input[str],
        mode: pulumi.Input[str],
        rules: pulumi.Input[Mapping[str, Any]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None: ...


class StackRecord(ProviderResource):
    """The random id by which a stack knows its runs; a new one is not known at preview.

    Args:
        resource_name: Name in the stack.
        stack_id: Id of a state that was lost, to take its runs over; random otherwise.
        opts: Pulumi's own options.

    Attributes:
        stack_id: Made once and kept for ever.
    """

    stack_id: pulumi.Output[str]
    def __init__(
        self,
        resource_name: str,
        *,
        stack_id: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None: ...


class StackKeeper(ProviderResource):
    """Refuses the end of a stack before anything is deleted; declare it last, after everything else.

    Args:
        resource_name: Name in the stack.
        group: ARM id of the stack's own resource group, as an output of it.
        workspace: ARM id of the stack's own workspace, as an output of it.
        owned: ARM ids of what the stack owns.
        stack_id: Random id of the stack.
        opts: Pulumi's own options.

    Attributes:
        group: ARM id of the stack's own resource group.
        workspace: ARM id of the stack's own workspace.
        stack_id: Random id of the stack.
        owner: project/stack that created it.
    """

    group: pulumi.Output[str]
    workspace: pulumi.Output[str]
    stack_id: pulumi.Output[str]
    owner: pulumi.Output[str]
    def __init__(
        self,
        resource_name: str,
        *,
        group: pulumi.Input[str] | None = None,
        workspace: pulumi.Input[str] | None = None,
        owned: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        stack_id: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None: ...
