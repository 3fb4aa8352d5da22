"""A sweep or a pipeline on the sandbox without a stack: what its parts need, and the one body that is submitted."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import jobs
from infra.runs import scanned, with_environments

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack import snapshot
    from amlstack.base.findings import Finding
    from amlstack.cli.rehearsal.submit import Rehearsal
    from amlstack.cli.targets import Targets

MOST_AT_ONCE = 4
"""Trials for which a cluster that no stack declares has nodes: they all run on this machine."""


@dataclass(frozen=True, slots=True)
class Composite:
    """A sweep or a pipeline ready to be rehearsed.

    Attributes:
        declared: In Azure ML's words, its environments as the stack means them.
        parts: The plans of its command jobs, by place.
        codes: The content of each part's folder, by place.
    """

    declared: jobs.Sweep | jobs.Pipeline
    parts: Mapping[str, jobs.Plan]
    codes: Mapping[str, snapshot.Snapshot]

    @classmethod
    def of(cls, plan: jobs.SweepPlan | jobs.PipelinePlan, where: Targets, size: str) -> Composite:
        """Reads the code folders.

        Args:
            plan: The plan.
            where: The stack, for what environments mean there.
            size: What a cluster of unknown size is taken for.
        """
        parts = {
            place: replace(
                part,
                enriched=part.enriched.model_copy(update=where.environment_of(part.job)),
                target=_target(plan, part, size),
            )
            for place, part in plan.parts.items()
        }
        return cls(with_environments(plan.enriched, where.environment_of), parts, scanned(plan))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong with the code folders."""
        return tuple(finding for code in self.codes.values() for finding in code.findings)

    def submit(self, rehearsal: Rehearsal, name: str) -> str:
        """Makes clusters, uploads code, registers environments and components, submits the job under an id of its own.

        Returns:
            The job's ARM id.

        Raises:
            ArmError, ProviderError: The sandbox refused something.
        """
        rehearsal.prepare_all(self.parts.values())
        refs = {
            place.removeprefix("jobs."): rehearsal.registered(part, self.codes.get(place))
            for place, part in self.parts.items()
        }
        whole = refs.get("trial", jobs.Refs(rehearsal.names.workspace_id))
        rendered = jobs.render(self.declared, whole, refs)
        for body in rendered.components.values():
            rehearsal.component(jobs.component_id(body, whole), body)
        job_id = f"{rehearsal.names.workspace_id}/jobs/{name}-{os.urandom(3).hex()}"
        rehearsal.arm.put(job_id, rendered.body)
        return job_id


def _target(plan: jobs.SweepPlan | jobs.PipelinePlan, part: jobs.Plan, size: str) -> jobs.Target:
    """The part's cluster; one that no stack declares has as many nodes as can run at once."""
    target = part.target
    if not target.cluster:
        return target
    at_once = 1
    if isinstance(plan, jobs.SweepPlan):
        limits = plan.job.limits
        at_once = min(limits.max_concurrent_trials or limits.max_total_trials or MOST_AT_ONCE, MOST_AT_ONCE)
    return replace(
        target,
        size=target.size if target.facts is not None else size,
        max_nodes=target.max_nodes or part.nodes * at_once,
    )
