"""Mpi: mpirun starts the ranks on all nodes; Azure ML writes its command line."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictInt

from amlstack.base.findings import Finding, Level
from jobs.launchers.base import Collectives, Lowered, Shape, TypedLauncher
from jobs.launchers.commands import starts_itself
from jobs.model import distribution

RESERVED = frozenset(
    {
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
        "AZ_BATCH_MASTER_NODE",
        "AZ_BATCHAI_MPI_MASTER_NODE",
    }
)


class Mpi(TypedLauncher):
    """MPI: Azure ML runs the command under ``mpirun``, once per process.

    As many processes per node as GPUs make it a per-process launch; one per node leaves the ranks of a node to the
    command (``OMPI_COMM_WORLD_RANK`` is then the node's rank). ``MASTER_ADDR`` is not set:
    ``AZ_BATCH_MASTER_NODE`` holds the first node's address and port, and is absent on one node.
    """

    RESERVED: ClassVar[frozenset[str]] = RESERVED
    WHY: ClassVar[str] = "Azure ML writes the mpirun line and starts every rank with it."

    type: Literal["mpi"] = "mpi"
    backend: Collectives | None = None
    """What carries the collectives; unset: MPI itself, so that no variable of NCCL's is added."""
    processes_per_node: Annotated[StrictInt, Field(ge=1)] | None = None
    """Processes per node (not in total); 1: per-node launch; unset: one per GPU, or 1."""

    def collectives(self, shape: Shape) -> Collectives:
        """MPI's own unless the job says otherwise: NCCL's variables would push MPI's data onto Ethernet."""
        del shape
        return self.backend or "mpi"

    def lower(self, command: str, shape: Shape) -> Lowered:
        """Name the processes per node; the command is run as it is."""
        ranks = self.processes_per_node or shape.gpus or 1
        findings = starts_itself(command, ranks, "Mpi")
        if self.backend is None and shape.gpus and shape.nodes > 1:
            findings += (
                Finding(
                    "backend-unsaid",
                    "launcher.backend",
                    "The job does not say what carries its collectives",
                    "Under mpirun both MPI and NCCL can; NCCL's variables are added only when the job says so",
                    "Write backend='nccl' for PyTorch, Horovod or DeepSpeed with NCCL, backend='mpi' otherwise.",
                    Level.INFO,
                ),
            )
        return Lowered(command, distribution.MpiDistribution(process_count_per_instance=ranks), ranks, {}, findings)
