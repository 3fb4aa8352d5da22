"""The size of a rehearsal: the scaled declaration, properties that it does not prove, limits of this machine."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from amlstack.base.paths import is_dir
from amlstack.cli import console
from amlstack.code_reading import code_files, shell, starters
from amlstack.sandbox import gpu_code

if TYPE_CHECKING:
    import jobs
    from amlstack.cli.console import Progress
    from amlstack.sandbox.scale import RehearsalScale

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


Nodes = Annotated[int | None, typer.Option(min=1, max=9999, help="Start no more nodes than this.")]
Ranks = Annotated[int | None, typer.Option(min=1, max=9999, help="Start no more ranks per node than this.")]
Both = Annotated[str | None, typer.Option("-j", metavar="NODESxRANKS", help="Both in one, for example 2x2.")]
Yes = Annotated[
    bool,
    typer.Option("--yes", "-y", help="Do not ask before something is lost or a job larger than this machine starts."),
]

UNLIMITED = 9999
"""The part of a scale that was not given."""
RANKS_PER_CORE = 4
"""Above it ranks wait for each other longer than they compute."""
MEMORY_PER_RANK = 512 * 2**20
"""Bytes. Measured: a process that imported PyTorch 2.8 and made one step on the CPU held 493 MiB."""
MOST_AT_ONCE = 4
"""Trials of a sweep that run at once on a cluster that no stack declares."""
PROPOSED = 2
"""Nodes, and ranks on each: the least that shows what goes wrong between nodes and between ranks of one."""

ON_GPUS = "fp16/bf16, GPU memory and speed, where this machine has no GPU"
"""A rehearsal on CPUs says nothing about these."""

_COUNT = re.compile(
    r"-{0,2}(?:trainer\.)?(?:world[-_]size|num[-_]nodes|nnodes|nodes|n?gpus|n(?:um)?[-_]gpus?|devices|gpus[-_]per[-_]node"
    r"|num[-_](?:processes|workers[-_]total)|nproc[-_]per[-_]node)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Extent:
    """The declared size of a plan's part, and the size that is started.

    Attributes:
        place: The part's place; empty for a single job.
        declared: Nodes, and ranks on each.
        started: The same of the rehearsal.
        at_once: How many of it run at the same time: a sweep's trials.
        unchanged: Counts in the command, inputs or variables that no scale reaches, each as it is written.
        starter: The program that starts the ranks, or `pytorch` where Azure ML does; empty where nobody says how many.
    """

    place: str
    declared: tuple[int, int]
    started: tuple[int, int]
    at_once: int
    unchanged: tuple[str, ...] = ()
    starter: str = ""

    @property
    def processes(self) -> int:
        """Ranks that this machine runs at the same time."""
        nodes, ranks = self.started
        return nodes * ranks * self.at_once


def chosen(nodes: int | None, ranks: int | None, both: str | None) -> RehearsalScale | None:
    """The scale that the options ask for; None for none.

    Raises:
        typer.BadParameter: ``-j`` is no scale, or came with one of the others.
    """
    from amlstack.sandbox.scale import RehearsalScale

    if both is None:
        return None if nodes is ranks is None else RehearsalScale(nodes or UNLIMITED, ranks or UNLIMITED)
    found = RehearsalScale.read(both)
    if found is None:
        raise typer.BadParameter(f"`-j` is NODESxRANKS, for example 2x2, got `{both}`.")
    if nodes is not None or ranks is not None:
        raise typer.BadParameter("Give `-j`, or `--nodes` and `--ranks`.")
    return found


def extents(plan: jobs.Planned, scale: RehearsalScale | None) -> Iterator[Extent]:
    """The extent that is started of each part of a plan."""
    from jobs.planning.launcher_checks import filled

    for place, part in plan.parts.items():
        launches = list(_launches(filled(part.enriched)))
        own = {program: starters.per_node(program, words, part.nodes) for program, words in launches}
        named = [count for count in own.values() if count] or [_by_gpus(part) or 1]
        declared = (part.nodes, max([part.processes_per_node or 1, *named]))
        started = declared
        if scale is not None:
            started = (min(declared[0], scale.nodes), min(declared[1], scale.ranks))
        at_once = max(1, min(trials_at_once(plan, place), most_nodes(plan, place) // started[0]))
        starter = next((program for program, count in own.items() if count), "")
        if not starter and part.processes_per_node:
            starter = getattr(getattr(part.enriched.launcher, "distribution", None), "type", "")
        yield Extent(place, declared, started, at_once, tuple(_unchanged(part, declared, started, scale)), starter)


def trials_at_once(plan: jobs.Planned, place: str) -> int:
    """The number of trials of a sweep that may run at once; 1 for anything else."""
    limits = plan.trials(place)
    return 1 if limits is None else limits.max_concurrent_trials or limits.max_total_trials or MOST_AT_ONCE


def most_nodes(plan: jobs.Planned, place: str) -> int:
    """The nodes of a part's cluster: of one that no stack declares, for as many trials as can run at once."""
    part = plan.parts[place]
    return part.target.max_nodes or part.nodes * min(trials_at_once(plan, place), MOST_AT_ONCE)


def shown(extent: Extent) -> str:
    """Declared and started counts in a line."""
    (nodes, ranks), (fewer, less) = extent.declared, extent.started
    where = f"{extent.place}: " if extent.place else ""
    if extent.declared == extent.started:
        return f"{where}{nodes} × {ranks}, as declared"
    return f"{where}{nodes} × {ranks} → {fewer} × {less} ({nodes * ranks} → {fewer * less} ranks)"


def unproven(parts: Sequence[Extent]) -> Iterator[str]:
    """Yield the properties that a scaled-down rehearsal does not prove."""
    smaller = [part for part in parts if part.declared != part.started]
    if not smaller:
        return
    nodes = max(part.started[0] for part in smaller)
    yield "memory per rank: parameters and optimiser state that are sharded over all ranks are shared by fewer"
    yield "global batch size and learning rate, where the job derives them from the number of ranks"
    if any(part.declared[0] > part.started[0] for part in smaller):
        yield f"whatever needs more than {nodes} node{'' if nodes == 1 else 's'}, and the speed between nodes"
    yield ON_GPUS
    for text in dict.fromkeys(text for part in parts for text in part.unchanged):
        yield f"`{text}` is passed through unchanged: the code reads the declared count, not the started one"


def too_large(parts: Sequence[Extent]) -> str:
    """The reason why the processes do not fit this machine; empty where they do."""
    processes = max((part.processes for part in parts), default=0)
    cores = len(os.sched_getaffinity(0))
    if processes > RANKS_PER_CORE * cores:
        return (
            f"{processes} ranks at once on {cores} core{'' if cores == 1 else 's'}: "
            f"more than {RANKS_PER_CORE} per core mostly wait for each other"
        )
    free = free_memory()
    if free is not None and processes * MEMORY_PER_RANK > free:
        return (
            f"{processes} ranks at once, and {free / 2**30:.1f} GiB of memory are free: each needs about "
            f"{MEMORY_PER_RANK / 2**30:g} GiB to import PyTorch alone"
        )
    return ""


def proposed(parts: Sequence[Extent]) -> tuple[int, int]:
    """Nodes, and ranks on each, that a smaller rehearsal would have."""
    nodes, ranks = (min(PROPOSED, max(part.started[axis] for part in parts)) for axis in (0, 1))
    return nodes, ranks


def agreed(progress: Progress, plan: jobs.Planned, scale: RehearsalScale | None, *, yes: bool) -> bool:
    """Prints what is scaled, and asks about a job that is larger than this machine; whether it is to be started."""
    parts = list(extents(plan, scale))
    if scale is not None:
        progress.step("scaled down; the body keeps what it declares")
        for part in parts:
            progress.note(shown(part))
        for text in unproven(parts):
            progress.note(f"unproven: {text}")
    reason = too_large(parts)
    if not reason or yes:
        return True
    nodes, ranks = proposed(parts)
    progress.step(f"larger than this machine: {reason}")
    progress.note(f"scaled down: -j {nodes}x{ranks}; as it is: --yes")
    if console.on_a_terminal() and console.confirmed("Start it as it is?"):
        return True
    progress.fail("nothing was started")
    return False


def code_folder(part: jobs.Plan) -> Path | None:
    """The folder of a part's code on this machine; None where it has none."""
    code = part.job.code
    return part.base / code.path if code is not None and code.local and is_dir(part.base / code.path) else None


def _launches(command: str) -> Iterator[tuple[str, list[str]]]:
    """Each simple command that starts a launcher or Python: the program's name, and the words after it."""
    for step in shell.steps(command.replace("\\\n", " ")):
        for at, word in enumerate(step):
            name = word.rsplit("/", 1)[-1]
            if name in starters.PROGRAMS:
                yield name, list(step[at + 1 :])
                break


def _by_gpus(part: jobs.Plan) -> int | None:
    """The GPUs of the size, where a job's one process per node starts a rank for each; None where it does not."""
    size, command, folder = part.target.facts, part.enriched.command, code_folder(part)
    if size is None or size.gpus < 2 or (part.processes_per_node or 1) > 1:
        return None
    if code_files.starts_by_gpu(command):
        return size.gpus
    by_code = folder is not None and code_files.code_starts_by_gpu(folder, shell.scripts(command))
    return size.gpus if by_code else None


def _unchanged(
    part: jobs.Plan, declared: tuple[int, int], started: tuple[int, int], scale: RehearsalScale | None
) -> Iterator[str]:
    """Literal counts of the declaration that reach the code as they are."""
    if scale is None:
        return
    counts = starters.Counts(scale.nodes, scale.ranks, part.nodes)
    pairs = [*zip(declared, started, strict=True), (declared[0] * declared[1], started[0] * started[1])]
    wrong = {str(before) for before, after in pairs if before > after}
    for program, rest in _launches(part.enriched.command):
        after, _ = starters.scaled(program, rest, counts)
        for at, word in enumerate(after):
            name, equals, value = word.partition("=")
            follows = value if equals else (after[at + 1] if at + 1 < len(after) else "")
            if word.startswith("-") and _COUNT.fullmatch(name) and follows in wrong:
                yield f"{name}{equals or ' '}{follows}"
    for name, given in part.enriched.inputs.items():
        if isinstance(given, int | str) and _COUNT.fullmatch(name) and str(given) in wrong:
            yield f"inputs.{name}: {given}"


def free_memory() -> int | None:
    """Bytes that new processes can have; None where the machine does not say."""
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        return None
    found = re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else None
