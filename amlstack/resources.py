"""The provider's resources as typed classes for Pulumi programs.

Inputs and outputs are those of ``amlstack/provider/schema.json``. Ids of what is registered are composed from names and
content, so that they are known at preview; order comes from ``depends_on``.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal

import pulumi

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OnEdit = Literal["refuse", "cancel", "keep"]
Wait = Literal["none", "started", "completed"]


class _Resource(pulumi.CustomResource):
    """Attributes in Python's words, properties in the schema's.

    The SDK's own translation of property names goes all the way down and would rename keys inside a body or a
    declaration, which are the person's; so properties have their wire names and only attributes are translated.
    """

    def __getattr__(self, name: str) -> Any:
        wire = _WIRE.get(name)
        if wire is None or wire not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return self.__dict__[wire]


_WIRE = {
    "code_id": "codeId",
    "environment_id": "environmentId",
    "component_id": "componentId",
    "job_id": "jobId",
    "code_hash": "codeHash",
    "former_code_hashes": "formerCodeHashes",
    "code_files": "codeFiles",
    "on_edit": "onEdit",
    "delete_history": "deleteHistory",
    "placed_on": "placedOn",
    "stack_id": "stackId",
    "schedule_id": "scheduleId",
}


def _with_outputs(inputs: dict[str, Any], *outputs: str) -> dict[str, Any]:
    # The SDK makes an output of every property that is named here; those without a value are not sent.
    return {_WIRE.get(name, name): value for name, value in {**inputs, **dict.fromkeys(outputs)}.items()}


class SnapshotResource(_Resource):
    """A folder of code, uploaded once for each content and registered under its hash.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace.
        path: The folder, absolute.
        content_hash: Its content hash when it is known already; computed otherwise.
        beside: Folders of Python packages that travel along under their own names, separated as on PATH.
        opts: Pulumi's own options.

    Attributes:
        code_id: ARM id of the code version, known at preview.
        hash: Content hash, 64 hex digits.
        files: How many files it holds.
        bytes: Their size together.
    """

    code_id: pulumi.Output[str]
    hash: pulumi.Output[str]
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
    ) -> None:
        inputs = {"workspace": workspace, "path": path, "hash": content_hash, "beside": beside}
        super().__init__(
            "amlstack:code:Snapshot", resource_name, _with_outputs(inputs, "code_id", "files", "bytes"), opts
        )


class EnvironmentVersionResource(_Resource):
    """An environment whose version is the hash of its content.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace.
        name: Name of the environment.
        body: ARM properties of the version: ``image``, ``condaFile``, …
        opts: Pulumi's own options.

    Attributes:
        environment_id: ARM id of the version, known at preview.
        version: Sixteen hex digits of the content's hash.
    """

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
    ) -> None:
        inputs = {"workspace": workspace, "name": name, "body": body}
        super().__init__(
            "amlstack:environments:Version", resource_name, _with_outputs(inputs, "environment_id", "version"), opts
        )


class ComponentVersionResource(_Resource):
    """A component of a pipeline's own file, registered under a version made from its content.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace.
        name: Name of the component.
        version: Version, made from its content.
        body: ARM properties of the version: ``componentSpec``, …
        opts: Pulumi's own options.

    Attributes:
        component_id: ARM id of the version, known at preview.
    """

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
    ) -> None:
        inputs = {"workspace": workspace, "name": name, "version": version, "body": body}
        super().__init__("amlstack:components:Version", resource_name, _with_outputs(inputs, "component_id"), opts)


class JobResource(_Resource):
    """A training run, exactly once for each identity.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace.
        name: Name of the job; the run's id is this and ten hex digits of its identity.
        declaration: What the person wrote, any JSON; part of the identity.
        code_hash: Content hash of the code; part of the identity.
        former_code_hashes: Other hashes by which a run with this very code may have been recorded: it is the same run.
        code_files: Files and folders (``data/``) of the code with digests, for naming what changed; no part of the
            identity.
        body: The ARM job body, ``{"properties": {…}}``, sent as it is; no part of the identity.
        rerun: Any word; another word is another run.
        on_edit: What becomes of an active run whose declaration is edited.
        wait: How far it must come before what depends on it goes on.
        delete_history: Whether the record goes with the resource.
        placed_on: Ids, as outputs, of what the run lives on: resource group, workspace, cluster. Replacing one of them
            is then treated like an edit of an active run. No part of the identity.
        stack_id: The stack's random id, so that an equally named stack elsewhere is another owner. No part of the
            identity.
        opts: Pulumi's own options.

    Attributes:
        job_id: ARM id of the run, known at preview.
        status: As last seen.
        owner: ``project/stack`` that created it.
        identity: Digest of what it runs, without the owner.
        gone: The record was deleted outside; the run is not repeated.
        services: Endpoints of Studio, tracking and others.
    """

    job_id: pulumi.Output[str]
    status: pulumi.Output[str]
    owner: pulumi.Output[str]
    identity: pulumi.Output[str]
    gone: pulumi.Output[bool]
    services: pulumi.Output[Mapping[str, str]]

    def __init__(
        self,
        resource_name: str,
        *,
        workspace: pulumi.Input[str],
        name: pulumi.Input[str],
        declaration: pulumi.Input[Any],
        body: pulumi.Input[Mapping[str, Any]],
        code_hash: pulumi.Input[str] = "",
        former_code_hashes: pulumi.Input[Sequence[str]] = (),
        code_files: pulumi.Input[Mapping[str, str]] | None = None,
        rerun: pulumi.Input[str] = "",
        on_edit: pulumi.Input[OnEdit] = "refuse",
        wait: pulumi.Input[Wait] = "none",
        delete_history: pulumi.Input[bool] = False,
        placed_on: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        stack_id: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {
            "workspace": workspace,
            "name": name,
            "declaration": declaration,
            "code_hash": code_hash,
            "former_code_hashes": former_code_hashes or None,
            "code_files": code_files or None,
            "rerun": rerun,
            "body": body,
            "on_edit": on_edit,
            "wait": wait,
            "delete_history": delete_history,
            "placed_on": placed_on,
            "stack_id": stack_id,
        }
        outputs = ("job_id", "status", "owner", "identity", "gone", "services")
        super().__init__("amlstack:jobs:Job", resource_name, _with_outputs(inputs, *outputs), opts)


class ScheduleResource(_Resource):
    """What starts a job again and again; edited in place, disabled before it is deleted.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace.
        name: Name of the schedule in the workspace.
        body: The ARM schedule body, ``{"properties": {…}}``, sent as it is but for the owner's mark.
        opts: Pulumi's own options.

    Attributes:
        schedule_id: ARM id of the schedule, known at preview.
        enabled: Whether it starts anything, as last seen.
        owner: ``project/stack`` that wrote it last.
        drifted: Property paths that were changed outside, as the last refresh saw them.
    """

    schedule_id: pulumi.Output[str]
    enabled: pulumi.Output[bool]
    owner: pulumi.Output[str]
    drifted: pulumi.Output[list[str]]

    def __init__(
        self,
        resource_name: str,
        *,
        workspace: pulumi.Input[str],
        name: pulumi.Input[str],
        body: pulumi.Input[Mapping[str, Any]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {"workspace": workspace, "name": name, "body": body}
        outputs = ("schedule_id", "enabled", "owner", "drifted")
        super().__init__("amlstack:schedules:Schedule", resource_name, _with_outputs(inputs, *outputs), opts)


class StackRecord(_Resource):
    """The random id by which a stack knows its runs.

    Args:
        resource_name: Name in the stack.
        stack_id: The id of a state that was lost, to take its runs over; random otherwise.
        opts: Pulumi's own options.

    Attributes:
        stack_id: Made once and kept for ever; a new one is not known at preview.
    """

    stack_id: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        stack_id: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("amlstack:stack:Record", resource_name, _with_outputs({"stack_id": stack_id}), opts)


class RunsGuard(_Resource):
    """Refuses, or announces, what would end active runs of the stack; `JobResource` judges the edits of a job itself.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace, as an output of all that the workspace stands on.
        stack_id: The stack's random id.
        jobs: ``on_edit`` of every job, by name.
        clusters: Ids, as outputs, of every cluster, by name.
        opts: Pulumi's own options.
    """

    def __init__(
        self,
        resource_name: str,
        *,
        workspace: pulumi.Input[str],
        stack_id: pulumi.Input[str],
        jobs: Mapping[str, OnEdit],
        clusters: Mapping[str, pulumi.Input[str]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        # Each cluster is a property of its own: which one is being replaced is known by the property alone.
        places = {f"cluster:{name}": cluster_id for name, cluster_id in clusters.items()}
        inputs = {"workspace": workspace, "stack_id": stack_id, "jobs": dict(jobs), **places}
        super().__init__("amlstack:runs:Guard", resource_name, _with_outputs(inputs), opts)


_FORMER = {
    "Snapshot": SnapshotResource,
    "EnvironmentVersion": EnvironmentVersionResource,
    "ComponentVersion": ComponentVersionResource,
    "Job": JobResource,
    "Schedule": ScheduleResource,
}
"""Names until 0.1.0. Programs that import them go on; a stack's state knows none of these names, only type tokens."""

if not TYPE_CHECKING:  # so that a checker of types still finds a misspelt name

    def __getattr__(name: str) -> type[_Resource]:
        if (found := _FORMER.get(name)) is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        warnings.warn(f"amlstack.resources.{name} is now {found.__name__}", DeprecationWarning, stacklevel=2)
        return found
