"""The worlds that the ranks of a rehearsal really joined, beside the ranks that were started.

A command can start fewer ranks than were meant, or ranks that do not know of each other: each then trains a model of
its own, and the job completes. Seen are PyTorch's process groups, mpi4py, Horovod and TensorFlow's
MultiWorkerMirroredStrategy, and only where `amlcpu` carries GPU calls.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from amlstack.sandbox import gpu_code

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from amlstack.cli.rehearsal.scale import Extent

_OF_TORCH = ("torchrun", "accelerate", "deepspeed", "pytorch")
"""Starters whose ranks meet in a process group of torch, where they meet at all."""
_OF_MPI = ("mpi", "mpirun", "mpiexec", "horovodrun", "tensorflow")
"""Starters whose ranks meet by a library of their own; a launcher of torch on each node may be below them."""
_ALWAYS = ("accelerate",)
"""Starters that make the process group themselves: without one there are no ranks."""


class JoinedWorld(NamedTuple):
    """The ranks of one job, trial or step.

    Attributes:
        label: Of a trial or step; empty for a job.
        started: The count of ranks that was meant to be started.
        sizes: World sizes that the ranks saw, each with the count of ranks that saw it.
        error: Why this is no training over all ranks; empty where it is one.
        unproven: What is not known; empty where all is.
    """

    label: str
    started: int
    sizes: dict[int, int]
    error: str = ""
    unproven: str = ""

    def as_dict(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        sizes = [{"size": size, "ranks": ranks} for size, ranks in sorted(self.sizes.items())]
        return {"label": self.label, "started": self.started, "worlds": sizes}


def worlds_of(folders: Sequence[tuple[str, Path]], extents: Sequence[Extent]) -> Iterator[JoinedWorld]:
    """The worlds that the ranks of each job, trial or step saw, where somebody states how many ranks there are.

    Args:
        folders: Label and folder of each.
        extents: What was started of each part; a job or a sweep has one part.
    """
    by_step = {each.place.removeprefix("jobs."): each for each in extents}
    for label, folder in folders:
        step = label.partition(" trial ")[0]
        extent = extents[0] if len(extents) == 1 else by_step.get(step)
        joined = gpu_code.joined(folder)
        if extent is None or joined is None or extent.starter not in (*_OF_TORCH, *_OF_MPI):
            continue
        nodes, each = extent.started
        # Workers of TensorFlow need not fill the nodes: those that joined are held against each other.
        started = len(joined) if extent.starter == "tensorflow" else nodes * each
        if started > 1:
            yield _judged(label, started, extent.starter, Counter(size for _, size in joined))


def _judged(label: str, started: int, starter: str, sizes: Counter[int]) -> JoinedWorld:
    found = JoinedWorld(label, started, dict(sizes))
    if not sizes and starter in _OF_MPI:  # a program of another language, or one that only reads its variables
        return found
    if not sizes:
        text = f"no process joined a process group of PyTorch, and {started} ranks were meant: each may train alone"
        return found._replace(error=text) if starter in _ALWAYS else found._replace(unproven=text)
    largest = max(sizes)
    if largest < started:
        groups = f"{started // largest} groups that do not know of each other" if sizes[largest] > largest else "one"
        return found._replace(
            error=f"{started} ranks were meant, and the largest group of processes had {largest} ({groups}): "
            "the counts, or the address where they meet, do not reach all processes"
        )
    return found
