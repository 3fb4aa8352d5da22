"""What runs, once or again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.resources.base import OnEdit, ProviderResource, Wait, with_outputs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pulumi


class JobResource(ProviderResource):
    """A training run, exactly once for each identity.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace.
        name: Name of the job; the run's id is this and ten hex digits of its identity.
        declaration: What the person wrote, any JSON; part of the identity.
        code_hash: Content hash of the code; part of the identity.
        code_files: Files and folders (``data/``) of the code with digests, for naming what changed; no part of the
            identity.
        body: The ARM job body, ``{"properties": {…}}``, sent as it is; no part of the identity.
        rerun: Any word; another word is another run.
        on_edit: What becomes of an active run whose declaration is edited.
        wait: How far it must come before what depends on it goes on.
        delete_history: Whether the record goes with the resource.
        after: What must have completed before the run is submitted, each ``{"job": name, "run": ARM id, "status": as
            last seen}``, the last two as outputs of that job's resource. No part of the identity.
        awaited_by: Names of the jobs that come after this one, for the message when it fails.
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

    if TYPE_CHECKING:
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
        code_files: pulumi.Input[Mapping[str, str]] | None = None,
        rerun: pulumi.Input[str] = "",
        on_edit: pulumi.Input[OnEdit] = "refuse",
        wait: pulumi.Input[Wait] = "none",
        delete_history: pulumi.Input[bool] = False,
        after: pulumi.Input[Sequence[pulumi.Input[Mapping[str, Any]]]] | None = None,
        awaited_by: pulumi.Input[Sequence[str]] | None = None,
        placed_on: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        stack_id: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {
            "workspace": workspace,
            "name": name,
            "declaration": declaration,
            "code_hash": code_hash,
            "code_files": code_files or None,
            "rerun": rerun,
            "body": body,
            "on_edit": on_edit,
            "wait": wait,
            "delete_history": delete_history,
            "after": after,
            "awaited_by": awaited_by,
            "placed_on": placed_on,
            "stack_id": stack_id,
        }
        outputs = ("job_id", "status", "owner", "identity", "gone", "services")
        super().__init__("amlstack:jobs:Job", resource_name, with_outputs(inputs, *outputs), opts)


class ScheduleResource(ProviderResource):
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

    if TYPE_CHECKING:
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
        super().__init__("amlstack:schedules:Schedule", resource_name, with_outputs(inputs, *outputs), opts)
