"""A run that is started again must find where it was."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from policies.checks.examples import job
from policies.checks.rule import NO_JOB, Rule, Setting

if TYPE_CHECKING:
    from collections.abc import Iterable

RULE = Rule(
    code="restart-without-checkpoint",
    title="A job that will be started again says where its checkpoint is.",
    what=(
        "Flags a job whose command asks its launcher for restarts (`--max_restarts 3`), and one on a single "
        "low-priority node whose own timeout is long, where nothing names a checkpoint: no output is declared, and "
        "neither the command nor the names of variables and inputs speak of a checkpoint, snapshot or resuming. "
        "`amlstack check` is silent, too, where the script that the command starts does so. Jobs on several low-"
        "priority nodes are the matter of `spot-checkpoint`."
    ),
    why=(
        "After a restart every rank begins with the first step. Without a checkpoint that is found again a job with "
        "three restarts may pay three times for the same hours, and on low-priority nodes it may never end."
    ),
    example=job(command="torchrun --nproc_per_node 8 --max_restarts 3 train.py", distribution=None),
    instead=job(
        command="torchrun --nproc_per_node 8 --max_restarts 3 train.py --resume ${{outputs.checkpoints}}",
        distribution=None,
        outputs="{checkpoints: {jobOutputType: uri_folder, mode: ReadWriteMount}}",
    ),
    level="advisory",
    settings=(Setting("hours", "number", "From how many hours of its timeout on a low-priority job is long.", 6),),
    not_exported=NO_JOB,
)

_RESTARTS = re.compile(r"--max[-_]restarts(?:\s+|=)[\"']?(?P<number>\d+)")
SPEAKS = re.compile(r"ckpt|check_?-?point|snapshot|resume|restore|last_?state|load_?state", re.IGNORECASE)
"""Words by which a command, a name or a script shows that it knows where a run was."""


def restarts(command: str) -> int:
    """How many restarts a command asks its launcher for."""
    asked = _RESTARTS.search(command)
    return int(asked["number"]) if asked else 0


def check(
    command: str,
    *,
    names: Iterable[str] = (),
    outputs: int = 0,
    preemptible: bool = False,
    nodes: int = 1,
    timeout: int | None = None,
    hours: float = 6,
    where: str = "command",
) -> Finding | None:
    """Judge what a job says about being started again.

    Args:
        command: Its command line.
        names: Names of its variables and inputs, and values of variables.
        outputs: How many outputs it declares.
        preemptible: Whether its nodes are of low priority.
        nodes: Number of nodes.
        timeout: Seconds of its own timeout; None without one.
        hours: From how many hours of it a job on a low-priority node is long.
        where: Path of the command in the declaration.
    """
    asked = restarts(command)
    preempted = preemptible and nodes == 1 and (timeout or 0) >= hours * 3600
    if not (asked or preempted) or outputs or any(SPEAKS.search(text) for text in (command, *names)):
        return None
    on_spot = f"may run {(timeout or 0) / 3600:g} h on low-priority nodes"
    reason = f"asks for {asked} restarts" if asked else on_spot
    return Finding(
        RULE.code,
        where,
        seen=f"The job {reason}, and nothing in it names a checkpoint or an output",
        rule="What is started again begins anew unless it finds a checkpoint",
        remedy="Write checkpoints to a mounted output, and pass its path to the script: --resume ${{outputs.NAME}}",
    )
