"""How a stack knows its runs, and what guards them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.resources.base import OnEdit, ProviderResource, with_outputs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pulumi


class StackRecord(ProviderResource):
    """The random id by which a stack knows its runs.

    Args:
        resource_name: Name in the stack.
        stack_id: The id of a state that was lost, to take its runs over; random otherwise.
        opts: Pulumi's own options.

    Attributes:
        stack_id: Made once and kept for ever; a new one is not known at preview.
    """

    if TYPE_CHECKING:
        stack_id: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        stack_id: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("amlstack:stack:Record", resource_name, with_outputs({"stack_id": stack_id}), opts)


class StackKeeper(ProviderResource):
    """Refuses the end of a stack before anything is deleted; declare it last, after everything else.

    Args:
        resource_name: Name in the stack.
        stack_id: The stack's random id.
        owned: ARM ids of all that the stack owns.
        group: ARM id of its own resource group, as an output of it.
        workspace: ARM id of its own workspace, as an output of it.
        opts: Pulumi's own options; ``depends_on`` names all resources of the stack.
    """

    def __init__(
        self,
        resource_name: str,
        *,
        stack_id: pulumi.Input[str],
        owned: pulumi.Input[Sequence[str]],
        group: pulumi.Input[str] | None = None,
        workspace: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {"group": group, "workspace": workspace, "owned": owned, "stack_id": stack_id}
        super().__init__("amlstack:stack:Keeper", resource_name, with_outputs(inputs), opts)


class RunsGuard(ProviderResource):
    """Refuses, or announces, what would end active runs of the stack; `JobResource` judges the edits of a job itself.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace, as an output of all that the workspace stands on.
        stack_id: The stack's random id.
        jobs: ``on_edit`` of every job, by name.
        clusters: Ids, as outputs, of every cluster, by name.
        reached_by: Any words, as an output of the identities and the network that runs reach their data by.
        shared: The workspace is none of the stack's: it stays when the stack goes.
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
        reached_by: pulumi.Input[str] | None = None,
        shared: bool = False,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        # Each cluster is a property of its own: which one is being replaced is known by the property alone.
        places = {f"cluster:{name}": cluster_id for name, cluster_id in clusters.items()}
        known = {"workspace": workspace, "reached_by": reached_by, "stack_id": stack_id}
        inputs = {**known, "jobs": dict(jobs), "shared": shared or None, **places}
        super().__init__("amlstack:runs:Guard", resource_name, with_outputs(inputs), opts)
