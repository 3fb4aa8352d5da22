"""What the parts of a run need first: clusters, snapshots, environments, component versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pulumi

import jobs
from amlstack import resources
from infra.registered import Registered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack import snapshot
    from infra.components.cluster import RdmaCluster
    from infra.training import Assets


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of one run in the workspace.

    Attributes:
        needs: What must be there first.
        clusters: Those of the stack that it runs on.
        whole: What the references of the run itself point to.
        refs: By step of a pipeline, what that step's point to.
    """

    needs: tuple[pulumi.Resource, ...]
    clusters: tuple[RdmaCluster, ...]
    whole: jobs.Refs
    refs: Mapping[str, jobs.Refs]


def registered(
    name: str,
    plan: jobs.Planned,
    codes: Mapping[str, snapshot.Snapshot],
    assets: Assets,
    *,
    clusters: Mapping[str, RdmaCluster],
    parent: pulumi.Resource,
) -> Parts:
    """Register what the parts of a plan refer to. All ids are composed from content, so that a preview shows them.

    Args:
        name: Name of the run; its components are named after it.
        plan: A job, a sweep or a pipeline, or the schedule of one.
        codes: The content of each part's folder, by the part's place.
        assets: What the stack has registered already.
        clusters: The stack's clusters by name.
        parent: The component that all of it belongs to.
    """
    names = assets.names
    needs: list[pulumi.Resource] = []
    places: dict[str, RdmaCluster] = {}
    refs: dict[str, jobs.Refs] = {}
    whole = jobs.Refs(names.workspace_id)
    for place, part in jobs.parts(plan).items():
        code_id = environment_id = None
        target = part.target.cluster or ""
        if target in clusters and target not in places:
            places[target] = clusters[target]
            needs.append(clusters[target])
        if (code := codes.get(place)) is not None:
            needs.append(assets.snapshot(code.root, code.hash, part.beside))
            code_id = f"{names.workspace_id}/codes/{code.hash}/versions/1"
        if isinstance(part.enriched.environment, jobs.Environment):
            environment = Registered.of(part.enriched.environment, part.base)
            needs.append(assets.environment(environment))
            environment_id = environment.id_in(names)
        there = jobs.Refs(names.workspace_id, code_id, environment_id)
        if place in ("", "trial"):  # the one part of a job or a sweep; a pipeline's are steps
            whole = there
        refs[place.removeprefix("jobs.")] = there
    started = plan.enriched.create_job if isinstance(plan, jobs.SchedulePlan) else plan.enriched
    components = jobs.components(started, whole, refs) if isinstance(started, jobs.Pipeline) else {}
    needs += _versions(
        {f"{name}.{step}": (jobs.component_id(body, whole), body["properties"]) for step, body in components.items()},
        workspace=assets.stack.workspace.workspace_id,
        opts=pulumi.ResourceOptions(parent=parent, depends_on=list(needs)),
    )
    return Parts(tuple(needs), tuple(places.values()), whole, refs)


def _versions(
    components: Mapping[str, tuple[str, Mapping[str, Any]]],
    *,
    workspace: pulumi.Input[str],
    opts: pulumi.ResourceOptions,
) -> list[pulumi.Resource]:
    """Component versions by id and properties, each registered once under its first name."""
    told: dict[str, pulumi.Resource] = {}
    for name, (component_id, properties) in components.items():
        *_, component, _, version = component_id.split("/")
        if component_id not in told:
            # A pipeline component names those of its steps, which come before it.
            inner = list(told.values()) if properties["componentSpec"].get("type") == "pipeline" else []
            told[component_id] = resources.ComponentVersion(
                name,
                workspace=workspace,
                name=component,
                version=version,
                body=properties,
                opts=pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=inner)),
            )
    return list(told.values())
