"""PerProcess: Azure ML itself starts every rank of a PyTorch job."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictInt

from jobs.launchers.base import Lowered, Shape, TypedLauncher
from jobs.launchers.commands import starts_itself
from jobs.model.distribution import PyTorchDistribution


class PerProcess(TypedLauncher):
    """PyTorch, launched per process: Azure ML runs the command once per rank and sets its variables.

    The command stays as written; ``torch.distributed`` reads ``MASTER_ADDR``, ``MASTER_PORT``, ``RANK``,
    ``LOCAL_RANK`` and ``WORLD_SIZE``.
    """

    RESERVED: ClassVar[frozenset[str]] = frozenset(
        {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK", "LOCAL_RANK", "NODE_RANK"}
    )

    WHY: ClassVar[str] = "Azure ML itself starts every rank and tells it who it is."

    type: Literal["per-process"] = "per-process"
    processes_per_node: Annotated[StrictInt, Field(ge=1)] | None = None
    """Ranks per node (not in total); unset: one per GPU, or 1."""

    def lower(self, command: str, shape: Shape) -> Lowered:
        """Name the ranks per node; the command is run as it is."""
        ranks = self.processes_per_node or shape.gpus or 1
        return Lowered(
            command=command,
            distribution=PyTorchDistribution(process_count_per_instance=ranks),
            processes_per_node=ranks,
            environment={},
            findings=starts_itself(command, ranks, "PerProcess"),
        )
