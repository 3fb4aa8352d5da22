"""Custom: Azure ML's own words, taken as they are; also what every typed launcher becomes."""

from __future__ import annotations

from typing import ClassVar, Literal

from jobs.launchers.base import (
    Collectives,
    Distribution,
    Lowered,
    MpiDistribution,
    PyTorchDistribution,
    Shape,
    TensorFlowDistribution,
)
from jobs.launchers.mpi import MPI_RESERVED
from jobs.launchers.per_process import PerProcess
from jobs.values import Model


class Custom(Model):
    """A distribution as Azure ML writes it, or none; nothing is added unless the job asks with ``enrich``."""

    RESERVED: ClassVar[frozenset[str]] = frozenset()

    WHY: ClassVar[str] = ""

    type: Literal["custom"] = "custom"
    distribution: Distribution | None = None
    """Azure ML's own distribution; unset: every node runs the command once."""

    def lower(self, command: str, shape: Shape) -> Lowered:
        """Nothing to do: it is the wire's form already."""
        del shape
        return Lowered(command, self.distribution, self._processes(), {})

    def code_files(self) -> tuple[tuple[str, str], ...]:
        """None."""
        return ()

    def collectives(self, shape: Shape) -> Collectives:
        """MPI's where MPI starts the ranks; whether NCCL carries them instead is not known here."""
        if isinstance(self.distribution, MpiDistribution):
            return "mpi"
        return "nccl" if shape.gpus else "gloo"

    def _processes(self) -> int | None:
        match self.distribution:
            case (
                PyTorchDistribution(process_count_per_instance=count)
                | MpiDistribution(process_count_per_instance=count)
            ):
                return count if isinstance(count, int) else (1 if count is None else None)
            case TensorFlowDistribution() | None:
                return 1
            case _:
                return None

    @property
    def reserved(self) -> frozenset[str]:
        """The variables that Azure ML sets for this distribution."""
        return RESERVED_BY_KIND.get(self.distribution.type, frozenset()) if self.distribution else frozenset()


RESERVED_BY_KIND: dict[str, frozenset[str]] = {
    "pytorch": PerProcess.RESERVED,
    "tensorflow": frozenset({"TF_CONFIG"}),
    "mpi": MPI_RESERVED,
}
