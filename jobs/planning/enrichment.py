"""The one place that adds to what a person wrote: the fabric's variables, shared memory, container arguments.

A value that the person wrote always stays. All that is added is listed with its reason.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.catalog import fabric
from jobs.launchers import Custom
from jobs.model.distribution import MpiDistribution
from jobs.planning import nodeside

if TYPE_CHECKING:
    from jobs.launchers.base import Lowered, Shape
    from jobs.model.job import Job
    from jobs.planning.target import Target


@dataclass(frozen=True, slots=True)
class Added:
    """One value that is not the person's own.

    Attributes:
        what: Path in the job, e.g. ``environment_variables.NCCL_SOCKET_IFNAME``.
        value: What was put there.
        by: What put it there: a launcher's type, or ``fabric``.
        why: The reason.
        instead_of: The person's value where one was rewritten (the command of a launcher).
    """

    what: str
    value: Any
    by: str
    why: str
    instead_of: Any = None


def enriched(job: Job, lowered: Lowered, shape: Shape, target: Target) -> tuple[Job, tuple[Added, ...]]:
    """The job in Azure ML's words with everything added, and the list of that.

    An az ml file is passed through unchanged: a `Custom` launcher adds nothing, unless the job says ``enrich`` or
    asks for blocks of the ``fabric``.
    """
    added: list[Added] = []
    update: dict[str, Any] = {"launcher": Custom(distribution=lowered.distribution)}
    by = job.launcher.type
    if job.typed:
        why = job.launcher.WHY
        if lowered.command != job.command:
            update["command"] = lowered.command
            added.append(Added("command", lowered.command, by, why, job.command))
        if lowered.distribution is not None:
            added.append(Added("distribution", lowered.distribution.model_dump(exclude_none=True), by, why))
        if job.nodes is None:
            update["nodes"] = shape.nodes
    variables = dict(job.environment_variables)
    for name, (value, reason) in lowered.environment.items():
        if name not in variables:
            variables[name] = value
            added.append(Added(f"environment_variables.{name}", value, by, reason))
    if job.typed or job.fabric if job.enrich is None else job.enrich:
        update |= _from_size(job, lowered, shape, target, variables=variables, added=added)
    if variables != job.environment_variables:
        update["environment_variables"] = variables
    return job.model_copy(update=update), tuple(added)


def _from_size(
    job: Job, lowered: Lowered, shape: Shape, target: Target, *, variables: dict[str, Any], added: list[Added]
) -> dict[str, Any]:
    """What follows from the VM size; fills ``variables`` and ``added``."""
    size, update = target.facts, dict[str, Any]()
    if size is None:
        return update
    collectives = job.launcher.collectives(shape)
    starts = isinstance(lowered.distribution, MpiDistribution)
    for setting in fabric.settings(size, collectives=collectives, mpi_starts_ranks=starts, blocks=job.fabric):
        if setting.name not in variables:
            variables[setting.name] = setting.value
            added.append(Added(f"environment_variables.{setting.name}", setting.value, "fabric", setting.why))
    shm = job.shm_size or size.shm_size()
    if nodeside.asked(lowered.command):
        promised = nodeside.variables(size, nodes=shape.nodes, ranks=lowered.processes_per_node, shm=shm)
        for name, value in promised.items():
            if name not in variables:
                variables[name] = value
                added.append(Added(f"environment_variables.{name}", value, "amlnode", nodeside.WHY))
    if job.shm_size is None and shm:
        update["shm_size"] = shm
        why = f"Half of {size.name}'s memory, for DataLoader workers and NCCL; Azure ML's own default is 2g."
        added.append(Added("shm_size", shm, "fabric", why))
    if job.docker_args is None and collectives != "gloo" and (arguments := fabric.docker_args(size)):
        update["docker_args"] = arguments
        why = "RDMA registers memory by locking it, and a container's default limit refuses that."
        added.append(Added("docker_args", arguments, "fabric", why))
    return update
