"""This machine against a rehearsal: ranks, memory, disk, the sandbox's home and its server."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from amlstack.base import home as homes
from amlstack.base import paths
from amlstack.cli.rehearsal import scale as scales
from amlstack.cli.rehearsal.feasibility.aspect import Aspect
from amlstack.snapshot import volume

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from amlstack import snapshot
    from amlstack.cli.rehearsal.scale import Extent
    from amlstack.sandbox.images import EnvironmentAnswer

UNPACKED = 2.1
"""Bytes on disk of an environment for each byte of its download: PyTorch's has 6.9 GB of 3.3 GB."""


def size(parts: Sequence[Extent], *, yes: bool) -> Iterator[Aspect]:
    """Ranks against cores and memory; what a rehearsal would ask about is in the way unless it was agreed to."""
    for part in parts:
        yield Aspect("size", "ready", f"{scales.shown(part)} (nodes × ranks)")
    reason = scales.too_large(parts)
    if not reason:
        most = max((part.processes for part in parts), default=0)
        free, cores = scales.free_memory(), len(os.sched_getaffinity(0))
        memory = "" if free is None else f", {free / 2**30:.1f} GiB of memory free"
        yield Aspect("size", "ready", f"{most} at once on {cores} core{'' if cores == 1 else 's'}{memory}")
        return
    nodes, ranks = scales.proposed(parts)
    remedy = f"Give -j {nodes}x{ranks} for fewer, or --yes for all of them."
    yield Aspect("size", "note" if yes else "blocks", reason, "" if yes else remedy)


def disk(
    parts: Mapping[str, Extent], folders: Mapping[str, snapshot.Inspected], answers: Sequence[EnvironmentAnswer]
) -> Iterator[Aspect]:
    """Copies of the code and environments to be built against what is free.

    Args:
        parts: By place.
        folders: The code of each part that has some, by place.
        answers: What becomes of the environments.
    """
    code = sum(folder.bytes * (parts[place].started[0] + 1) for place, folder in folders.items() if place in parts)
    distinct = {each.standin.key: each for each in answers if each.standin is not None and each.state == "build"}
    environments = int(sum(each.download_mb for each in distinct.values()) * 1_000_000 * UNPACKED)
    needs = {paths.home(): code, paths.cache(): environments}
    by_device: dict[int, list[tuple[Path, int]]] = {}
    for folder, needed in needs.items():
        there = _existing(folder)
        by_device.setdefault(there.stat().st_dev, []).append((there, needed))
    for needs_there in by_device.values():
        there, needed = needs_there[0][0], sum(needed for _, needed in needs_there)
        free = shutil.disk_usage(there).free
        if needed > free:
            text = f"about {volume.shown(needed)} are needed, and {volume.shown(free)} are free at {there}"
            remedy = "Make room there, or move it with AMLSTACK_HOME and AMLSTACK_CACHE."
            yield Aspect("disk", "blocks", text, remedy, ignorable=True)
        elif needed:
            yield Aspect("disk", "ready", f"about {volume.shown(needed)} of {volume.shown(free)} free at {there}")


def sandbox() -> Iterator[Aspect]:
    """The home, which must be a sandbox's own, and the server, which a rehearsal starts unless it runs."""
    from amlstack.sandbox.server import daemon

    home = paths.home()
    try:
        homes.check(home)
    except homes.ForeignHomeError as error:
        yield Aspect("sandbox", "blocks", str(error))
        return
    if not os.access(_existing(home), os.W_OK):
        yield Aspect("sandbox", "blocks", f"{home} cannot be written", "Name another folder by AMLSTACK_HOME.")
    elif (endpoint := daemon.find(home)) is not None:
        yield Aspect("sandbox", "ready", f"runs as process {endpoint.pid}")
    else:
        yield Aspect("sandbox", "later", "does not run; the rehearsal starts it on a free port")


def _existing(folder: Path) -> Path:
    """The folder, or the next one above it that is there."""
    return next(each for each in (folder, *folder.parents) if each.is_dir())
