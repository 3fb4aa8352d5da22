"""The fabric checks that a stack runs before the jobs of a file, and a rehearsal does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import Finding, Level

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import jobs
    from amlstack.cli.targets import Targets


def left_out(plans: Sequence[jobs.Planned], where: Targets, file: Path) -> Iterator[Finding]:
    """A note for each cluster whose `fabric_check` jobs of the file come after.

    Args:
        plans: What is rehearsed.
        where: The stack that was read, if any.
        file: The job file.
    """
    clusters = where.settings.clusters if where.settings is not None else ()
    for cluster in clusters:
        check = cluster.fabric_check
        held_back = [f"`{plan.job.name or file.stem}`" for plan in plans if _runs_on(plan, cluster.name)]
        if check is None or not held_back:
            continue
        nodes = check.nodes or cluster.nodes.max
        size = f" of {cluster.size}" if cluster.size else ""
        come = "come" if len(held_back) > 1 else "comes"
        yield Finding(
            "fabric-check-left-out",
            "compute",
            f"{', '.join(held_back)} {come} after the fabric check of the cluster `{cluster.name}` in the stack "
            f"`{where.stack}` ({nodes} node{'' if nodes == 1 else 's'}{size})",
            "A rehearsal leaves the check out: on this machine it would judge neither those nodes' GPUs nor their "
            "InfiniBand",
            f"`amlstack up --stack {where.stack} --sandbox` plays the whole order, the check before the jobs.",
            Level.INFO,
            file=str(file),
        )


def _runs_on(plan: jobs.Planned, cluster: str) -> bool:
    """Whether a part of a plan runs on that cluster."""
    return any((part.target.cluster or "").lower() == cluster.lower() for part in plan.parts.values())
