"""Code for GPUs on a machine that may have none, and which mpirun starts the ranks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from amlstack.base.paths import is_dir
from amlstack.cli.rehearsal.feasibility.aspect import Aspect
from amlstack.code_reading import shell
from jobs.model.distribution import MpiDistribution

if TYPE_CHECKING:
    from collections.abc import Iterator

    import jobs
    from amlstack.sandbox.images import EnvironmentAnswer

_DEVICES = Path("/dev")


def has_gpu() -> bool:
    """Whether this machine has a GPU of NVIDIA with a driver."""
    return any(_DEVICES.glob("nvidia[0-9]*"))


def gpu(place: str, part: jobs.Plan, *, shim: bool = True) -> Iterator[Aspect]:
    """What of a part's code cannot run without a GPU, or runs otherwise, each at its line.

    Args:
        place: The part's place.
        part: The part.
        shim: Whether ordinary GPU calls are carried to the CPU.
    """
    code = part.job.code
    if has_gpu():
        yield Aspect("GPU", "ready", "this machine has one", "", (place,))
        return
    if code is None or not code.local or not is_dir(folder := part.base / code.path):
        return
    from amlstack.sandbox import gpu_code

    command = part.enriched.command
    for each in gpu_code.read(folder, shell.scripts(command)):
        stops = each.ends and each.certain
        where = "" if each.certain else " (in a function)"
        yield Aspect(
            "GPU",
            "blocks" if stops else "note",
            f"{each.what}{where}: {each.consequence}".rstrip("."),
            "Rehearse it where a GPU is, or give --force to start it all the same." if stops else "",
            (place,),
            str(folder / each.path),
            each.line,
            ignorable=stops,
        )
    if gpu_code.mentioned(folder, command):
        left = "GPU calls stay as they are, and fail where this machine has no GPU (--no-shim)"
        yield Aspect("GPU", "ready" if shim else "note", gpu_code.LINE if shim else left, "", (place,))


def starts_by_mpi(part: jobs.Plan) -> bool:
    """Whether mpirun starts a part's ranks."""
    return isinstance(getattr(part.enriched.launcher, "distribution", None), MpiDistribution)


def mpi(place: str, part: jobs.Plan, answer: EnvironmentAnswer | None) -> Iterator[Aspect]:
    """Which mpirun starts the ranks of an MPI job."""
    from amlstack.sandbox.images import openmpi, ready
    from amlstack.sandbox.runner.mpi import mpirun

    if not starts_by_mpi(part):
        return
    standin = answer.standin if answer is not None else None
    version = openmpi(standin) if standin is not None else ""
    if standin is not None and version:
        if (built := ready(standin)) is not None:
            text = f"{built / 'bin' / 'mpirun'}, Open MPI {version} of the environment"
            yield Aspect("MPI", "ready", text, "", (place,))
        else:
            yield Aspect("MPI", "later", f"Open MPI {version} of PyPI comes with the environment", "", (place,))
    elif own := mpirun.on_machine():
        yield Aspect("MPI", "ready", f"{own}, this machine's Open MPI 4", "", (place,))
