"""`plan`: from what a person wrote to what will run, with everything that is wrong collected on the way.

This is the one place that adds to what a person wrote: the fabric's variables, shared memory, container arguments. A
value that the person wrote always stays. All that is added is listed with its reason. `amlnode`, which runs on the
nodes beside the training, travels along with the code and gets the plan as variables.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack.base.findings import Finding, stated
from amlstack.base.paths import PACKAGE
from amlstack.catalog import fabric
from amlstack.code_reading.starters import MAY_START
from jobs.launchers import Custom, Lowered, MpiDistribution, Shape
from jobs.planning import job_checks, program_checks
from jobs.planning.plans import Added, Find, Plan, Target
from jobs.planning.program_checks import check_environment
from jobs.values import Source
from jobs.wire.command import LOCAL, is_serverless

if TYPE_CHECKING:
    from amlstack.catalog.sizes import Size
    from jobs.model.job import Job

AMLNODE = PACKAGE / "amlnode"
WHY_AMLNODE = "What the size and the job promise, for amlnode to hold the nodes against."

_COMMAND = re.compile(r"-m\s+amlnode(?:\.\w+)*(?!\S)")
_IMPORT = re.compile(r"^\s*(?:from|import)\s+amlnode\b", re.MULTILINE)
_PER_PORT = {"FDR": 56, "EDR": 100, "HDR": 200, "NDR": 400, "XDR-class": 800}
"""Gbit/s of one four-lane port, by generation."""


def runs_amlnode(command: str) -> bool:
    """True where a command runs amlnode."""
    return _COMMAND.search(command) is not None


def packages_beside(job: Job, base: Path) -> tuple[Path, ...]:
    """Packages that the code needs: amlnode, when the command runs it or a file on top of the folder imports it."""
    if job.code is None or not job.code.local:
        return ()
    if runs_amlnode(job.command):
        return (AMLNODE,)
    try:
        entries = list(os.scandir(os.path.join(base, job.code.path)))  # noqa: PTH118 - once for each of many jobs
        files = [(entry.path, entry.stat()) for entry in entries if entry.name.endswith(".py") and entry.is_file()]
    except (OSError, ValueError):  # a folder that is not there is a finding elsewhere
        return ()
    seen = ((path, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns) for path, now in files)
    return (AMLNODE,) if any(_imports_amlnode(*each) for each in seen) else ()


def check_amlnode(job: Job) -> Iterator[Finding]:
    """Say that amlnode travels with the code: there must be some."""
    if runs_amlnode(job.command) and job.code is None:
        yield stated("amlnode-without-code", "code")


def amlnode_variables(size: Size, *, nodes: int, ranks: int | None, shm: str | None) -> dict[str, str]:
    """AMLSTACK_PLAN, what a node should have, and AMLSTACK_BUSBW_EXPECTED, the least bus bandwidth in GB/s.

    The bandwidth is only there where a source measured that size on that many nodes, and for one rank per GPU: fewer
    ranks do not fill the fabric.

    Args:
        size: The nodes' size.
        nodes: Number of nodes.
        ranks: Ranks per node; None when unknown.
        shm: Shared memory of the container, as Docker writes it.
    """
    plan: dict[str, object] = {"size": size.name, "gpus": size.gpus}
    if nodes > 1:
        plan["infiniband"] = infiniband_ports(size)
    if shm:
        plan["shm"] = shm
    result = {"AMLSTACK_PLAN": json.dumps(plan)}
    least = expected_bandwidth(size, nodes) if ranks == size.gpus else None
    return result | ({"AMLSTACK_BUSBW_EXPECTED": f"{least:g}"} if least is not None else {})


def infiniband_ports(size: Size) -> int:
    """InfiniBand ports of a node; at least one where their number is not known."""
    if not size.fabric.usable:
        return 0
    each = _PER_PORT.get(size.fabric.infiniband or "")
    total = size.fabric.gbps_per_node
    return max(1, round(total / each)) if each and total else 1


def expected_bandwidth(size: Size, nodes: int) -> float | None:
    """The line below which all_reduce is broken on so many nodes, else what is reached at least; None: unknown.

    Azure ML does not say in which racks the nodes of a job are: where one line is known for nodes of one rack and one
    for those of several, the lower one is taken. The latter holds for more nodes too.
    """
    domain = size.nvlink_nodes or 1
    lines = [
        row.fault_below or row.warn_below or row.expected[0]
        for row in fabric.bandwidths(size)
        if row.network != "ethernet" and (row.nodes == nodes or (row.nodes == domain < nodes and row.racks is None))
    ]
    return min(lines, default=None)


@lru_cache(maxsize=4096)
def _imports_amlnode(file: str, *_: int) -> bool:
    """True where a file imports amlnode; further arguments tell its states apart, as jobs share folders."""
    try:
        return _IMPORT.search(Path(file).read_text(encoding="utf-8", errors="replace")) is not None
    except OSError:
        return False


def enriched(job: Job, lowered: Lowered, shape: Shape, target: Target) -> tuple[Job, tuple[Added, ...]]:
    """The job in Azure ML's words with everything added, and the list of that.

    An az ml file is passed through unchanged: a `Custom` launcher adds nothing, unless the job says ``enrich`` or
    asks for blocks of the ``fabric``.
    """
    added: list[Added] = []
    update: dict[str, Any] = {}
    if not isinstance(job.launcher, Custom) or job.launcher.distribution is not lowered.distribution:
        update["launcher"] = Custom(distribution=lowered.distribution)
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
        _add_variable(Added(name, value, by, reason), variables, added)
    if job.typed or job.fabric if job.enrich is None else job.enrich:
        update |= _from_size(job, lowered, shape, target, variables=variables, added=added)
    if variables != job.environment_variables:
        update["environment_variables"] = variables
    return job.model_copy(update=update) if update else job, tuple(added)


def _add_variable(variable: Added, variables: dict[str, Any], added: list[Added]) -> None:
    """Add a variable, by its name; one that is there stays."""
    if variable.what not in variables:
        variables[variable.what] = variable.value
        added.append(variable._replace(what=f"environment_variables.{variable.what}"))


def _from_size(
    job: Job, lowered: Lowered, shape: Shape, target: Target, *, variables: dict[str, Any], added: list[Added]
) -> dict[str, Any]:
    """Adds what follows from the VM size; fills ``variables`` and ``added``."""
    size, update = target.facts, dict[str, Any]()
    if size is None:
        return update
    collectives = job.launcher.collectives(shape)
    starts = isinstance(lowered.distribution, MpiDistribution)
    for setting in fabric.settings(size, collectives=collectives, mpi_starts_ranks=starts, blocks=job.fabric):
        _add_variable(Added(setting.name, setting.value, "fabric", setting.why), variables, added)
    shm = job.shm_size or size.shm_size()
    if runs_amlnode(lowered.command):
        promised = amlnode_variables(size, nodes=shape.nodes, ranks=lowered.processes_per_node, shm=shm)
        for name, value in promised.items():
            _add_variable(Added(name, value, "amlnode", WHY_AMLNODE), variables, added)
    if job.shm_size is None and shm:
        update["shm_size"] = shm
        why = f"Half of {size.name}'s memory, for DataLoader workers and NCCL; Azure ML's own default is 2g."
        added.append(Added("shm_size", shm, "fabric", why))
    if job.docker_args is None and collectives != "gloo" and (arguments := fabric.docker_args(size)):
        update["docker_args"] = arguments
        why = "RDMA registers memory by locking it, and a container's default limit refuses that."
        added.append(Added("docker_args", arguments, "fabric", why))
    return update


def plan(
    job: Job, target: Target | None = None, *, source: Source | None = None, environments: Collection[str] = ()
) -> Plan:
    """Resolve a job: count its ranks, lower its launcher, add what its size wants, and say what is wrong.

    Args:
        job: As declared.
        target: The cluster or serverless size; None takes the job's own instance_type.
        source: The job's file, for relative paths and the places of findings.
        environments: Names of environments that the stack registers, beside the curated ones.
    """
    source = source or Source()
    target = target or Target(size=job.instance_type if is_serverless(job.compute) else None)
    count = job.nodes if isinstance(job.nodes, int) else 1
    size = target.facts
    shape = Shape(nodes=count, gpus=size.gpus if size else None)
    lowered = job.launcher.lower(job.command, shape)
    rich, added = enriched(job, lowered, shape, target)
    found = (
        *job_checks.run_name(job),
        *job_checks.placeholders(job),
        *job_checks.versions(job),
        *job_checks.locations(job),
        *check_environment(job, environments),
        *_findings(job, lowered, count, target, base=source.base),
        *job_checks.fabric_blocks(job, job.launcher.collectives(shape), target),
    )
    ranks = lowered.processes_per_node
    return Plan(
        job=job,
        enriched=rich,
        target=target,
        nodes=count,
        processes_per_node=ranks,
        world_size=None if ranks is None or not isinstance(job.nodes, int | None) else ranks * count,
        added=added,
        findings=tuple(source.locate(finding) for finding in found if not source.explains(finding)),
        base=source.base,
        beside=packages_beside(rich, source.base),
    )


def plan_job(job: Job, find: Find, *, source: Source, environments: Collection[str] = ()) -> Plan:
    """Resolve a job on the target that ``find`` gives it; see `jobs.resolve`."""
    target, wrong = find(job)
    planned = plan(job, target, source=source, environments=environments)
    if not wrong:
        return planned
    return replace(planned, findings=(*planned.findings, *map(source.locate, wrong)))


def _findings(job: Job, lowered: Lowered, count: int, target: Target, *, base: Path) -> Iterator[Finding]:
    yield from lowered.findings
    yield from job_checks.bindings(job)
    yield from job_checks.local_files(job, base)
    yield from program_checks.command_words(job, base)
    yield from program_checks.scripts_of(job, base)
    yield from program_checks.nebula(job, lowered.command, base)
    yield from check_amlnode(job)
    yield from job_checks.variables(job)
    yield from job_checks.losses(job)
    yield from job_checks.services(job, lowered, count)
    if job.compute is not None and job.compute.lower() == LOCAL:
        return
    yield from job_checks.node_count(job, count, target)
    yield from program_checks.check_build_context(job, target, base)
    yield from job_checks.ranks_per_node(job, lowered, count, target)
    yield from program_checks.idle_gpus(job, lowered, target, base)
    if MAY_START.search(job.command):
        from jobs.planning import launcher_checks  # noqa: PLC0415 - loaded for the jobs that need it

        yield from launcher_checks.launchers(job, lowered, target, base)
