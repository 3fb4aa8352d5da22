"""SingleNode: all GPUs of one node, nothing between nodes."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictInt

from amlstack.base.findings import Finding
from amlstack.code_reading.shell import split
from jobs.launchers.base import Collectives, Lowered, Shape, TypedLauncher
from jobs.launchers.commands import not_python


class SingleNode(TypedLauncher):
    """One node without a distribution: torchrun starts a rank per GPU there; one rank leaves the command as it is."""

    RESERVED: ClassVar[frozenset[str]] = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE"})
    WHY: ClassVar[str] = "On one node torchrun finds its ranks by itself."

    type: Literal["single-node"] = "single-node"
    backend: Collectives | None = None
    """What carries the collectives; unset: nothing between nodes, so that no variable is added."""
    processes: Annotated[StrictInt, Field(ge=1)] | None = None
    """Ranks; unset: one per GPU, or 1."""

    def collectives(self, shape: Shape) -> Collectives:
        """Nothing leaves the node, so that no fabric's variable is wanted."""
        del shape
        return self.backend or "gloo"

    def lower(self, command: str, shape: Shape) -> Lowered:
        """Put a standalone torchrun in front of the training process, when it is to have several ranks."""
        ranks = self.processes or shape.gpus or 1
        findings: tuple[Finding, ...] = ()
        if shape.nodes > 1:
            findings += (
                Finding(
                    "single-node",
                    "nodes",
                    f"{shape.nodes} nodes under SingleNode",
                    "SingleNode's ranks know only their own node, and each node would train the same alone",
                    "Write one node, or use TorchRun.",
                ),
            )
        lowered = command
        if ranks > 1:
            parts = split(command)
            if parts is None:
                findings += (not_python(command, "SingleNode"),)
            else:
                lowered = f"{parts.before}torchrun --standalone --nproc_per_node {ranks} {parts.program}"
        return Lowered(lowered, None, ranks, {}, findings)
