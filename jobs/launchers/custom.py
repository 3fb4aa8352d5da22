"""Custom: Azure ML's own words, taken as they are; also what every typed launcher becomes."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from jobs.distribution import Distribution, Mpi, PyTorch, TensorFlow
from jobs.launchers.base import Collectives, Lowered, Shape
from jobs.values import Model


class Custom(Model):
    """A distribution as Azure ML writes it, or none; nothing is added unless the job asks with ``enrich``."""

    RESERVED: ClassVar[frozenset[str]] = frozenset()

    WHY: ClassVar[str] = ""

    type: Literal["custom"] = "custom"
    distribution: Annotated[
        Distribution | None, Field(description="Azure ML's own distribution; unset: every node runs the command once.")
    ] = None

    def lower(self, command: str, shape: Shape) -> Lowered:
        """Nothing to do: it is the wire's form already."""
        del shape
        return Lowered(command, self.distribution, self._processes(), {})

    def collectives(self, shape: Shape) -> Collectives:
        """MPI's where MPI starts the ranks; nobody knows here whether NCCL carries them instead."""
        if isinstance(self.distribution, Mpi):
            return "mpi"
        return "nccl" if shape.gpus else "gloo"

    def _processes(self) -> int | None:
        match self.distribution:
            case PyTorch(process_count_per_instance=count) | Mpi(process_count_per_instance=count):
                return count if isinstance(count, int) else (1 if count is None else None)
            case TensorFlow() | None:
                return 1
            case _:
                return None

    @property
    def reserved(self) -> frozenset[str]:
        """The variables that Azure ML sets for this distribution."""
        return RESERVED_BY_KIND.get(self.distribution.type, frozenset()) if self.distribution else frozenset()


RESERVED_BY_KIND: dict[str, frozenset[str]] = {
    "pytorch": frozenset({"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK", "NODE_RANK"}),
    "tensorflow": frozenset({"TF_CONFIG"}),
    "mpi": frozenset(
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"}
        | {"AZ_BATCH_MASTER_NODE", "AZ_BATCHAI_MPI_MASTER_NODE"}
    ),
}
