"""Horovod: ranks started by mpirun, gradients summed by NCCL or MPI."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictInt

from jobs.launchers.base import Lowered, Shape, TypedLauncher
from jobs.launchers.commands import starts_itself
from jobs.launchers.mpi import RESERVED
from jobs.model import distribution


class Horovod(TypedLauncher):
    """Horovod for PyTorch or TensorFlow on MPI: one process per GPU; ``hvd.init()`` finds its rank by itself.

    The image must hold Open MPI and Horovod. ``horovodrun`` is not used: Azure ML writes the mpirun line.
    """

    RESERVED: ClassVar[frozenset[str]] = RESERVED
    WHY: ClassVar[str] = "Horovod's ranks are started by mpirun, which Azure ML runs."

    type: Literal["horovod"] = "horovod"
    framework: Literal["pytorch", "tensorflow"] = "pytorch"
    """What Horovod serves; both are launched alike."""
    processes_per_node: Annotated[StrictInt, Field(ge=1)] | None = None
    """Ranks per node (not in total); unset: one per GPU, or 1."""

    def lower(self, command: str, shape: Shape) -> Lowered:
        """Name the ranks per node; the command is run as it is."""
        ranks = self.processes_per_node or shape.gpus or 1
        return Lowered(
            command,
            distribution.MpiDistribution(process_count_per_instance=ranks),
            ranks,
            {},
            starts_itself(command, ranks, "Horovod"),
        )
