"""What `amlnode`, which runs on the nodes beside the training, wants of a job: to travel along, to know the plan."""

from __future__ import annotations

import json
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from amlstack.base.paths import PROJECT
from amlstack.catalog import fabric

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amlstack.catalog.sizes import Size
    from jobs.model.job import Job

PACKAGE = PROJECT / "amlnode"
WHY = "What the size and the job promise, for amlnode to hold the nodes against."

_COMMAND = re.compile(r"-m\s+amlnode(?:\.\w+)*(?!\S)")
_IMPORT = re.compile(r"^\s*(?:from|import)\s+amlnode\b", re.MULTILINE)
_PER_PORT = {"FDR": 56, "EDR": 100, "HDR": 200, "NDR": 400, "XDR-class": 800}
"""Gbit/s of one four-lane port, by generation."""


def asked(command: str) -> bool:
    """Whether a command runs amlnode."""
    return _COMMAND.search(command) is not None


def packages(job: Job, base: Path) -> tuple[Path, ...]:
    """What the code needs beside it: amlnode, when the command runs it or a file on top of the folder imports it."""
    if job.code is None or not job.code.local:
        return ()
    if asked(job.command):
        return (PACKAGE,)
    try:
        entries = list(os.scandir(os.path.join(base, job.code.path)))  # noqa: PTH118 - once for each of many jobs
        files = [(entry.path, entry.stat()) for entry in entries if entry.name.endswith(".py") and entry.is_file()]
    except (OSError, ValueError):  # a folder that is not there is a finding elsewhere
        return ()
    seen = ((path, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns) for path, now in files)
    return (PACKAGE,) if any(_imports_amlnode(*each) for each in seen) else ()


def check(job: Job) -> Iterator[Finding]:
    """Say that amlnode travels with the code: there must be some."""
    if asked(job.command) and job.code is None:
        yield Finding(
            "amlnode-without-code",
            "code",
            "The command runs `python -m amlnode`, and the job has no code",
            "amlnode travels with the code folder",
            "Name a folder as code, an empty one too.",
        )


def variables(size: Size, *, nodes: int, ranks: int | None, shm: str | None) -> dict[str, str]:
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
        plan["infiniband"] = ports(size)
    if shm:
        plan["shm"] = shm
    result = {"AMLSTACK_PLAN": json.dumps(plan)}
    least = expected(size, nodes) if ranks == size.gpus else None
    return result | ({"AMLSTACK_BUSBW_EXPECTED": f"{least:g}"} if least is not None else {})


def ports(size: Size) -> int:
    """InfiniBand ports of a node; at least one where their number is not known."""
    if not size.fabric.usable:
        return 0
    each = _PER_PORT.get(size.fabric.infiniband or "")
    total = size.fabric.gbps_per_node
    return max(1, round(total / each)) if each and total else 1


def expected(size: Size, nodes: int) -> float | None:
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
    """Whether a file imports amlnode; further arguments tell its states apart, as jobs share folders."""
    try:
        return _IMPORT.search(Path(file).read_text(encoding="utf-8", errors="replace")) is not None
    except OSError:
        return False
