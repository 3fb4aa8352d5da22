"""What a preempted job has learned must not go with its nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from policies.checks.examples import job
from policies.checks.rule import NO_JOB, Rule

if TYPE_CHECKING:
    from collections.abc import Collection

RULE = Rule(
    code="spot-checkpoint",
    title="A low-priority job across nodes writes to a mounted output.",
    what=(
        "Flags a job on more than one low-priority node, serverless with the tier Spot or on a low-priority "
        "cluster of the same stack, that has no output in mode `ReadWriteMount`."
    ),
    why=(
        "A low-priority job fails when one of its nodes is taken away and has to be started again. Files in "
        "`outputs/` and uploads at the end are gone then; what was written to a mounted output stays."
    ),
    example=job(queueSettings="{jobTier: Spot}"),
    instead=job(
        queueSettings="{jobTier: Spot}", outputs="{checkpoints: {jobOutputType: uri_folder, mode: ReadWriteMount}}"
    ),
    level="advisory",
    not_exported=NO_JOB,
)


MOUNTED = frozenset({"readwritemount", "rw_mount", "mount", "direct"})


def check(modes: Collection[str | None], *, preemptible: bool, nodes: int, where: str = "outputs") -> Finding | None:
    """Judge the outputs of a job whose nodes may be taken away.

    Args:
        modes: Mode of each of its outputs; None is Azure ML's own default, a mount.
        preemptible: Whether its nodes are low-priority.
        nodes: Number of nodes.
        where: Path of the outputs in the declaration.
    """
    if not preemptible or nodes <= 1 or any(mode is None or mode.lower() in MOUNTED for mode in modes):
        return None
    return Finding(
        RULE.code,
        where,
        seen=f"{nodes} low-priority nodes, and no output is mounted",
        rule="A preempted job starts again from its last checkpoint, which only a mounted output keeps",
        remedy="Write an output with mode rw_mount (on the wire ReadWriteMount) and checkpoint to it",
    )
